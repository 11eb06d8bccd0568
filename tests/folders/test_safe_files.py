"""Files of a folder are opened inside it, regular, bounded; JSON is read strictly."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

import pytest

from bertsmith.errors import FolderError, UnsafeFileError
from bertsmith.files.safe_folder import JSON_LIMIT, Folder, check_name, parse_json

BAD_NAMES = [
    "..",
    ".",
    "",
    "../secret",
    "/etc/passwd",
    "a/b",
    "a/../../b",
    "a\\b",
    "..\\b",
    "C:x",
    "a\0b",
    "a\nb",
    "\ud800",
    "x" * 300,
    "字" * 100,
    None,
    7,
    ["a"],
    {"a": 1},
    True,
]


@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: ascii(name)[:20])
def test_a_name_that_is_not_one_plain_component_is_refused(name: object) -> None:
    with pytest.raises(UnsafeFileError, match=r"index\.json"):
        check_name(name, source="index.json")


@pytest.mark.parametrize("name", ["model-00001-of-00002.safetensors", "1_Pooling", "词表.txt"])
def test_a_plain_name_is_kept(name: str) -> None:
    assert check_name(name, source="x") == name


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"hello")
    assert Folder.at(tmp_path).read("a.txt", limit=5) == b"hello"


def test_a_file_over_the_limit_is_refused_with_both_sizes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"hello!")
    with pytest.raises(FolderError, match=r"6 bytes.*5 allowed"):
        Folder.at(tmp_path).read("a.txt", limit=5)


def test_a_huge_sparse_file_is_refused_without_reading(tmp_path: Path) -> None:
    with (tmp_path / "config.json").open("wb") as file:
        file.truncate(1 << 40)
    start = time.perf_counter()
    with pytest.raises(FolderError, match=f"{JSON_LIMIT:,}"):
        Folder.at(tmp_path).json("config.json")
    assert time.perf_counter() - start < 0.5


def test_a_missing_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"config\.json is missing; copy"):
        Folder.at(tmp_path).json("config.json")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"nowhere.*nothing there"):
        Folder.at(tmp_path / "nowhere")


@pytest.mark.parametrize("where", ["outside", "inside"])
def test_a_symbolic_link_is_refused(tmp_path: Path, where: str) -> None:
    outside = tmp_path / "secret.json"
    outside.write_text("{}")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "real.json").write_text("{}")
    (folder / "config.json").symlink_to(outside if where == "outside" else "real.json")
    with pytest.raises(UnsafeFileError, match=r"config\.json.*link.*copy"):
        Folder.at(folder).json("config.json")


def test_a_linked_part_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "1_Pooling").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeFileError, match="1_Pooling"):
        Folder.at(folder).part("1_Pooling")


def test_a_pipe_a_device_and_a_socket_are_refused_without_hanging(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(tmp_path)  # the path of a socket may not be long
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        start = time.perf_counter()
        for name in ("pipe", "socket"):
            with pytest.raises(UnsafeFileError, match=f"{name} is a pipe"):
                Folder.at(tmp_path).read(name, limit=10)
        with pytest.raises(UnsafeFileError, match="null is a pipe"):
            Folder.at(Path("/dev")).read("null", limit=10)
    assert time.perf_counter() - start < 1.0


def test_a_hard_link_is_refused_for_a_name_an_index_chose_only(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x")
    folder = tmp_path / "model"
    folder.mkdir()
    os.link(tmp_path / "secret", folder / "model.safetensors")
    assert Folder.at(folder).read("model.safetensors", limit=1) == b"x"
    with pytest.raises(UnsafeFileError, match=r"2 hard links.*cp"):
        Folder.at(folder).open("model.safetensors", source="index.json")


HASH = "0123456789abcdef" * 4


def hub_snapshot(tmp_path: Path) -> Path:
    repository = tmp_path / "models--org--name"
    snapshot = repository / "snapshots" / ("a" * 40)
    (snapshot / "1_Pooling").mkdir(parents=True)
    (repository / "blobs").mkdir()
    (repository / "blobs" / HASH).write_text('{"a": 1}')
    (snapshot / "config.json").symlink_to(f"../../blobs/{HASH}")
    (snapshot / "1_Pooling" / "config.json").symlink_to(f"../../../blobs/{HASH}")
    return snapshot


def test_the_links_of_the_hub_cache_are_followed_exactly(tmp_path: Path) -> None:
    folder = Folder.at(hub_snapshot(tmp_path))
    assert folder.json("config.json") == {"a": 1}
    assert folder.part("1_Pooling").json("config.json") == {"a": 1}


@pytest.mark.parametrize(
    "target",
    [
        "../../../secret",
        "../../blobs/../../secret",
        "../../blobs/secret",
        f"../../../blobs/{HASH}",
        "../blobs/" + HASH,
        "/etc/hostname",
        "../../refs/main",
    ],
)
def test_other_links_in_the_hub_cache_are_refused(tmp_path: Path, target: str) -> None:
    snapshot = hub_snapshot(tmp_path)
    (tmp_path / "secret").write_text("{}")
    (snapshot / "tokenizer.json").symlink_to(target)
    with pytest.raises(UnsafeFileError, match=r"tokenizer\.json"):
        Folder.at(snapshot).json("tokenizer.json")


def test_a_blob_that_is_itself_a_link_is_refused(tmp_path: Path) -> None:
    snapshot = hub_snapshot(tmp_path)
    blob = snapshot.parent.parent / "blobs" / HASH
    (tmp_path / "secret").write_text("{}")
    blob.unlink()
    blob.symlink_to(tmp_path / "secret")
    with pytest.raises(UnsafeFileError):
        Folder.at(snapshot).json("config.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"a": 1, "a": 2}', "'a' stands twice"),
        (b'{"b": {"a": 1, "a": 2}}', "'a' stands twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too many digits"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" * 40 + b"]" * 40, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a": 1', "line 1, column"),
        (b"", "line 1, column"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
        ('{"a": 1}'.encode("utf-16"), "UTF-8"),
        (b'{"a": 1} {"b": 2}', "not JSON"),
        (b"\x00\x00\x00", "not JSON"),
    ],
)
def test_json_that_two_readers_could_take_differently_is_refused(text: bytes, said: str) -> None:
    start = time.perf_counter()
    with pytest.raises(FolderError, match=r"config\.json") as caught:
        parse_json(text, where="config.json")
    assert said in str(caught.value)
    assert time.perf_counter() - start < 0.5


def test_json_with_a_byte_order_mark_is_read() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": 1}', where="x") == {"a": 1}


@pytest.mark.parametrize("text", ["[]", "1", '"a"', "null"])
def test_a_top_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(FolderError, match="must be an object"):
        Folder.at(tmp_path).json_object("config.json")


def test_a_top_that_is_no_list_is_refused(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(FolderError, match="must be a list"):
        Folder.at(tmp_path).json_list("modules.json")
