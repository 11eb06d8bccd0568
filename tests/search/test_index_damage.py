"""Damaged indexes: whatever is changed, cut or missing is named before anything reads it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from toy_index import ToyEncoder, build, texts

from bertsmith.errors import FolderError
from bertsmith.search.folder import candidates, store, writer
from bertsmith.search.folder.store import FolderStore

pytest.importorskip("usearch")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with all parts: two segments, deleted rows, a graph."""
    path = tmp_path_factory.mktemp("damage") / "index"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "MOST_ROWS", 256)
        patch.setattr(candidates, "EXACT_BELOW", 300)
        with build(path, texts(400), "float16") as opened:
            opened.delete([1, 2])
    assert len(list(path.rglob("graph-*"))) == 1
    return path


def files(path: Path) -> list[Path]:
    return [p for p in sorted(path.rglob("*")) if p.is_file() and p.name != "lock"]


def refused(path: Path, damaged: Path, patch: pytest.MonkeyPatch) -> None:
    """Opening names the file, and the library of the graph is never called."""

    def reached(*_: object, **__: object) -> None:
        pytest.fail("a damaged index reached the library")

    patch.setattr(store, "UsearchGraph", reached)
    with pytest.raises(FolderError) as caught:
        FolderStore.open(path).search(ToyEncoder().queries(["w1"]), 1)
    assert str(damaged) in str(caught.value)


@pytest.mark.parametrize("flips", [24, pytest.param(200, marks=pytest.mark.slow)])
def test_a_flipped_bit(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flips: int
) -> None:
    path = Path(shutil.copytree(sound, tmp_path / "index"))
    random = np.random.default_rng(flips)
    every = files(path)
    for number in range(flips):
        damaged = every[number % len(every)]
        good = damaged.read_bytes()
        bad = bytearray(good)
        place = int(random.integers(len(bad))) if bad else 0
        bad[place : place + 1] = bytes([bad[place] ^ 1 << int(random.integers(8))])
        damaged.write_bytes(bad)
        refused(path, damaged, monkeypatch)
        damaged.write_bytes(good)
    monkeypatch.undo()
    FolderStore.open(path).close()


@pytest.mark.parametrize("cuts", [12, pytest.param(50, marks=pytest.mark.slow)])
def test_a_truncated_file(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: int
) -> None:
    path = Path(shutil.copytree(sound, tmp_path / "index"))
    random = np.random.default_rng(cuts)
    every = files(path)
    for number in range(cuts):
        damaged = every[(number * 7) % len(every)]
        good = damaged.read_bytes()
        damaged.write_bytes(good[: int(random.integers(len(good)))])
        refused(path, damaged, monkeypatch)
        damaged.write_bytes(good)


def test_a_missing_file_or_segment(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, file in enumerate(files(sound)):
        path = Path(shutil.copytree(sound, tmp_path / str(number)))
        damaged = path / file.relative_to(sound)
        damaged.unlink()
        refused(path, damaged, monkeypatch)
    path = Path(shutil.copytree(sound, tmp_path / "index"))
    shutil.rmtree(path / "segments" / "00001")
    refused(path, path / "segments" / "00001", monkeypatch)


def test_a_link_out_of_the_folder_is_not_followed(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copytree(sound, tmp_path / "index"))
    damaged = path / "segments" / "00000" / "texts.jsonl"
    (tmp_path / "elsewhere").write_bytes(damaged.read_bytes())
    damaged.unlink()
    damaged.symlink_to(tmp_path / "elsewhere")
    refused(path, damaged, monkeypatch)


def test_a_newer_format(sound: Path, tmp_path: Path) -> None:
    from bertsmith.files.digest import json_digest

    path = Path(shutil.copytree(sound, tmp_path / "index"))
    content = json.loads((path / "index.json").read_bytes())["index"] | {"format": 2, "new": 1}
    record = {"sha256": json_digest(content), "index": content}
    written = json.dumps(record, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    (path / "index.json").write_text(written, encoding="utf-8")
    with pytest.raises(FolderError, match="has format 2, and this version reads up to 1: update"):
        FolderStore.open(path)
