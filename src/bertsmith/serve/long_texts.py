"""LongTexts: tokenizing long texts in a thread, so that nobody waits for the text of another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.shares import Caller, Shares

AT_ONCE = 5_000  # characters of a request that are tokenized without a thread: a few milliseconds
MOST_WAITING = 32  # requests with more than that; of 2 MB each by default

Result = TypeVar("Result")


class LongTexts:
    """One thread for the texts of all requests of a model, one request after another."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "bertsmith-texts")
        self._waiting = Shares(MOST_WAITING)

    async def run(self, size: int, caller: Caller, function: Callable[[], Result]) -> Result:
        """The result of work on `size` characters; at once where they are few.

        Work that has not begun by the caller's deadline never does.
        """
        if size <= AT_ONCE:
            return function()
        if not self._waiting.take(caller.client):
            raise RequestError(
                FailureKind.OVERLOADED,
                f"{self._waiting.held} requests with long texts wait; try again in 2 s",
                retry_after=2,
            )
        try:
            async with asyncio.timeout_at(caller.deadline):
                return await asyncio.get_running_loop().run_in_executor(self._thread, function)
        except TimeoutError:
            raise RequestError(
                FailureKind.DEADLINE, "the texts were not tokenized before the deadline"
            ) from None
        finally:
            self._waiting.give(caller.client)

    def close(self) -> None:
        """End the thread; what waits for it is dropped."""
        self._thread.shutdown(wait=False, cancel_futures=True)
