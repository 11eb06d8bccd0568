"""B5: hostile and damaged safetensors files are refused by name, quickly, before any allocation."""

from __future__ import annotations

import json
import struct
import time
import tracemalloc
from pathlib import Path

import pytest
from folder_making import entry, safetensors_bytes, tiny_shapes, tiny_weights

from bertsmith.errors import FolderError, TensorMismatchError, UnsafeFileError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.tensors import open_weights

pytestmark = pytest.mark.reliability

FOUR = b"\0" * 4
HOSTILE = {
    "empty": b"",
    "seven bytes": b"\0" * 7,
    "only a length": struct.pack("<Q", 2),
    "length zero": struct.pack("<Q", 0) + b"{}",
    "length beyond the file": safetensors_bytes({}, length=1000),
    "length over the limit": safetensors_bytes({}, length=11 << 20),
    "length of 2**63": safetensors_bytes({}, length=1 << 63),
    "header is no JSON": safetensors_bytes(b"{nonsense"),
    "header is a list": safetensors_bytes([]),
    "header is a string": safetensors_bytes("abc"),
    "header is not UTF-8": safetensors_bytes(b'{"\xff": 1}'),
    "header nested deep": safetensors_bytes(b'{"a":' + b"[" * 50_000),
    "doubled name": safetensors_bytes(
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
        b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        FOUR,
    ),
    "entry is no object": safetensors_bytes({"a": 1}),
    "entry without dtype": safetensors_bytes({"a": {"shape": [1], "data_offsets": [0, 4]}}, FOUR),
    "entry with more keys": safetensors_bytes({"a": entry([1], 0, 4) | {"code": "x"}}, FOUR),
    "unknown dtype": safetensors_bytes({"a": entry([1], 0, 4, "F31")}, FOUR),
    "object dtype": safetensors_bytes({"a": entry([1], 0, 4, "O")}, FOUR),
    "dtype is a list": safetensors_bytes({"a": entry([1], 0, 4) | {"dtype": ["F32"]}}, FOUR),
    "negative size": safetensors_bytes({"a": entry([-1], 0, 4)}, FOUR),
    "two negative sizes": safetensors_bytes({"a": entry([-1, -1], 0, 4)}, FOUR),
    "size that overflows 64 bit": safetensors_bytes(
        {"a": entry([1 << 32, 1 << 32, 1 << 61], 0, 0)}
    ),
    "size is a float": safetensors_bytes({"a": entry([1.0], 0, 4)}, FOUR),
    "size is true": safetensors_bytes({"a": entry([True], 0, 4)}, FOUR),
    "shape is a number": safetensors_bytes({"a": entry([1], 0, 4) | {"shape": 1}}, FOUR),
    "shape of rank 100": safetensors_bytes({"a": entry([1] * 100, 0, 4)}, FOUR),
    "offsets reversed": safetensors_bytes({"a": entry([1], 4, 0)}, FOUR),
    "offsets negative": safetensors_bytes({"a": entry([1], -4, 0)}, FOUR),
    "three offsets": safetensors_bytes({"a": entry([1], 0, 4) | {"data_offsets": [0, 4, 8]}}, FOUR),
    "offsets beyond the file": safetensors_bytes({"a": entry([2], 0, 8)}, FOUR),
    "shape and bytes disagree": safetensors_bytes({"a": entry([2], 0, 4)}, FOUR),
    "overlap": safetensors_bytes({"a": entry([2], 0, 8), "b": entry([1], 4, 8)}, FOUR * 2),
    "zero size inside another": safetensors_bytes(
        {"a": entry([2], 0, 8), "b": entry([0], 4, 4)}, FOUR * 2
    ),
    "hole between": safetensors_bytes({"a": entry([1], 0, 4), "b": entry([1], 8, 12)}, FOUR * 3),
    "hole before": safetensors_bytes({"a": entry([1], 4, 8)}, FOUR * 2),
    "bytes after the end": safetensors_bytes({"a": entry([1], 0, 4)}, FOUR * 2),
    "metadata of numbers": safetensors_bytes({"__metadata__": {"a": 1}}),
    "metadata is a list": safetensors_bytes({"__metadata__": []}),
    "name with control characters": safetensors_bytes({"a\x1b[2J": entry([1], 0, 4)}, FOUR),
    "name of 10,000 characters": safetensors_bytes({"a" * 10_000: entry([1], 0, 4)}, FOUR),
    "a zip file": b"PK\x03\x04" + b"\0" * 100,
    "a pickle": b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_file_is_refused_by_name_in_no_time(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    start = time.perf_counter()
    with pytest.raises(FolderError, match=r"model\.safetensors"):
        open_weights(Folder.at(tmp_path))
    assert time.perf_counter() - start < 0.1


def test_a_header_of_100_000_tensors_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    header = {f"t{number}": entry([0], 0, 0) for number in range(100_000)}
    (tmp_path / "model.safetensors").write_bytes(safetensors_bytes(header))
    tracemalloc.start()
    start = time.perf_counter()
    with pytest.raises(FolderError, match="10,000 tensors"):
        open_weights(Folder.at(tmp_path))
    seconds = time.perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 0.1
    assert peak < 16 << 20


def test_a_truncated_file_is_called_truncated_at_every_length(tmp_path: Path) -> None:
    whole = tiny_weights()
    for length in [*range(0, 200, 7), *range(200, len(whole), 997), len(whole) - 1]:
        (tmp_path / "model.safetensors").write_bytes(whole[:length])
        with pytest.raises(FolderError, match=r"truncated|too few"):
            open_weights(Folder.at(tmp_path))


def test_padding_spaces_after_the_header_are_fine(tmp_path: Path) -> None:
    content = safetensors_bytes({"a": entry([1], 0, 4)}, FOUR, padding=b"     ")
    (tmp_path / "model.safetensors").write_bytes(content)
    with open_weights(Folder.at(tmp_path)) as weights:
        assert weights.shapes == {"a": (1,)}


@pytest.mark.parametrize("dtype", ["F64", "F32", "F16", "BF16"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_value_that_is_not_finite_is_refused_naming_the_tensor(
    tmp_path: Path, dtype: str, value: str
) -> None:
    import torch

    kinds = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16}
    tensor = torch.ones(100, dtype=kinds.get(dtype, torch.bfloat16))
    tensor[63] = float(value)
    data = bytes(tensor.view(torch.uint8).numpy().data)
    content = safetensors_bytes({"layer.weight": entry([100], 0, len(data), dtype)}, data)
    (tmp_path / "model.safetensors").write_bytes(content)
    with (
        open_weights(Folder.at(tmp_path)) as weights,
        pytest.raises(TensorMismatchError, match=r"layer\.weight .*not finite"),
    ):
        weights.read("layer.weight", dtype=torch.float32)


@pytest.mark.parametrize(("dtype", "kind"), [("float32", "float32"), ("float16", "float16")])
def test_a_value_beyond_the_range_of_the_model_is_refused_naming_the_tensor(
    tmp_path: Path, dtype: str, kind: str
) -> None:
    """Finite as it is stored, infinite as it would be used."""
    import torch

    data = struct.pack("<2d", 1.0, -1e300)
    content = safetensors_bytes({"layer.weight": entry([2], 0, 16, "F64")}, data)
    (tmp_path / "model.safetensors").write_bytes(content)
    message = rf"layer\.weight holds values beyond the range of {kind}"
    with open_weights(Folder.at(tmp_path)) as weights:
        with pytest.raises(TensorMismatchError, match=message):
            weights.read("layer.weight", dtype=getattr(torch, dtype))
        assert weights.read("layer.weight", dtype=torch.float64)[1] == -1e300


def test_large_finite_values_whose_sum_overflows_are_kept(tmp_path: Path) -> None:
    import torch

    data = struct.pack("<4f", 3e38, 3e38, 3e38, 1.0)
    content = safetensors_bytes({"a": entry([4], 0, 16)}, data)
    (tmp_path / "model.safetensors").write_bytes(content)
    with open_weights(Folder.at(tmp_path)) as weights:
        assert weights.read("a", dtype=torch.float32)[3] == 1.0


def test_an_integer_tensor_is_no_weight(tmp_path: Path) -> None:
    import torch

    content = safetensors_bytes({"a": entry([1], 0, 8, "I64")}, b"\0" * 8)
    (tmp_path / "model.safetensors").write_bytes(content)
    with (
        open_weights(Folder.at(tmp_path)) as weights,
        pytest.raises(TensorMismatchError, match="a is stored as I64"),
    ):
        weights.read("a", dtype=torch.float32)


def shards(path: Path) -> dict[str, str]:
    """Two shards of the tiny model and the index that names them."""
    shapes = tiny_shapes()
    names = list(shapes)
    halves = {"model-1.safetensors": names[:10], "model-2.safetensors": names[10:]}
    for file, part in halves.items():
        (path / file).write_bytes(tiny_weights({name: shapes[name] for name in part}))
    return {name: file for file, part in halves.items() for name in part}


def write_index(path: Path, places: object) -> None:
    text = json.dumps({"metadata": {}, "weight_map": places})
    (path / "model.safetensors.index.json").write_text(text)


def test_shards_are_read_as_one(tmp_path: Path) -> None:
    write_index(tmp_path, shards(tmp_path))
    with open_weights(Folder.at(tmp_path)) as weights:
        assert {name: list(shape) for name, shape in weights.shapes.items()} == tiny_shapes()


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    write_index(tmp_path, shards(tmp_path))
    (tmp_path / "model-2.safetensors").unlink()
    with pytest.raises(FolderError, match=r"missing: model-2\.safetensors"):
        open_weights(Folder.at(tmp_path))


def test_a_tensor_that_is_not_in_its_shard_is_named(tmp_path: Path) -> None:
    places = shards(tmp_path) | {"ghost.weight": "model-2.safetensors"}
    write_index(tmp_path, places)
    with pytest.raises(TensorMismatchError, match=r"ghost\.weight \(in model-2"):
        open_weights(Folder.at(tmp_path))


def test_a_tensor_the_index_does_not_know_is_named(tmp_path: Path) -> None:
    places = shards(tmp_path)
    places.pop("pooler.dense.bias")
    write_index(tmp_path, places)
    with pytest.raises(TensorMismatchError, match=r"pooler\.dense\.bias"):
        open_weights(Folder.at(tmp_path))


@pytest.mark.parametrize("places", [None, {}, [], "x", {"a": 1}, {"a": None}, {"a": ["b"]}])
def test_an_index_without_names_is_refused(tmp_path: Path, places: object) -> None:
    shards(tmp_path)
    write_index(tmp_path, places)
    with pytest.raises(FolderError, match=r"index\.json"):
        open_weights(Folder.at(tmp_path))


def test_an_index_cannot_name_a_pickle(tmp_path: Path) -> None:
    places = shards(tmp_path)
    (tmp_path / "model-1.safetensors").rename(tmp_path / "model-1.bin")
    write_index(tmp_path, {k: v.replace("1.safetensors", "1.bin") for k, v in places.items()})
    with pytest.raises(UnsafeFileError, match=r"model-1\.bin"):
        open_weights(Folder.at(tmp_path))
