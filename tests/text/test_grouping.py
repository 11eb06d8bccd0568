"""Groups of bounded size keep the order and read no further than they have to."""

import pytest

from bertsmith.text.blocks import groups


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], []),
        (["a", "b", "c", "d"], [["a", "b", "c"], ["d"]]),
        (["aaa", "bbb", "c"], [["aaa"], ["bbb", "c"]]),
        (["", "a" * 9, ""], [[""], ["a" * 9], [""]]),
    ],
)
def test_a_group_is_full_by_number_or_by_size(items: list[str], expected: list[list[str]]) -> None:
    assert list(groups(items, 3, size=len, most_size=5)) == expected


def test_a_full_group_is_yielded_before_the_next_item_is_read() -> None:
    items = iter(range(5))
    assert next(groups(items, 2)) == [0, 1]
    assert next(items) == 2
