"""Random numbers by counting: values that splits of documents and seeds of steps rest on."""

from __future__ import annotations

import numpy as np

from bertsmith.random_keys import key_of, mixed_with


def test_values_do_not_change() -> None:
    assert key_of(100, 3, seed=5) >> 1 == 1989921735189252871
    assert key_of(2, 1, seed=-1) >> 1 == 4471644919959683880
    assert key_of(0, 0) == key_of(0, 0, seed=0)
    expected = [16886114407743784434, 16972977063473447543, 14985119172904803730]
    assert mixed_with(7, np.arange(3)).tolist() == expected
