"""What of a record counts for its hash, and what does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden_hashes
import golden_records
import numpy as np
import pytest
from golden_hashes import GoldenError, files_hash, output_hash
from golden_records import canonical, record_hash, record_lines
from safetensors.numpy import save_file

RECORD = {
    "model": "start",
    "seconds": 1.5,
    "best": {"step": 8, "f1": 0.25, "seconds": 2.0},
    "curves": [{"step": 4, "loss": 1.5}, {"step": 8, "loss": 1.25}],
}


def write(folder: Path, record: object = RECORD, name: str = "proof.json") -> Path:
    path = folder / "run" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record), encoding="utf-8")
    return path.parent


def hashed(work: Path, record: object = RECORD, name: str = "proof.json") -> str:
    return record_hash(write(work, record, name), work)


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": 9.0},
        {"best": RECORD["best"] | {"seconds": 0.1}},  # type: ignore[operator]
        {"bertsmith": "0.2.0", "torch": "9"},
        {"date": "2030-01-01", "host": "other", "cpu": "other"},
    ],
)
def test_durations_dates_machines_and_releases_do_not_count(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    assert hashed(tmp_path, RECORD | change) == hashed(tmp_path, RECORD)


@pytest.mark.parametrize(
    "change",
    [
        {"best": {"step": 8, "f1": 0.2500000000000001}},
        {"best": {"step": 9, "f1": 0.25}},
        {"best": {"step": 8, "recall": 0.25}},
        {"best": {"step": 8, "f1": "0.25"}},
        {"curves": [{"step": 8, "loss": 1.25}, {"step": 4, "loss": 1.5}]},
        {"curves": []},
        {"note": None},
    ],
)
def test_values_their_names_and_their_order_count(tmp_path: Path, change: dict[str, Any]) -> None:
    assert hashed(tmp_path, RECORD | change) != hashed(tmp_path, RECORD)


def test_the_order_of_keys_does_not_count(tmp_path: Path) -> None:
    assert hashed(tmp_path, dict(reversed(RECORD.items()))) == hashed(tmp_path, RECORD)


def test_the_folder_of_the_work_does_not_count_but_the_path_inside_does(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    first = hashed(one, {"data": f"{one}/rows.tsv"})
    assert hashed(other, {"data": f"{other}/rows.tsv"}) == first
    assert hashed(other, {"data": f"{other}/more.tsv"}) != first


def test_the_name_of_the_file_counts_and_checkpoints_do_not(tmp_path: Path) -> None:
    first = hashed(tmp_path / "one")
    assert hashed(tmp_path / "other", name="result.json") != first
    write(tmp_path / "one", {"step": 1}, "checkpoints/step-1/state.json")
    assert hashed(tmp_path / "one") == first


def test_rows_of_a_log_that_the_clock_writes_do_not_count(tmp_path: Path) -> None:
    rows = [{"kind": "train", "loss": 2.0}, {"kind": "eval", "loss": 1.0}, {"kind": "end"}]
    kept = "".join(json.dumps(row) + "\n" for row in rows)
    fewer = "".join(json.dumps(row) + "\n" for row in rows[1:])
    assert canonical(kept, "log.jsonl", tmp_path) == canonical(fewer, "log.jsonl", tmp_path)
    assert canonical(kept, "log.jsonl", tmp_path) == [
        'log.jsonl:000000.kind = "eval"',
        "log.jsonl:000000.loss = 1.0",
        'log.jsonl:000001.kind = "end"',
    ]


def test_a_place_that_was_renamed_has_the_hash_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = hashed(tmp_path / "before", {"name": "toy", "best": {"f1": 0.25}})
    record = {"kind": "toy", "result": {"best": {"f1": 0.25}}}
    folder = write(tmp_path / "now", record, "record.json")
    assert record_hash(folder, tmp_path / "now") != before
    renamed = {"record.json:result.": "proof.json:", "record.json:kind": "proof.json:name"}
    monkeypatch.setitem(golden_records.RENAMED, "other", renamed)
    assert record_hash(folder, tmp_path / "now") != before
    monkeypatch.setitem(golden_records.RENAMED, "toy", renamed)
    assert record_hash(folder, tmp_path / "now") == before
    assert "proof.json:best.f1 = 0.25" in record_lines(folder, tmp_path / "now")


def test_what_a_kind_of_record_has_in_addition_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golden_records, "ADDED", {"toy": frozenset({"kind", "data.new"})})
    before = hashed(tmp_path, {"data": {"rows": 3}})
    assert hashed(tmp_path, {"kind": "toy", "data": {"rows": 3, "new": 1}}) == before
    assert hashed(tmp_path, {"kind": "other", "data": {"rows": 3, "new": 1}}) != before
    assert hashed(tmp_path, {"kind": "toy", "data": {"rows": 4, "new": 1}}) != before


def test_what_is_printed_counts_as_json_or_as_text(tmp_path: Path) -> None:
    assert output_hash('{"a": 1, "b": 2}', tmp_path) == output_hash(' {"b":2,"a":1}\n', tmp_path)
    assert output_hash("a line\n", tmp_path) != output_hash("another\n", tmp_path)
    with pytest.raises(GoldenError, match="nothing was printed"):
        output_hash("\n", tmp_path)


def test_files_count_by_tensors_values_and_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(where: str, *, tensor: float = 1.0, key: str = "w", raw: bytes = b"x") -> str:
        folder = tmp_path / where
        (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        save_file({key: np.float32([tensor, 2])}, folder / "model.safetensors", {"made": where})
        save_file({where: np.float32([3])}, folder / "checkpoints" / "model.safetensors")
        (folder / "rows.jsonl").write_text('{"score": 1, "seconds": 3}', encoding="utf-8")
        (folder / "words.bin").write_bytes(raw)
        return files_hash(folder, ("**/*",), tmp_path)

    first = made("one")
    assert made("two") == first  # also with other names in a checkpoint
    assert made("three", tensor=1.5) != first
    assert made("four", raw=b"y") != first
    assert made("five", key="v") != first
    monkeypatch.setitem(golden_hashes.RENAMED, "v", "w")
    assert made("five", key="v") == first
    with pytest.raises(GoldenError, match="nothing called"):
        files_hash(tmp_path / "one", ("*.npy",), tmp_path)
