"""A folder is written whole or not at all, with the modes the umask gives, synced first."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from pathlib import Path

import pytest
import safetensors
import torch
from folder_models import same_weights, tiny_model, tiny_tokenizer
from safetensors.torch import load_file

from bertsmith.errors import TensorMismatchError, WriteError
from bertsmith.files import atomic_folder
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model, write_tensors
from bertsmith.models.sentence_spec import SentenceSettings

pytestmark = pytest.mark.usefixtures("edited_folders")


def tree(path: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_the_files_that_other_tools_need_are_there(tmp_path: Path) -> None:
    save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m", sentence=SentenceSettings())
    assert set(tree(tmp_path / "m")) == {
        "config.json",
        "hashes.json",
        "model.safetensors",
        "bertsmith.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "vocab.txt",
        "modules.json",
        "1_Pooling/config.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
    }


def test_a_plain_encoder_gets_no_sentence_files(tmp_path: Path) -> None:
    save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m")
    assert not (tmp_path / "m" / "modules.json").exists()


def test_the_weights_are_a_file_safetensors_reads(tmp_path: Path) -> None:
    tensors = {
        "b": torch.randn(3, 5),
        "a": torch.randn(7).double(),
        "half": torch.randn(3).half(),
        "brain": torch.randn(2, 2).bfloat16(),
        "turned": torch.randn(4, 6).T,
        "scalar": torch.tensor(2.5),
        "none": torch.empty(0, 4),
    }
    write_tensors(tmp_path / "x.safetensors", tensors)
    again = load_file(tmp_path / "x.safetensors")
    assert again.keys() == tensors.keys()
    assert all(torch.equal(again[name], tensors[name]) for name in tensors)
    with safetensors.safe_open(tmp_path / "x.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}


def test_saving_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        save_model(tiny_model(), tiny_tokenizer(), tmp_path / name, sentence=SentenceSettings())
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


@pytest.mark.parametrize(("mask", "file", "folder"), [(0o022, 0o644, 0o755), (0o077, 0o600, 0o700)])
def test_modes_follow_the_umask(tmp_path: Path, mask: int, file: int, folder: int) -> None:
    before = os.umask(mask)
    try:
        save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m", sentence=SentenceSettings())
    finally:
        os.umask(before)
    for path in [tmp_path / "m", *(tmp_path / "m").rglob("*")]:
        expected = folder if path.is_dir() else file
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_a_file_a_library_wrote_0600_is_opened_to_the_umask(tmp_path: Path) -> None:
    with atomic_folder.staged_folder(tmp_path / "m", needed=1, overwrite=False) as new:
        atomic_folder.write_file(new / "a", b"x")
        (new / "a").chmod(0o600)
    assert stat.S_IMODE((tmp_path / "m" / "a").stat().st_mode) == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_folder_that_is_there_is_kept_unless_asked(tmp_path: Path) -> None:
    save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m")
    before = tree(tmp_path / "m")
    with pytest.raises(WriteError, match="exists already"):
        save_model(tiny_model("electra"), None, tmp_path / "m")
    assert tree(tmp_path / "m") == before
    save_model(tiny_model("electra"), None, tmp_path / "m", overwrite=True)
    assert load_model(tmp_path / "m").model.variant.name == "electra"
    assert not (tmp_path / "m" / "vocab.txt").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    save_model(tiny_model(), None, tmp_path / "m")
    assert (tmp_path / "m" / "config.json").exists()


def test_a_folder_that_is_no_model_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(WriteError, match="no model folder, so it is not replaced"):
        save_model(tiny_model(), None, tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_file_or_a_link_at_the_target_is_kept(tmp_path: Path, kind: str) -> None:
    (tmp_path / "real").mkdir()
    if kind == "file":
        (tmp_path / "m").write_text("x")
    else:
        (tmp_path / "m").symlink_to(tmp_path / "real")
    with pytest.raises(WriteError, match="not a folder"):
        save_model(tiny_model(), None, tmp_path / "m", overwrite=True)
    assert not any((tmp_path / "real").iterdir())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("call", ["fsync", "rename", "open"])
def test_a_failing_disk_leaves_the_old_folder_untouched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, call: str
) -> None:
    save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m")
    before = tree(tmp_path / "m")
    other, words = tiny_model("electra"), tiny_tokenizer()
    original = {"fsync": os.fsync, "rename": os.rename, "open": os.open}[call]
    fails_at = 0
    while True:  # the first call fails, then the second, until one run gets through
        fails_at += 1
        left = [fails_at]

        def failing(*given: object, left: list[int] = left, **named: object) -> object:
            if call == "open" and not (isinstance(given[1], int) and given[1] & os.O_CREAT):
                return original(*given, **named)  # type: ignore[operator]
            left[0] -= 1
            if left[0] == 0:
                raise OSError(number, os.strerror(number))
            return original(*given, **named)  # type: ignore[operator]

        fault = None
        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing)
            if call == "rename":  # a system that cannot swap two names in one step
                patch.setattr(atomic_folder.ctypes, "CDLL", lambda *_, **__: object())
            try:
                save_model(other, words, tmp_path / "m", overwrite=True)
            except WriteError as raised:
                fault = raised
        if fault is None:
            break
        assert "bytes needed" in str(fault)
        assert str(tmp_path / "m") in str(fault)
        assert fault.exit_code == 74
        assert tree(tmp_path / "m") == before
        assert [p.name for p in tmp_path.iterdir()] == ["m"]
    assert fails_at > 1
    assert same_weights(load_model(tmp_path / "m").model, other)


def test_too_little_room_is_said_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(WriteError, match=r"no room for .*bytes needed, 1,000 free"):
        save_model(tiny_model(), None, tmp_path / "deep" / "er" / "m")
    assert not any(tmp_path.iterdir())


def test_weights_that_are_not_finite_are_never_saved(tmp_path: Path) -> None:
    model = tiny_model()
    with torch.no_grad():
        model.encoder.blocks[1].feed_forward.up.bias[3] = float("inf")
    with pytest.raises(TensorMismatchError, match=r"layer\.1\.intermediate\.dense\.bias"):
        save_model(model, None, tmp_path / "m")
    assert not any(tmp_path.iterdir())


def test_every_file_is_synced_before_the_rename_and_the_parent_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[tuple[str, str]] = []
    sync, rename = os.fsync, Path.rename

    def synced(descriptor: int) -> None:
        events.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        sync(descriptor)

    def renamed(self: Path, target: Path) -> Path:
        events.append(("rename", str(self)))
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m", sentence=SentenceSettings())
    place = next(number for number, (kind, _) in enumerate(events) if kind == "rename")
    staged = Path(events[place][1])
    before = {path for kind, path in events[:place] if kind == "sync"}
    wanted = {str(staged)} | {
        str(staged / path.relative_to(tmp_path / "m")) for path in (tmp_path / "m").rglob("*")
    }
    assert wanted <= before
    assert ("sync", str(tmp_path)) in events[place:]


def test_config_names_version_and_type(tmp_path: Path) -> None:
    save_model(tiny_model(), None, tmp_path / "m")
    own = json.loads((tmp_path / "m" / "bertsmith.json").read_text())
    assert own["variant"] == "bert"
    assert own["version"]
