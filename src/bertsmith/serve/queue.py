"""FairQueue: texts of many requests wait here, one queue per client, served in turn."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bertsmith.serve.failures import FailureKind, RequestError


class BatchKind(NamedTuple):
    """What a batch does: texts share one only if this is equal.

    `operation` is None for vectors; `options` are all that change a result.
    """

    operation: str | None
    options: tuple[tuple[str, Hashable], ...] = ()


@dataclass(slots=True, eq=False, kw_only=True)
class WaitingText:
    """One text of a request; `future` gets its result."""

    kind: BatchKind
    work: Any
    tokens: int
    client: str
    deadline: float  # on the clock of the queue
    future: asyncio.Future[Any]
    request: int = 0  # its number in the queue
    entered: float = 0.0
    taken: float = field(default=0.0)

    @property
    def is_wanted(self) -> bool:
        """Whether somebody still waits for the result."""
        return not self.future.done()


LIGHT_PART = 8  # of the budget: with more waiting tokens a client has much work
SHARED_PART = 4  # of the budget: what a batch holds at least, once every client had its turn


class FairQueue:
    """Waiting pieces; `put` refuses what would wait too long, `take` makes the next batch.

    A full queue refuses the client that holds most of it: who comes with less finds room, and the
    last requests of the greediest one are refused instead.

    Clients are served in turn, one piece each, so that neither a long text nor a greedy client
    delays another by more than a batch: a batch that several clients share is not filled up by
    the one with the most texts, and those with little work share one without it. For one event
    loop.
    """

    def __init__(
        self, *, limit: int, speed: float, clock: Callable[[], float] | None = None
    ) -> None:
        """`limit` tokens may wait; `speed` is in tokens per second, for Retry-After."""
        self.limit = limit
        self.speed = speed
        self.waiting = 0  # tokens
        self._clients: dict[str, deque[WaitingText]] = {}
        self._tokens: dict[str, int] = {}  # that wait, by client
        self._requests = 0
        self._light_last = False  # whether the last batch was of clients with little work
        self._turn: deque[str] = deque()
        self._filled = asyncio.Event()
        self._clock = clock or asyncio.get_running_loop().time

    def __len__(self) -> int:
        """Waiting pieces."""
        return sum(map(len, self._clients.values()))

    def check_room(self, client: str, tokens: int = 1) -> None:
        """Refuse tokens that do not fit; whoever asks first need not tokenize in vain."""
        if not self.has_room(client, tokens):
            raise self.full()

    def has_room(self, client: str, tokens: int = 1) -> bool:
        """Whether so many more tokens of a client would be taken."""
        return not self._is_full(tokens) or self._greediest(client, tokens) is not None

    def full(self) -> RequestError:
        """The refusal of what does not fit, with the time to wait."""
        seconds = max(1, math.ceil(self.waiting / self.speed))
        return RequestError(
            FailureKind.OVERLOADED,
            f"the queue is full: {self.waiting:,} tokens wait; try again in {seconds} s",
            retry_after=seconds,
        )

    def put(self, pieces: Sequence[WaitingText]) -> None:
        """Add the pieces of a request of one client, all or none."""
        tokens = sum(piece.tokens for piece in pieces)
        while pieces and self._is_full(tokens):
            greediest = self._greediest(pieces[0].client, tokens)
            if greediest is None:
                raise self.full()
            self._refuse_last(greediest)
        self._requests += 1
        now = self._clock()
        for piece in pieces:
            piece.entered, piece.request = now, self._requests
            if piece.client not in self._clients:
                self._clients[piece.client] = deque()
                self._tokens[piece.client] = 0
                self._turn.append(piece.client)
            self._clients[piece.client].append(piece)
            self._tokens[piece.client] += piece.tokens
        self.waiting += tokens
        if pieces:
            self._filled.set()

    async def take(self, budget: int) -> list[WaitingText]:
        """The next batch: at least one piece, and more of its kind while they fit the budget.

        What nobody waits for any more and what is past its deadline is dropped here.
        """
        while True:
            await self._filled.wait()
            batch = self._batch(budget)
            if not self._clients:
                self._filled.clear()
            if batch:
                return batch

    def fail_all(self, failure: RequestError) -> None:
        """Answer everything that waits with a failure."""
        for queue in self._clients.values():
            for piece in queue:
                if piece.is_wanted:
                    piece.future.set_exception(failure)
        self._clients.clear()
        self._tokens.clear()
        self._turn.clear()
        self._filled.clear()
        self.waiting = 0

    def _is_full(self, tokens: int) -> bool:
        """Whether so many more do not fit; one request may always wait, whatever its size."""
        return bool(self.waiting) and self.waiting + tokens > self.limit

    def _greediest(self, client: str, tokens: int) -> str | None:
        """Who holds more than this client would with so many more tokens; None: nobody does."""
        most = max(self._tokens, key=self._tokens.__getitem__)
        return most if self._tokens[most] > self._tokens.get(client, 0) + tokens else None

    def _refuse_last(self, client: str) -> None:
        """Take the last request of a client out again."""
        queue, failure = self._clients[client], self.full()
        last = queue[-1].request
        while queue and queue[-1].request == last:
            piece = queue.pop()
            self._count_out(piece)
            if piece.is_wanted:
                piece.future.set_exception(failure)
        if not queue:
            self._turn.remove(client)
            self._forget(client)

    def _batch(self, budget: int) -> list[WaitingText]:
        light = self._light(budget)
        self._light_last = bool(light) and not self._light_last
        return self._filled_batch(budget, light if self._light_last else None)

    def _light(self, budget: int) -> set[str]:
        """Clients with little work, where others have more; every other batch is theirs alone."""
        most = budget // LIGHT_PART
        light = {client for client, tokens in self._tokens.items() if tokens <= most}
        return light if len(light) < len(self._clients) else set()

    def _filled_batch(self, budget: int, only: set[str] | None) -> list[WaitingText]:
        batch: list[WaitingText] = []
        passed: list[str] = []  # whose next piece did not fit: they are first in the next batch
        served: set[str] = set()
        enough = budget - budget // SHARED_PART
        now = self._clock()
        while self._turn:
            client = self._turn[0]
            if client in served and len(served) > 1 and budget <= enough:
                break  # everybody had a turn
            self._turn.popleft()
            queue = self._clients[client]
            self._drop(queue, now)
            if not queue:
                self._forget(client)
                continue
            piece = queue[0]
            fits = not batch or (piece.kind == batch[0].kind and piece.tokens <= budget)
            if not fits or (only is not None and client not in only):
                passed.append(client)
                continue
            self._pop(queue)
            budget -= piece.tokens
            piece.taken = now
            batch.append(piece)
            served.add(client)
            if queue:
                self._turn.append(client)
            else:
                self._forget(client)
            if budget <= 0:
                break
        self._turn.extendleft(reversed(passed))
        return batch

    def _pop(self, queue: deque[WaitingText]) -> None:
        self._count_out(queue.popleft())

    def _count_out(self, piece: WaitingText) -> None:
        self.waiting -= piece.tokens
        self._tokens[piece.client] -= piece.tokens

    def _forget(self, client: str) -> None:
        del self._clients[client], self._tokens[client]

    def _drop(self, queue: deque[WaitingText], now: float) -> None:
        while queue:
            piece = queue[0]
            if piece.is_wanted and piece.deadline > now:
                return
            self._pop(queue)
            if piece.is_wanted:
                late = now - piece.entered
                piece.future.set_exception(
                    RequestError(
                        FailureKind.DEADLINE,
                        f"the request waited {late:.1f} s, past its deadline; send fewer or "
                        "shorter texts at once, or try again later",
                        retry_after=max(1, math.ceil(self.waiting / self.speed)),
                    )
                )
