"""Every command that writes may be killed anywhere: the same command ends with the same bytes.

The second process has another PYTHONHASHSEED: nothing that decides what is resumed may depend on
the order of a set.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fork_client import ForkServer
from tiny_finetuning import rows, tiny_folder, tiny_writer
from toy_corpus import documents, toy_corpus

from bertsmith.errors import TargetExistsError
from bertsmith.labeled.example import Label

pytestmark = pytest.mark.reliability
LONG = bool(os.environ.get("BERTSMITH_LONG"))
MOMENTS = {"predict csv": 8, "pretrain": 3, "finetune": 3}  # kills; 4 of others
# What tells of times and of the process, and so differs between any two runs.
DIFFERS = {"log.jsonl", "result.json", "proof.json", "report.html", "README.md", "manifest.json"}
DIFFERS |= {"state.json", "lock"}


class Servers:
    """Two processes that run commands, with different hash seeds."""

    def __init__(self) -> None:
        self._both = [ForkServer(PYTHONHASHSEED=number) for number in ("1", "2")]

    def run(self, which: int, arguments: tuple[object, ...], kill_at: int = 0) -> dict[str, Any]:
        given = [str(one) for one in arguments]
        return self._both[which].run("command", arguments=given, kill_at=kill_at)

    def close(self) -> None:
        for server in self._both:
            server.close()


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    both = Servers()
    yield both
    both.close()


@dataclass(frozen=True)
class Material:
    """What the commands read."""

    model: Path
    fine_tuned: Path
    writer: Path
    texts: Path
    table: Path
    labeled: Path
    corpus: Path
    vocabulary: Path
    words: Path


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory, servers: Servers) -> Material:
    place = tmp_path_factory.mktemp("material")
    examples = rows(64)
    texts = place / "texts.txt"
    texts.write_text("\n\n".join(documents()) + "\n", encoding="utf-8")
    table, labeled = place / "rows.csv", place / "labeled.csv"
    table.write_text(
        "text,n\n" + "".join(f"{one.texts[0]},{n}\n" for n, one in enumerate(examples))
    )
    lines = [
        f"{one.texts[0]},{one.target.name}\n" for one in examples if isinstance(one.target, Label)
    ]
    labeled.write_text("text,label\n" + "".join(lines))
    words = place / "words.txt"
    words.write_text("mandog\nstreetstore\n")
    corpus = toy_corpus(place / "corpus")
    model, fine_tuned = Path(tiny_folder(place / "model")), place / "fine-tuned"
    servers.run(0, ("finetune", labeled, "--model", model, "--out", fine_tuned, "--epochs", 1))
    return Material(
        model=model,
        fine_tuned=fine_tuned,
        writer=Path(tiny_writer(place / "writer")),
        texts=texts,
        table=table,
        labeled=labeled,
        corpus=corpus,
        vocabulary=corpus / "tokenizer",
        words=words,
    )


Arguments = Callable[[Material, Path], tuple[object, ...]]
COMMANDS: dict[str, Arguments] = {
    "corpus build": lambda m, out: (
        *("corpus", "build", m.texts, "--vocab", m.vocabulary, "--out", out / "shards"),
        *("--workers", 1),
    ),
    "embed": lambda m, out: (
        *("embed", m.model, m.texts, "--out", out / "vectors.npy", "--threads", 1),
    ),
    "predict csv": lambda m, out: (
        *("predict", m.fine_tuned, m.table, "--out", out / "p.csv", "--threads", 1),
    ),
    "predict jsonl": lambda m, out: (
        *("predict", m.fine_tuned, m.labeled, "--out", out / "p.jsonl", "--threads", 1),
    ),
    "generate": lambda m, out: (
        *("generate", m.writer, m.table, "--out", out / "g.jsonl", "--threads", 1),
        *("--max-new", 4, "--sample", "--answers", 2, "--text", "text"),
    ),
    "vocab learn": lambda m, out: (
        *("vocab", "learn", m.texts, "--vocab-size", 120, "--out", out / "vocab"),
    ),
    "lm train ngram": lambda m, out: (
        *("lm", "train", m.texts, "--kind", "ngram", "--order", 2, "--out", out / "lm"),
        *("--set", "fallback=true"),
    ),
    "lm train nnlm": lambda m, out: (
        *("lm", "train", m.texts, "--kind", "nnlm", "--out", out / "lm"),
        *("--set", "plan.epochs=1"),
    ),
    "words train": lambda m, out: (
        *("words", "train", m.texts, "--dim", 4, "--epochs", 2, "--engine", "torch"),
        *("--min-count", 1, "--threads", 1, "--out", out / "words"),
    ),
    "words train with a folder of words": lambda m, out: (
        *("words", "train", m.texts, "--dim", 4, "--epochs", 1, "--engine", "torch"),
        *("--min-count", 1, "--threads", 1, "--out", out / "words", "--word-stream", out / "wd"),
    ),
    "index build": lambda m, out: (
        *("index", "build", m.table, "--model", m.model, "--out", out / "index", "--threads", 1),
    ),
    "convert": lambda m, out: ("convert", m.model, out / "copy", "--overwrite"),
    "corpus extend": lambda m, out: ("corpus", "extend", m.model, m.words, out / "grown"),
    "pretrain": lambda m, out: (
        *("pretrain", "bert", "--corpus", m.corpus, "--out", out / "run", "--size", "tiny"),
        *("--threads", 1, "--precision", "fp32", "--steps", 6, "--set", "batch.tokens=512"),
        *("--set", "save.every=2", "--set", "log.tensorboard=false"),
    ),
    "finetune": lambda m, out: (
        *("finetune", m.labeled, "--model", m.model, "--out", out / "run", "--epochs", 1),
        *("--batch", 16, "--precision", "fp32", "--threads", 1),
    ),
}


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder; None instead of bytes that differ between any two runs."""
    return {
        str(path.relative_to(folder)): None if path.name in DIFFERS else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def moments(points: int, wanted: int) -> list[int]:
    """Some steps of a run: the first, the last, and others spread between them."""
    count = points if LONG else min(points, wanted)
    return sorted({1 + round(n * (points - 1) / max(1, count - 1)) for n in range(count)})


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_ends_with_the_same_bytes_in_a_process_with_another_hash_seed(
    name: str, material: Material, servers: Servers, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    straight = servers.run(0, COMMANDS[name](material, whole))
    assert straight["code"] == 0, straight
    expected = tree(whole)
    for point in moments(straight["points"], MOMENTS.get(name, 4)):
        out = tmp_path / str(point)
        out.mkdir()
        arguments = COMMANDS[name](material, out)
        assert servers.run(0, arguments, kill_at=point)["code"] == -signal.SIGKILL, point
        resumed = servers.run(1, arguments)
        if resumed["code"] == TargetExistsError.exit_code:  # killed behind the rename
            assert resumed["points"] == 0, resumed
        else:
            assert resumed["code"] == 0, (point, resumed)
        assert tree(out) == expected, point
        assert not list(out.rglob(".*")), point


def test_predictions_are_resumed_not_computed_anew(
    material: Material, servers: Servers, tmp_path: Path
) -> None:
    arguments = COMMANDS["predict jsonl"](material, tmp_path)  # read as in training
    straight = servers.run(0, arguments)
    (tmp_path / "p.jsonl").unlink()
    servers.run(0, arguments, kill_at=straight["points"] * 3 // 4)
    resumed = servers.run(1, arguments)
    assert resumed["points"] < straight["points"] * 3 // 4


def test_a_vocabulary_is_replaced_as_a_whole(
    material: Material, servers: Servers, tmp_path: Path
) -> None:
    def learn(out: Path, kind: str, kill_at: int = 0) -> dict[str, Any]:
        arguments = (
            "vocab",
            "learn",
            material.texts,
            "--vocab-size",
            300,
            "--tokenizer",
            kind,
            "--out",
            out,
        )
        return servers.run(kill_at == 0, arguments, kill_at)

    learn(tmp_path / "old", "wordpiece")
    learn(tmp_path / "new", "byte-bpe")
    old, new = tree(tmp_path / "old"), tree(tmp_path / "new")
    assert "vocab.txt" in old.keys() - new.keys()
    learn(tmp_path / "out", "wordpiece")
    points = learn(tmp_path / "out", "byte-bpe")["points"]
    assert tree(tmp_path / "out") == new
    for point in range(1, points + 1, 1 if LONG else 4):
        learn(tmp_path / "out", "wordpiece")
        learn(tmp_path / "out", "byte-bpe", kill_at=point)
        assert tree(tmp_path / "out") in (old, new), point
        learn(tmp_path / "out", "byte-bpe")
        assert tree(tmp_path / "out") == new
        assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old", "out"]
