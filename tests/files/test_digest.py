"""Digests of files and of JSON values: known values, and what must not change them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from bertsmith.errors import FolderError
from bertsmith.files.digest import file_digest, json_digest, prefix_hash
from bertsmith.files.strict_json import json_values, write_json


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc" * 1_000_000)
    assert file_digest(path) == hashlib.sha256(b"abc" * 1_000_000).hexdigest()
    first = prefix_hash(path, 3)
    assert first is not None
    assert first.hexdigest() == hashlib.sha256(b"abc").hexdigest()
    assert prefix_hash(path, 3_000_001) is None
    with pytest.raises(FolderError, match="cannot read"):
        file_digest(tmp_path / "b")


def test_the_digest_of_json_ignores_the_order_of_keys() -> None:
    assert json_digest({"a": 1, "b": [2, None]}) == json_digest({"b": [2, None], "a": 1})
    assert json_digest({"a": 1}) != json_digest({"a": 2})


def test_values_that_json_does_not_know_become_null() -> None:
    value = {"a": (float("nan"), 1.5), 2: np.array([np.inf, 1.0]), "c": np.float64("nan")}
    assert json_values(value) == {"a": [None, 1.5], "2": [None, 1.0], "c": None}
    assert json_values(np.int64(3)) == 3


def test_a_file_of_json_is_valid_whatever_is_written(tmp_path: Path) -> None:
    value = {"loss": float("inf"), "text": "naïve \ud800 読"}
    write_json(tmp_path / "a.json", value)
    text = (tmp_path / "a.json").read_text("utf-8")  # strict: no half of a character
    assert "naïve \\ud800 読" in text
    assert json.loads(text) == {"loss": None, "text": value["text"]}
