"""Bits flip in a folder that bertsmith wrote: it is refused, or nothing that is read has changed.

BERTSMITH_LONG=1 makes 2,000 mutations.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from command_line import run
from written_folders import READ_ONLY, WRITTEN

from bertsmith.errors import BertsmithError, FolderError
from bertsmith.files import folder_hashes
from bertsmith.files.folder_hashes import HASHES, check_hashes, write_hashes
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.kinds import KINDS

pytestmark = pytest.mark.reliability
MUTATIONS = 2_000 if os.environ.get("BERTSMITH_LONG") else 200
ADDED = ("lock", "text.txt")  # beside a model, not of it


def mutated(path: Path, draw: random.Random) -> str:
    """Change one file of a folder as disks and copies do; says what was done."""
    files = [one for one in sorted(path.rglob("*")) if one.is_file() and one.name not in ADDED]
    file = draw.choice(files)
    data = bytearray(file.read_bytes())
    how = draw.choice(("flip", "flip", "flip", "cut", "zeros", "gone", "swap"))
    at = draw.randrange(max(1, len(data)))
    if how == "flip" and data:
        data[at] ^= 1 << draw.randrange(8)
    elif how == "cut":
        data = data[:at]
    elif how == "zeros":
        data[at : at + 16] = bytes(len(data[at : at + 16]))
    elif how == "swap":
        data[at : at + 8] = data[at : at + 8][::-1]
    file.write_bytes(data)
    if how == "gone":
        file.unlink()
    return f"{how} at {at} of {file.relative_to(path)}"


def test_every_kind_of_folder_is_here() -> None:
    assert {*WRITTEN, *READ_ONLY} >= set(KINDS)


@pytest.mark.parametrize("kind", WRITTEN)
def test_damage_is_refused_or_changes_nothing(kind: str, tmp_path: Path) -> None:
    make, read = WRITTEN[kind]
    make(tmp_path / "whole")
    expected = read(tmp_path / "whole")
    draw = random.Random(f"{kind} 5")
    wrong, refused = [], 0
    for number in range(-(-MUTATIONS // len(WRITTEN))):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(tmp_path / "whole", copy)
        done = mutated(copy, draw)
        try:
            found = read(copy)
        except BertsmithError as fault:
            refused += 1
            assert fault.exit_code != 70  # noqa: PT017
        else:
            if found != expected and found != "damage was found":
                wrong.append(done)
        shutil.rmtree(copy)
    assert not wrong
    assert refused > 0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hashed") / "model"
    WRITTEN["model"][0](folder)
    return folder


def copied(model: Path, place: Path) -> Path:
    return Path(shutil.copytree(model, place / "model"))


def test_what_is_added_to_a_folder_is_no_damage(model: Path, tmp_path: Path) -> None:
    folder = copied(model, tmp_path)
    (folder / "README.md").write_text("a card")
    (folder / "proof.json").write_text("{}")
    (folder / "checkpoints").mkdir()
    assert WRITTEN["model"][1](folder) == WRITTEN["model"][1](model)


def test_a_folder_without_hashes_loads_as_it_is(model: Path, tmp_path: Path) -> None:
    folder = copied(model, tmp_path)
    (folder / HASHES).unlink()
    path = folder / "config.json"
    path.write_text(path.read_text() + "\n")
    assert WRITTEN["model"][1](folder) == WRITTEN["model"][1](model)


def test_the_error_names_the_files_and_the_way_out(model: Path, tmp_path: Path) -> None:
    folder = copied(model, tmp_path)
    (folder / "config.json").write_text((folder / "config.json").read_text() + "\n")
    (folder / "1_Pooling" / "config.json").unlink()
    says = (
        r"1_Pooling/config\.json is missing; config\.json has changed since .*remove hashes\.json"
    )
    with pytest.raises(FolderError, match=says):
        check_hashes(Folder.at(folder))


@pytest.mark.parametrize(
    "text",
    ["{}", '{"sha256": []}', '{"sha256": {"a": "b"}}', '{"sha256": {"a": 1}}', "x"],
)
def test_hashes_that_are_none_are_refused(text: str, model: Path, tmp_path: Path) -> None:
    folder = copied(model, tmp_path)
    (folder / HASHES).write_text(text)
    with pytest.raises(FolderError, match=r"hashes\.json"):
        WRITTEN["model"][1](folder)


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "a/../../b", "a\\b", "..", "a/b/c"])
def test_hashes_name_files_of_the_folder_alone(name: str, model: Path, tmp_path: Path) -> None:
    folder = copied(model, tmp_path)
    (folder / HASHES).write_text(
        '{"sha256": {"' + name.replace("\\", "\\\\") + '": "' + "0" * 64 + '"}}'
    )
    with pytest.raises(FolderError):
        check_hashes(Folder.at(folder))


def test_large_files_are_compared_by_info_and_doctor(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copied(model, tmp_path)
    assert run("info", folder, "--verify-hashes") == 0
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    monkeypatch.setattr(folder_hashes, "AT_LOAD", 100)
    check_hashes(Folder.at(folder))  # nothing of that size is hashed
    capsys.readouterr()
    assert run("info", folder, "--verify-hashes") == 2
    assert "model.safetensors has changed since the folder was written" in capsys.readouterr().err
    assert run("info", folder) == 0


def test_hashes_are_written_once_more_when_files_are_added(model: Path, tmp_path: Path) -> None:
    folder = copied(model, tmp_path)
    (folder / "words.txt").write_text("a\n")
    write_hashes(folder)
    (folder / "words.txt").write_text("b\n")
    with pytest.raises(FolderError, match=r"words\.txt has changed"):
        check_hashes(Folder.at(folder))
