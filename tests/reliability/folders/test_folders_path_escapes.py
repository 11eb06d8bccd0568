"""B3: nothing that a folder names is opened outside of it, and no pipe makes a reader hang."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from folder_making import tiny_folder, tiny_shapes, tiny_weights

from bertsmith.errors import BertsmithError, UnsafeFileError
from bertsmith.folders.convert import convert
from bertsmith.folders.describe import describe
from bertsmith.folders.read import load_model, load_tokenizer, read_folder

pytestmark = pytest.mark.reliability

opened: list[str] = []
listening = [False]


def _listen(event: str, given: tuple[object, ...]) -> None:
    if listening[0] and event == "open" and isinstance(given[0], str | os.PathLike):
        opened.append(os.fspath(given[0]))


sys.addaudithook(_listen)


@pytest.fixture
def secrets_of(tmp_path: Path) -> Iterator[Path]:
    """A place beside the folder whose files nobody may open."""
    place = tmp_path / "secrets"
    place.mkdir()
    (place / "model.safetensors").write_bytes(tiny_weights())
    (place / "config.json").write_text("{}")
    (place / "vocab.txt").write_text("secret")
    opened.clear()
    yield place
    listening[0] = False


def check_nothing_outside(folder: Path, secrets: Path) -> None:
    """Load the folder every way there is; only files inside may be opened."""
    calls: list[Callable[[], object]] = [
        lambda: load_model(folder),
        lambda: load_tokenizer(folder),
        lambda: read_folder(folder),
        lambda: describe(folder, hashes=True),
        lambda: convert(folder, folder.parent / "out", overwrite=True),
    ]
    start = time.perf_counter()
    refusals = 0
    for call in calls:
        listening[0] = True
        try:
            call()
        except BertsmithError:
            refusals += 1
        finally:
            listening[0] = False
    assert time.perf_counter() - start < 10.0
    real = os.path.realpath(secrets)
    outside = [
        path for path in opened if os.path.realpath(path).startswith((real, "/etc/", "/dev/zero"))
    ]
    assert outside == []
    assert refusals >= 1


NAMES = [
    "../secrets/model.safetensors",
    "..",
    ".",
    "/etc/passwd",
    "/dev/zero",
    "a/../../secrets/model.safetensors",
    "./model-2.safetensors",
    "sub/model.safetensors",
    "..\\secrets\\model.safetensors",
    "model.safetensors\0.txt",
    "\0",
    "",
    "x" * 5000,
    "C:\\secrets",
    "file:///etc/passwd",
    "~/secrets",
    "\ud800",
    "con\nfig",
    None,
    3,
    ["model.safetensors"],
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:24])
def test_a_shard_index_cannot_name_a_file_outside(
    name: object, tmp_path: Path, secrets_of: Path
) -> None:
    folder = tiny_folder(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    places = dict.fromkeys(tiny_shapes(), name)
    text = json.dumps({"weight_map": places})
    (folder / "model.safetensors.index.json").write_text(text)
    with pytest.raises(UnsafeFileError, match=r"index\.json"):
        load_model(folder)
    check_nothing_outside(folder, secrets_of)


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:24])
def test_a_module_list_cannot_name_a_folder_outside(
    name: object, tmp_path: Path, secrets_of: Path
) -> None:
    folder = tiny_folder(tmp_path / "m")
    kinds = ("Transformer", "Pooling")
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": name} for kind in kinds]
    (folder / "modules.json").write_text(json.dumps(modules))
    check_nothing_outside(folder, secrets_of)


def link(folder: Path, secrets: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to(secrets / "model.safetensors")


def relative_link(folder: Path, secrets: Path) -> None:
    (folder / "vocab.txt").unlink()
    (folder / "vocab.txt").symlink_to("../secrets/vocab.txt")


def link_to_link(folder: Path, secrets: Path) -> None:
    (folder / "a").symlink_to(secrets / "config.json")
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("a")


def linked_part(folder: Path, secrets: Path) -> None:
    (folder / "1_Pooling").symlink_to(secrets)
    modules = [
        {"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))


def loop(folder: Path, secrets: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("config.json")


def pipe(folder: Path, secrets: Path) -> None:
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")


def pipe_config(folder: Path, secrets: Path) -> None:
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")


def pipe_vocabulary(folder: Path, secrets: Path) -> None:
    (folder / "vocab.txt").unlink()
    os.mkfifo(folder / "vocab.txt")


def device(folder: Path, secrets: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("/dev/zero")


def folder_as_file(folder: Path, secrets: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()


def hard_linked_shard(folder: Path, secrets: Path) -> None:
    (folder / "model.safetensors").unlink()
    os.link(secrets / "model.safetensors", folder / "shard.safetensors")
    places = dict.fromkeys(tiny_shapes(), "shard.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


def forged_cache(folder: Path, secrets: Path) -> None:
    """A folder that only looks like the cache of the hub."""
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("../../blobs/../secrets/model.safetensors")


TRICKS = [
    link,
    relative_link,
    link_to_link,
    linked_part,
    loop,
    pipe,
    pipe_config,
    pipe_vocabulary,
    device,
    folder_as_file,
    hard_linked_shard,
    forged_cache,
]


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.__name__)
def test_links_pipes_and_devices_are_refused_without_opening_what_is_behind(
    trick: Callable[[Path, Path], None], tmp_path: Path, secrets_of: Path
) -> None:
    folder = tiny_folder(tmp_path / "m")
    trick(folder, secrets_of)
    check_nothing_outside(folder, secrets_of)


def test_a_folder_reached_through_a_link_of_the_user_is_read(tmp_path: Path) -> None:
    tiny_folder(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert load_model(tmp_path / "link").model.spec.hidden == 16


def test_a_snapshot_of_the_hub_cache_is_read(tmp_path: Path) -> None:
    repository = tmp_path / "models--org--name"
    whole = tiny_folder(tmp_path / "whole")
    snapshot = repository / "snapshots" / ("b" * 40)
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir()
    for number, file in enumerate(sorted(whole.iterdir())):
        blob = f"{number:x}" * 40
        file.rename(repository / "blobs" / blob)
        (snapshot / file.name).symlink_to(f"../../blobs/{blob}")
    assert load_model(snapshot).tokenizer.vocab_size == 12
