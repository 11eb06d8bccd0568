"""Texts of clients that wait: turns, budgets, deadlines, refusals."""

from __future__ import annotations

import asyncio

import pytest

from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.queue import BatchKind, FairQueue, WaitingText

ROWS = BatchKind(None)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def pieces(client: str, sizes: list[int], *, kind: BatchKind = ROWS, deadline: float = 10.0):
    loop = asyncio.get_running_loop()
    return [
        WaitingText(
            kind=kind,
            work=(client, number),
            tokens=size,
            client=client,
            deadline=deadline,
            future=loop.create_future(),
        )
        for number, size in enumerate(sizes)
    ]


def works(batch: list[WaitingText]) -> list[tuple[str, int]]:
    return [piece.work for piece in batch]


def run(check) -> None:
    asyncio.run(check(Clock()))


def test_clients_are_served_in_turn() -> None:
    async def check(clock: Clock) -> None:
        queue = FairQueue(limit=10_000, speed=100.0, clock=clock)
        queue.put(pieces("greedy", [10] * 5))
        queue.put(pieces("modest", [10]))
        # The batch of the modest one is not filled up by the other, which has the next alone.
        assert works(await queue.take(30)) == [("greedy", 0), ("modest", 0)]
        assert works(await queue.take(30)) == [("greedy", 1), ("greedy", 2), ("greedy", 3)]
        assert works(await queue.take(30)) == [("greedy", 4)]
        assert queue.waiting == 0
        assert len(queue) == 0

    run(check)


def test_a_batch_of_short_texts_has_several_turns_of_each_client() -> None:
    async def check(clock: Clock) -> None:
        queue = FairQueue(limit=10_000, speed=100.0, clock=clock)
        queue.put(pieces("one", [10] * 9))
        queue.put(pieces("two", [10] * 9))
        batch = works(await queue.take(160))  # a quarter is 40 tokens
        assert batch == [("one", 0), ("two", 0), ("one", 1), ("two", 1)]

    run(check)


def test_clients_with_little_work_need_not_wait_for_the_texts_of_a_greedy_one() -> None:
    async def check(clock: Clock) -> None:
        queue = FairQueue(limit=10_000, speed=100.0, clock=clock)
        queue.put(pieces("greedy", [100] * 6))
        queue.put(pieces("one", [5]))
        queue.put(pieces("two", [5]))
        assert works(await queue.take(200)) == [("one", 0), ("two", 0)]
        queue.put(pieces("one", [5]))
        # Every other batch is for all: however many small ones come, the greedy one has its turn.
        assert works(await queue.take(200)) == [("greedy", 0), ("one", 0)]
        queue.put(pieces("one", [5]))
        assert works(await queue.take(200)) == [("one", 0)]
        assert works(await queue.take(200)) == [("greedy", 1), ("greedy", 2)]
        assert queue.waiting == 300

    run(check)


def test_a_full_queue_is_known_before_texts_are_tokenized() -> None:
    async def check(clock: Clock) -> None:
        queue = FairQueue(limit=100, speed=20.0, clock=clock)
        queue.check_room("a")
        queue.put(pieces("a", [100]))
        with pytest.raises(RequestError, match="the queue is full") as caught:
            queue.check_room("a")
        assert caught.value.retry_after == 5

    run(check)


def test_a_text_that_does_not_fit_is_first_in_the_next_batch() -> None:
    async def check(clock: Clock) -> None:
        queue = FairQueue(limit=10_000, speed=100.0, clock=clock)
        queue.put(pieces("short", [10, 10]))
        queue.put(pieces("long", [500]))
        assert works(await queue.take(100)) == [("short", 0), ("short", 1)]
        queue.put(pieces("short", [20]))
        assert works(await queue.take(100)) == [("long", 0)]  # larger than a batch: alone
        assert works(await queue.take(100)) == [("short", 0)]

    run(check)


def test_a_batch_has_one_kind() -> None:
    async def check(clock: Clock) -> None:
        queue = FairQueue(limit=10_000, speed=100.0, clock=clock)
        queue.put(pieces("a", [5]))
        queue.put(pieces("b", [5], kind=BatchKind("fill")))
        queue.put(pieces("c", [5]))
        assert works(await queue.take(100)) == [("a", 0), ("c", 0)]
        assert works(await queue.take(100)) == [("b", 0)]

    run(check)


def test_what_nobody_waits_for_is_skipped() -> None:
    async def check(clock: Clock) -> None:
        queue = FairQueue(limit=10_000, speed=100.0, clock=clock)
        gone, late, wanted = pieces("a", [5]) + pieces("b", [5], deadline=1.0) + pieces("c", [5])
        queue.put([gone, late, wanted])
        gone.future.cancel()
        clock.now = 2.0
        assert await queue.take(100) == [wanted]
        with pytest.raises(RequestError, match="past its deadline") as caught:
            await late.future
        assert caught.value.kind is FailureKind.DEADLINE
        assert queue.waiting == 0

    run(check)


def test_a_full_queue_refuses_with_the_time_to_wait() -> None:
    async def check(clock: Clock) -> None:
        queue = FairQueue(limit=100, speed=20.0, clock=clock)
        queue.put(pieces("a", [1_000]))  # one request may always wait, whatever its size
        with pytest.raises(RequestError, match="the queue is full") as caught:
            queue.put(pieces("a", [10]))
        assert caught.value.retry_after == 50
        assert len(queue) == 1
        queue.fail_all(RequestError(FailureKind.UNAVAILABLE, "ending"))
        assert queue.waiting == 0
        queue.put(pieces("b", [10]))
        assert works(await queue.take(100)) == [("b", 0)]

    run(check)


def test_of_a_full_queue_the_client_that_holds_most_is_refused() -> None:
    async def check(clock: Clock) -> None:
        queue = FairQueue(limit=100, speed=20.0, clock=clock)
        first, last = pieces("greedy", [30, 20]), pieces("greedy", [20, 20])
        queue.put(first)
        queue.put(last)
        with pytest.raises(RequestError, match="the queue is full"):
            queue.put(pieces("greedy", [20]))
        queue.check_room("small")
        queue.put(pieces("small", [15]))
        # The whole last request of the greedy one made room, not a part of it.
        for piece in last:
            with pytest.raises(RequestError, match="the queue is full"):
                await piece.future
        assert not any(piece.future.done() for piece in first)
        assert queue.waiting == 65
        with pytest.raises(RequestError, match="the queue is full"):
            queue.put(pieces("other", [60]))  # it would hold most itself
        queue.put(pieces("other", [45]))
        assert queue.waiting == 60
        assert works(await queue.take(100)) == [("small", 0), ("other", 0)]
        assert queue.waiting == 0
        assert len(queue) == 0

    run(check)


def test_many_greedy_clients_leave_room_for_one_more() -> None:
    async def check(clock: Clock) -> None:
        queue = FairQueue(limit=1_000, speed=20.0, clock=clock)
        refused = 0
        for number in range(200):
            try:
                queue.put(pieces(f"greedy {number % 10}", [20] * 2))
            except RequestError:
                refused += 1
        assert refused >= 150
        assert queue.waiting <= 1_000
        queue.put(pieces("small", [5]))
        assert works(await queue.take(160)) == [("small", 0)]

    run(check)
