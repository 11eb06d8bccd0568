"""Packing texts into batches of rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.runtime.engines.batches import pack_rows


def texts(lengths):
    return [np.full(length, number, dtype=np.int32) for number, length in enumerate(lengths)]


@given(st.lists(st.integers(1, 40), max_size=60), st.integers(1, 100))
def test_packing_loses_nothing_and_keeps_the_budget(lengths, budget):
    batches = pack_rows(texts(lengths), budget=budget)
    seen = [number for batch in batches for number in batch.texts]
    assert sorted(seen) == list(range(len(lengths)))
    for batch in batches:
        assert batch.lengths == tuple(lengths[number] for number in batch.texts)
        assert len(batch.ids) <= budget or len(batch.texts) == 1
        for place, number in enumerate(batch.texts):
            rows = batch.ids[batch.starts[place] : batch.starts[place + 1]]
            assert (rows == number).all()


def test_long_texts_go_first_so_that_streams_end_together():
    batches = pack_rows(texts([3, 9, 1, 7]), budget=10)
    assert [batch.lengths for batch in batches] == [(9,), (7, 3), (1,)]


def test_no_texts_give_no_batches():
    assert pack_rows([], budget=8) == []
