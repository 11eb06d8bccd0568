"""Places that cannot be written, full disks, impossible settings: the code and the way out."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import COMMAND, environment, run
from tiny_finetuning import rows, tiny_folder
from toy_corpus import toy_corpus

from bertsmith.cli import app
from bertsmith.cli.commands.finetune import _shares
from bertsmith.cli.views.results import stopped_line
from bertsmith.errors import ConfigError
from bertsmith.training.loop.run import Outcome

FAST = ("--epochs", "1", "--lr", "3e-3", "--precision", "fp32", "--threads", "1", "--quiet")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("faults")
    tiny_folder(home / "model")
    toy_corpus(home / "toy")
    (home / "sets" / "SST-2").mkdir(parents=True)
    for name, count, seed in (("train", 40, 0), ("dev", 20, 1)):
        lines = [f"{one.texts[0]}\t{one.target.name}" for one in rows(count, seed=seed)]
        table = "\n".join(["sentence\tlabel", *lines]) + "\n"
        (home / "sets" / "SST-2" / f"{name}.tsv").write_text(table)
    return home


def commands(home: Path, out: Path) -> dict[str, tuple[str | Path, ...]]:
    data = (home / "sets" / "SST-2", "--model", home / "model", "--out", out, *FAST)
    corpus = next(path.parent for path in (home / "toy").rglob("manifest.json"))
    tiny = ("--size", "tiny", "--steps", "2", "--quiet")
    return {
        "finetune": ("finetune", *data),
        "seeds": ("finetune", *data, "--seeds", "2"),
        "lengths": ("lengths", *data, "--compare", "--max-length", "6"),
        "vectors": (
            "compare-vectors",
            *data,
            "--encoder",
            "frozen",
            "--pooling",
            "mean",
            "--layers",
            "last",
        ),
        "glue": ("glue", home / "model", home / "sets", "--out", out, *FAST),
        "pretrain": ("pretrain", "bert", "--corpus", corpus, "--out", out, *tiny),
        "corpus": (
            "corpus",
            "build",
            home / "toy" / "text.txt",
            "--model",
            home / "model",
            "--out",
            out,
        ),
    }


NAMES = ("finetune", "seeds", "lengths", "vectors", "glue", "pretrain", "corpus")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_where_the_folder_should_be_is_named(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")
    for out in (taken, taken / "below"):
        assert run(*commands(home, out)[name]) == 74
        message = capsys.readouterr().err
        assert str(taken) in message
        assert "this is a bug" not in message
        assert "; " in message.splitlines()[-1]  # the way out
    assert taken.read_text() == "mine"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own; `mount -o remount,...` changes its size or makes it read-only."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("this system does not let root mount")
    yield disk
    subprocess.run(["umount", str(disk)], check=True, capture_output=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_read_only_disk_is_named(
    home: Path, disk: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (disk / "old").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for out in (disk / "new", *([disk / "old"] if name != "corpus" else [])):
        assert run(*commands(home, out)[name]) == 74
        message = capsys.readouterr().err
        assert str(disk) in message
        assert "ead-only file system" in message


def test_a_full_disk_is_named_wherever_it_fills_up(
    home: Path, disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages, codes = 1, []
    while not codes or codes[-1] != 0:
        subprocess.run(["mount", "-o", f"remount,size={4 * pages}k", str(disk)], check=True)
        codes.append(run(*commands(home, disk / "out")["finetune"]))
        message = capsys.readouterr().err
        if codes[-1]:
            assert codes[-1] == 74, message
            assert str(disk) in message
        pages += 1 + pages // 3
    assert len(codes) > 4  # it filled up at several places


def test_faults_of_the_system_that_nobody_expected_have_the_same_code(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/where")

    monkeypatch.setattr(app, "_run", full)
    assert run("info", home / "model") == 74
    assert capsys.readouterr().err == (
        "error: /some/where: no space left on device; free some space or give another disk\n"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_standard_output_ends_with_the_same_code() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "recipes"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
        )
    assert done.returncode == 74
    assert b"no space left on device" in done.stderr


@pytest.mark.parametrize("epochs", ["inf", "nan", "1e308", "-inf"])
def test_a_number_of_epochs_that_cannot_be_is_refused(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], epochs: str
) -> None:
    assert run(*commands(home, tmp_path / "out")["finetune"], "--epochs", epochs) == 2
    assert "plan.epochs" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["50/50/50", "33/33/33", "80", "0.5/0.1", "inf/1/1", "nan/50/50"])
def test_shares_that_do_not_add_up_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="such as 80/10/10"):
        _shares(text)


def test_shares_in_percent_and_of_one_are_the_same() -> None:
    assert _shares("80/10/10") == _shares("0.8/0.1/0.1") == (0.8, 0.1, 0.1)
    assert _shares("90/10") == (0.9, 0.1, 0.0)
    assert _shares("33.4/33.3/33.3") == (0.334, 0.333, 0.333)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (0, "stopped by SIGINT before the first step"),
        (1, "stopped by SIGINT after 1 step, "),
        (2_000, "stopped by SIGINT after 2,000 steps, "),
    ],
)
def test_a_stopped_run_says_what_is_saved(step: int, words: str) -> None:
    outcome = Outcome(status="stopped", step=step, tokens=1, seconds=3.0, signal="SIGINT")
    line = stopped_line(outcome)
    assert line.startswith(words)
    assert ("saved, the same command resumes" in line) == (step > 0)
    assert "the same command" in line
