"""Files of hdf5 that read other files, loop, lie about their size, or are damaged."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from elmo_fixture import CHARACTERS, PROJECTION, write_published

from bertsmith.errors import BertsmithError, FolderError, TensorMismatchError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.word_encoders.hdf5 import read_hdf5
from bertsmith.folders.word_encoders.published_elmo import read_published

h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.reliability
NAME, SHAPE = "CNN_proj/b_proj", (PROJECTION,)
FLIPS = 400 if os.environ.get("BERTSMITH_LONG") else 25


def other_file(folder: Path) -> Path:
    """A file outside of the folder that holds what is wanted."""
    path = folder.parent / f"{folder.name}-other.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset(NAME, data=np.ones(SHAPE, dtype="f4"))
    path.with_suffix(".raw").write_bytes(np.ones(SHAPE, dtype="<f4").tobytes())
    return path


def virtual(file: h5py.File, other: Path) -> None:
    layout = h5py.VirtualLayout(shape=SHAPE, dtype="f4")
    layout[:] = h5py.VirtualSource(str(other), NAME, shape=SHAPE)
    file.create_virtual_dataset(NAME, layout)


def of_itself(file: h5py.File, other: Path) -> None:
    file.create_dataset("hidden", data=np.ones(SHAPE, dtype="f4"))
    layout = h5py.VirtualLayout(shape=SHAPE, dtype="f4")
    layout[:] = h5py.VirtualSource(".", "hidden", shape=SHAPE)
    file.create_virtual_dataset(NAME, layout)


def external(file: h5py.File, other: Path) -> None:
    raw = [(str(other.with_suffix(".raw")), 0, 4 * PROJECTION)]
    file.create_dataset(NAME, SHAPE, dtype="f4", external=raw)


def external_link(file: h5py.File, other: Path) -> None:
    file[NAME] = h5py.ExternalLink(str(other), NAME)


def soft_link(file: h5py.File, other: Path) -> None:
    file["hidden"] = np.ones(SHAPE, dtype="f4")
    file[NAME] = h5py.SoftLink("/hidden")


def looping_link(file: h5py.File, other: Path) -> None:
    file[NAME] = h5py.SoftLink(f"/{NAME}")


def linked_group(file: h5py.File, other: Path) -> None:
    del file["CNN_proj"]
    file["CNN_proj"] = h5py.ExternalLink(str(other), "CNN_proj")


def compact(file: h5py.File, other: Path) -> None:
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_layout(h5py.h5d.COMPACT)
    space, kind = h5py.h5s.create_simple(SHAPE), h5py.h5t.py_create(np.dtype("f4"))
    h5py.h5d.create(file["CNN_proj"].id, b"b_proj", kind, space, plan)


def szip(file: h5py.File, other: Path) -> None:
    file.create_dataset(NAME, data=np.ones(SHAPE, dtype="f4"), chunks=SHAPE, compression="lzf")


def never_written(file: h5py.File, other: Path) -> None:
    file.create_dataset(NAME, SHAPE, dtype="f4", chunks=SHAPE)


def integers(file: h5py.File, other: Path) -> None:
    file.create_dataset(NAME, data=np.ones(SHAPE, dtype="i4"))


def a_group(file: h5py.File, other: Path) -> None:
    file.create_group(NAME)


MADE: list[tuple[Callable[[h5py.File, Path], None], str]] = [
    (virtual, "virtual layout"),
    (of_itself, "virtual layout"),
    (external, "external layout"),
    (external_link, "is a link"),
    (soft_link, "is a link"),
    (looping_link, "is a link"),
    (linked_group, "CNN_proj is a link"),
    (compact, "compact layout"),
    (szip, "filter 32000"),
    (never_written, "and 0 are stored"),
    (integers, "only floats"),
    (a_group, "no tensor"),
]


@pytest.mark.parametrize(("make", "says"), MADE)
def test_what_is_not_stored_in_the_file_itself_is_refused(
    make: Callable[[h5py.File, Path], None], says: str, tmp_path: Path
) -> None:
    folder = tmp_path / "elmo"
    write_published(folder)
    with h5py.File(folder / "weights.hdf5", "a") as file:
        del file[NAME]
        make(file, other_file(folder))
    with pytest.raises(TensorMismatchError, match=says) as caught:
        read_published(folder)
    assert str(folder / "weights.hdf5") in str(caught.value)


@pytest.mark.parametrize("packing", [{"compression": "gzip", "shuffle": True}, {"chunks": (3,)}])
def test_what_published_files_may_use_is_read(packing: dict[str, object], tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal(300).astype("f4")
    with h5py.File(tmp_path / "weights.hdf5", "w") as file:
        file.create_dataset("a/b", data=values, **packing)
    read = read_hdf5(Folder.at(tmp_path), "weights.hdf5", {"a/b": (300,)}, source="options.json")
    assert np.array_equal(read["a/b"].numpy(), values)


@pytest.mark.parametrize("link", ["hard", "soft"])
def test_weights_that_are_a_link_are_refused(link: str, tmp_path: Path) -> None:
    folder = tmp_path / "elmo"
    write_published(folder)
    weights, other = folder / "weights.hdf5", tmp_path / "elsewhere.hdf5"
    weights.rename(other)
    if link == "hard":
        weights.hardlink_to(other)
    else:
        weights.symlink_to(other)
    with pytest.raises(FolderError, match="2 hard links" if link == "hard" else "symbolic link"):
        read_published(folder)


def test_a_packed_bomb_takes_no_memory(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "weights.hdf5", "w") as file:
        zeros = np.zeros((1 << 12, 1 << 12), dtype="f4")
        file.create_dataset("a", data=zeros, compression="gzip")
        file.create_dataset("b", data=np.ones(1 << 21, dtype="f4"))
    shapes = {"a": (1 << 12, 1 << 12)}
    with pytest.raises(TensorMismatchError, match="67,108,864 bytes, and"):
        read_hdf5(Folder.at(tmp_path), "weights.hdf5", shapes, source="options.json")


def test_flipped_bits_are_refused_or_are_numbers_and_never_a_traceback(tmp_path: Path) -> None:
    folder = tmp_path / "elmo"
    write_published(folder)
    weights = folder / "weights.hdf5"
    whole, draw = weights.read_bytes(), random.Random(7)
    refused: list[str] = []
    for _ in range(FLIPS):
        damaged = bytearray(whole)
        for _ in range(3):
            damaged[draw.randrange(len(damaged) // 4)] ^= 1 << draw.randrange(8)
        weights.write_bytes(damaged)
        begun = time.monotonic()
        try:
            read_published(folder)
        except BertsmithError as fault:
            refused.append(str(fault))
        assert time.monotonic() - begun < 30
    assert refused
    assert all(str(weights) in one for one in refused)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("lstm", "n_layers"), 10**9),
        (("lstm", "dim"), 10**12),
        (("lstm", "projection_dim"), 10**7),
        (("char_cnn", "filters"), [[1, 4]] * 10**5),
        (("char_cnn", "filters"), [[1, 10**12]]),
        (("char_cnn", "n_highway"), 10**9),
        (("char_cnn", "max_characters_per_token"), 10**9),
        (("char_cnn", "embedding"), {"dim": CHARACTERS * 10**6}),
    ],
)
def test_numbers_of_the_options_have_bounds(
    place: tuple[str, str], value: object, tmp_path: Path
) -> None:
    write_published(tmp_path)
    path = tmp_path / "options.json"
    options = json.loads(path.read_text())
    options[place[0]][place[1]] = value
    path.write_text(json.dumps(options))
    begun = time.process_time()
    with pytest.raises(BertsmithError, match=r"options\.json"):
        read_published(tmp_path)
    assert time.process_time() - begun < 2
