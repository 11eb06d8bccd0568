"""What ranks do as one, with threads for ranks: texts arrive, and a fault of one is everybody's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.errors import BertsmithError, DivergedError, MissingExtraError, WriteError
from bertsmith.training.execution.rank_sync import gather_text, on_first, together
from bertsmith.training.execution.ranks import Ranks


class Shared:
    """Where the threads meet."""

    def __init__(self, world: int) -> None:
        self.world = world
        self.barrier = threading.Barrier(world, timeout=20)
        self.given: list[Mapping[str, float]] = [{}] * world


class ThreadRank(Ranks):
    """One of several threads that add up numbers as ranks do."""

    def __init__(self, shared: Shared, rank: int) -> None:
        self._shared = shared
        self.world, self.rank, self.is_first = shared.world, rank, rank == 0

    def sum_counts(self, counts: Mapping[str, float]) -> dict[str, float]:
        self._shared.given[self.rank] = counts
        self._shared.barrier.wait()
        every = list(self._shared.given)
        self._shared.barrier.wait()
        assert len({tuple(sorted(one)) for one in every}) == 1, "ranks count different things"
        return {name: sum(one[name] for one in every) for name in counts}

    def any(self, flag: bool) -> bool:
        return self.sum_counts({"flag": float(flag)})["flag"] > 0


def on_ranks(world: int, action: Callable[[ThreadRank], Any]) -> list[Any]:
    """What the action gives on each rank; an exception counts as a result."""
    shared = Shared(world)

    def one(rank: int) -> Any:
        try:
            return action(ThreadRank(shared, rank))
        except Exception as fault:
            return fault

    with ThreadPoolExecutor(world) as pool:
        return list(pool.map(one, range(world)))


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
def test_every_rank_gets_every_text(texts: list[str]) -> None:
    found = on_ranks(len(texts), lambda ranks: gather_text(ranks, texts[ranks.rank]))
    assert found == [texts] * len(texts)


def test_what_is_no_text_arrives_escaped() -> None:
    assert on_ranks(2, lambda ranks: gather_text(ranks, "a\udcff")) == [["a\\udcff"] * 2] * 2


def test_without_a_fault_each_rank_keeps_its_own_result() -> None:
    assert on_ranks(3, lambda ranks: together(ranks, lambda: ranks.rank)) == [0, 1, 2]
    assert on_ranks(2, lambda ranks: on_first(ranks, lambda: "made")) == ["made", None]


def test_a_fault_of_one_rank_is_raised_on_all_with_its_kind_and_message() -> None:
    def fails(ranks: ThreadRank) -> None:
        if ranks.rank == 1:
            raise WriteError("no room for model.safetensors")

    found = on_ranks(3, lambda ranks: together(ranks, lambda: fails(ranks)))
    assert [type(fault) for fault in found] == [WriteError] * 3
    assert str(found[1]) == "no room for model.safetensors"
    assert str(found[0]) == str(found[2]) == "rank 1 failed: no room for model.safetensors"


def test_several_faults_stay_where_they_are_and_others_hear_of_the_first() -> None:
    def fails(ranks: ThreadRank) -> None:
        if ranks.rank == 1:
            raise DivergedError("one")
        if ranks.rank == 2:
            raise KeyError("two")

    found = on_ranks(3, lambda ranks: together(ranks, lambda: fails(ranks)))
    assert [type(fault) for fault in found] == [DivergedError, DivergedError, KeyError]
    assert str(found[0]) == "rank 1 failed: one"


@pytest.mark.parametrize("fault", [KeyError("a"), MissingExtraError("zstandard", "zstd")])
def test_a_fault_that_cannot_be_made_again_is_told_all_the_same(fault: Exception) -> None:
    def fails() -> None:
        raise fault

    found = on_ranks(2, lambda ranks: on_first(ranks, fails))
    assert found[0] is fault
    assert type(found[1]) is BertsmithError
    assert str(found[1]) == f"rank 0 failed: {fault}"


def test_one_process_raises_what_was_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        together(Ranks(), lambda: 1 // 0)
    assert gather_text(Ranks(), "alone") == ["alone"]
