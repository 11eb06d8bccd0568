"""Studies on two processes: finetune's numbers, nothing trained, written or printed twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import fresh
from fork_client import ForkServer
from tiny_finetuning import rows, tiny_folder

FAST = ("--epochs", "2", "--lr", "3e-3", "--batch", "8", "--precision", "fp32", "--threads", "1")
TWO = ("--set", "run.devices=2", "--max-length", "6")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("study")
    tiny_folder(home / "model")
    for name, count, seed in (("train", 48, 0), ("dev", 24, 1)):
        lines = [f"{one.texts[0]}\t{one.target.name}" for one in rows(count, seed=seed)]
        for folder in ("SST-2", "rows"):
            (home / folder).mkdir(exist_ok=True)
            (home / folder / f"{name}.tsv").write_text(
                "\n".join(["sentence\tlabel", *lines]) + "\n"
            )
    return home


def ranks_of(forks: ForkServer, home: Path, *command: str | Path) -> list[dict[str, Any]]:
    found = forks.finish_ranks("rank command", folder=home, arguments=[*map(str, command)])
    assert found[1]["out"] == ""
    assert found[1]["changed"] == []
    assert "note:" not in found[1]["err"]
    return found


def lengths(home: Path, out: Path) -> tuple[str | Path, ...]:
    data = (home / "rows", "--model", home / "model", "--out", out)
    return ("lengths", *data, *FAST, *TWO, "--compare", "--no-windows", "--json")


def test_two_processes_give_finetunes_numbers_and_do_nothing_twice(
    forks: ForkServer, home: Path
) -> None:
    out, plain = home / "lengths", home / "plain"
    first = ranks_of(forks, home, *lengths(home, out))[0]
    compared = json.loads(first["out"])["compare"]
    data = (home / "rows", "--model", home / "model", "--out", plain)
    ranks_of(forks, home, "finetune", *data, *FAST, *TWO, "--keep", "head")
    record = json.loads((plain / "proof.json").read_text())["dev"]
    figures = compared["runs"][0]["figures"]
    assert compared["runs"][0]["name"] == "head"
    assert {name: figures[name] for name in record["figures"]} == pytest.approx(record["figures"])
    assert not list((out / "runs").iterdir())

    stored = {path: path.stat().st_mtime_ns for path in (out / "finished").iterdir()}
    assert len(stored) == 3
    (out / "finished" / "tail.json").unlink()
    again = ranks_of(forks, home, *lengths(home, out))[0]
    assert "finished already: 2 of 3 runs" in again["err"]
    assert "tail begins, 1 of 1" in again["err"]
    for path, when in stored.items():
        assert (path.stat().st_mtime_ns == when) == (path.name != "tail.json")
    repeated = json.loads(again["out"])["compare"]
    assert [one["figures"] for one in repeated["runs"]] == [
        one["figures"] for one in compared["runs"]
    ]


def test_processes_share_a_temporary_folder_and_leave_none(forks: ForkServer, home: Path) -> None:
    data = (home / "rows", "--model", home / "model")
    found = ranks_of(
        forks, home, "lengths", *data, *FAST, *TWO, "--compare", "--no-windows", "--json"
    )
    names = {one["name"] for one in json.loads(found[0]["out"])["compare"]["runs"]}
    assert names == {"head", "tail", "head+tail"}


def test_a_set_that_cannot_be_read_fails_on_both_and_the_next_is_run(
    forks: ForkServer, home: Path
) -> None:
    (home / "CoLA").mkdir()
    (home / "CoLA" / "train.tsv").write_text("only\n")
    words = ("glue", home / "model", home, "--data-set", "cola", "--data-set", "sst2", "--json")
    arguments = [*map(str, words), *FAST, *TWO, "--out", str(home / "glue")]
    found = forks.run_ranks("rank command", folder=home, arguments=arguments)
    assert [one["code"] for one in found] == [2, 2]
    assert found[1]["out"] == ""
    record = json.loads(found[0]["out"])
    assert list(record["failed"]) == ["cola"]
    assert [one["name"] for one in record["sets"]] == ["sst2"]


def test_two_processes_train_each_seed_once_and_the_first_writes(
    forks: ForkServer, home: Path
) -> None:
    out = home / "seeds"
    data = (home / "rows", "--model", home / "model", "--out", out)
    command = ("finetune", *data, *FAST, *TWO, "--seeds", "2")
    first = ranks_of(forks, home, *command)[0]
    assert "dev over 2 seeds" in first["out"]
    weights = (out / "model.safetensors").read_bytes()
    again = ranks_of(forks, home, *command)[0]
    assert "finished already: 2 of 2 runs" in again["err"]
    assert again["out"].splitlines()[1:] == first["out"].splitlines()[1:]  # the first has a speed
    assert (out / "model.safetensors").read_bytes() == weights


@pytest.mark.slow
def test_the_command_starts_its_processes(home: Path) -> None:
    words = (
        "--encoder",
        "frozen",
        "--pooling",
        "mean",
        "--layers",
        "last",
        "--out",
        home / "vectors",
    )
    done = fresh(
        "compare-vectors", home / "rows", "--model", home / "model", *FAST, *TWO, *words, "--json"
    )
    assert done.returncode == 0, done.stderr.decode()
    assert len(json.loads(done.stdout)["runs"]) == 1
    assert done.stderr.decode().count("finished runs are stored in") == 1
