"""Packing by token budget: nothing is lost, the budget holds, the order is kept."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.nn.packing import in_passes, pack


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 100))
def test_every_item_is_in_one_batch_within_the_budget(sizes, budget):
    batches = list(pack(sizes, budget))
    assert sorted(item for batch in batches for item in batch) == list(range(len(sizes)))
    for batch in batches:
        assert sum(sizes[item] for item in batch) <= budget or len(batch) == 1
    order = [item for batch in batches for item in batch]
    assert order == sorted(order, key=lambda item: (-sizes[item], item))


@pytest.mark.parametrize(
    ("order", "expected"),
    [(None, [[1, 3], [0, 2, 4]]), ([0, 1, 2, 3, 4], [[0, 1], [2, 3, 4]]), ([], [])],
)
def test_an_order_of_ones_own_is_kept(order, expected):
    assert list(pack([3, 5, 3, 5, 2], 10, order=order)) == expected


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 64))
def test_results_of_passes_are_in_the_order_of_the_items(sizes: list[int], budget: int) -> None:
    passes: list[list[int]] = []

    def run(numbers: list[int]) -> Iterator[tuple[int, int]]:
        passes.append(numbers)
        return ((number, sizes[number]) for number in numbers)

    assert in_passes(sizes, budget, run) == list(enumerate(sizes))
    assert passes == list(pack(sizes, budget))


def test_a_pass_that_loses_an_item_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        in_passes([1, 1], 2, lambda numbers: numbers[:1])
