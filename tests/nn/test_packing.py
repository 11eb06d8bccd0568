"""Packing by token budget: nothing is lost, the budget holds, the order is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.nn.packing import pack


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
