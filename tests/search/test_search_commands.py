"""`index`, `search` and `pairs` as people call them: results, refusals, exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from postgres_server import PostgresServer

import bertsmith
from bertsmith.errors import ConfigError
from bertsmith.folders.resolve import resolve

pytestmark = pytest.mark.usefixtures("own_process")
MODEL = "all-MiniLM-L6-v2"
BUILD = ("index", "build", "--model", MODEL)
ROWS = [
    ("How do I open a file?", "io"),
    ("Reading a file line by line", "io"),
    ("Sorting a list of numbers", "list"),
    ("The weather is nice today", "other"),
    ("ValueError: invalid literal", "error"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search")
    lines = ["text\tlabel", *("\t".join(row) for row in ROWS)]
    (folder / "rows.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    code = run("index", "build", folder / "rows.tsv", "--model", MODEL, "--out", folder / "index")
    assert code == 0
    return folder / "index"


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "index"))


def test_the_nearest_rows(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("search", index, "order numbers by size", "-k", "2") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "     2  Sorting a list of numbers  [label=list]" in first
    vectors = bertsmith.load(MODEL).encode(["order numbers by size", ROWS[2][0]])
    assert first.startswith(f"{vectors[0] @ vectors[1]:.3f}")
    assert float(second.split()[0]) < float(first.split()[0])


def test_questions_of_a_file_as_json(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.txt").write_text("sun and rain\nValueError\n", encoding="utf-8")
    more = ("--where", "label!=io", "--hybrid", "--json", "-k", "1")
    assert run("search", index, "--file", tmp_path / "q.txt", *more) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["question"], first["hits"][0]["id"]) == ("sun and rain", 3)
    assert second["hits"][0]["meta"] == {"label": "error"}
    assert second["hits"][0]["score"] == pytest.approx(2 / 61)  # first by words and by vectors


def test_adding_deleting_checking(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "more.txt").write_text("A cloud brings rain\n", encoding="utf-8")
    assert run("index", "add", index, tmp_path / "more.txt") == 0
    assert "1 row added" in capsys.readouterr().err
    assert run("index", "add", index, tmp_path / "more.txt") == 2
    assert "was added to" in capsys.readouterr().err
    assert run("index", "add", index, tmp_path / "more.txt", "--again") == 0
    assert run("index", "delete", index, "--where", "label=io") == 0
    assert run("index", "delete", index, "5") == 0
    assert "2 rows deleted" in capsys.readouterr().out
    assert run("index", "delete", index, "5") == 2
    assert "no row with the id 5" in capsys.readouterr().err
    assert run("index", "check", index) == 0
    assert "4 rows of 384 dimensions (float16), 3 deleted" in capsys.readouterr().out
    assert [hits[0].id for hits in bertsmith.search_index(index, ["rain", "sort"], 1)] == [6, 2]


def test_the_same_commands_on_a_database(
    built: Path, tmp_path: Path, postgres: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    place = postgres.address("commands").replace("postgres@", "postgres:secret@")
    build = ("index", "build", built.parent / "rows.tsv", "--model", MODEL, "--store", place)
    assert run(*build) == 0
    assert "table=commands: 5 rows added" in capsys.readouterr().err
    search = ("order numbers by size", "-k", "2", "--hybrid", "--where", "label!=io", "--json")
    assert run("search", place, *search) == run("search", built, *search) == 0
    first, second = map(json.loads, _documents(capsys.readouterr().out))
    assert first == second
    (tmp_path / "more.txt").write_text("A cloud brings rain\n", encoding="utf-8")
    assert run("index", "add", place, tmp_path / "more.txt") == 0
    assert run("index", "add", place, tmp_path / "more.txt") == 2
    assert run("index", "delete", place, "--where", "label=io") == 0
    assert run("index", "check", place) == 0
    shown = capsys.readouterr()
    assert "was added to postgresql://postgres@/postgres?table=commands before" in shown.err
    assert "2 rows deleted" in shown.out
    assert "4 rows of 384 dimensions (float16 as halfvec), 2 deleted" in shown.out
    assert "secret" not in shown.out + shown.err
    with bertsmith.Index.open(place) as opened:
        assert opened.search("sun and rain", 1)[0][0].id == 5


def _documents(output: str) -> list[str]:
    """The two JSON documents that two commands printed."""
    first, second = output.split("\n]\n[", 1)
    return [first + "\n]", "[" + second]


@pytest.mark.parametrize("kind", ["folder", "database"])
def test_a_question_bank(
    tmp_path: Path, kind: str, postgres: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    bank = postgres.address("bank") if kind == "database" else tmp_path / "bank"
    (tmp_path / "faq.tsv").write_text(
        "How can I reset my password?\tUse the link.\nWhere is my parcel?\tSee the map.\n"
    )
    command = ("index", "build", tmp_path / "faq.tsv", "--answer-column", "2", "--model", MODEL)
    assert run(*command, "--store" if kind == "database" else "--out", bank) == 0
    assert "every question gets an answer" in capsys.readouterr().err
    assert run("search", bank, "I forgot my password") == 0
    assert capsys.readouterr().out.splitlines()[0] == "Use the link."
    same = [
        ("I lost my password", "How can I reset my password?"),
        ("When does my package arrive?", "Where is my parcel?"),
        ("track my parcel", "Where is my parcel?"),
    ]
    other = [(a, "The sea is blue") for a, _ in same]
    lines = [f"{a}\t{b}\t1" for a, b in same * 2] + [f"{a}\t{b}\t0" for a, b in other * 2]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    assert run("index", "tune", bank, tmp_path / "pairs.tsv") == 0
    assert "F1 1.000 on 12 pairs" in capsys.readouterr().out
    assert run("search", bank, "How deep is the ocean?", "--json") == 0
    (reply,) = json.loads(capsys.readouterr().out)
    assert reply["answer"] is None
    assert run("search", bank, "How deep is the ocean?") == 0
    assert capsys.readouterr().out.startswith("no answer\n")
    assert run("search", bank, "my password is lost", "--hybrid") == 0
    assert capsys.readouterr().out.startswith("Use the link.\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search", "INDEX"), "give a question, or a file"),
        (("search", "INDEX", "x", "--where", "lable=io"), "did you mean 'label'"),
        (("search", "INDEX", "x", "--where", "label"), "not a condition"),
        (("search", "INDEX", "x", "-k", "0"), "greater than or equal to 1"),
        (("search", "nowhere", "x"), "no folder at 'nowhere'"),
        (("index", "delete", "INDEX"), "give the ids of rows"),
        (("index", "tune", "INDEX", "INDEX/../rows.tsv"), "a pair is question, question and 1"),
        (
            (*BUILD, "INDEX/../rows.tsv", "--answer-column", "reply", "--out", "INDEX/../bank"),
            "has no column 'reply' with answers",
        ),
    ],
)
def test_what_is_refused(
    built: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    given = [argument.replace("INDEX", str(built)) for argument in arguments]
    assert run(*given) == 2
    assert message in capsys.readouterr().err


def test_another_model_or_pooling_is_refused(index: Path, tmp_path: Path) -> None:
    with bertsmith.load(MODEL) as loaded:
        other = Path(shutil.copytree(resolve(loaded.name), tmp_path / "model"))
        with bertsmith.Index.open(index, loaded) as opened:
            assert len(opened) == 5
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"hidden_dropout_prob": 0.2}))
    with pytest.raises(ConfigError, match=r"was built with the model .*, not .*model \("):
        bertsmith.Index.open(index, other)
    pooling = json.loads((other / "1_Pooling" / "config.json").read_text())
    pooling |= {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}
    (other / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    with pytest.raises(ConfigError, match="was built with the pooling mean, not first"):
        bertsmith.Index.open(index, other)


def test_another_precision_or_prompt_is_refused(index: Path) -> None:
    with bertsmith.Index.open(index, precision="fp32") as opened:
        record = opened.encoder.record
    stored = record.model_copy(update={"precision": "bf16"})
    with pytest.raises(ConfigError, match="built in the precision bf16, not fp32"):
        stored.require(record, "x")
    stored = record.model_copy(update={"prompt": "passage"})
    with pytest.raises(ConfigError, match="built with the prompt passage, not None"):
        stored.require(record, "x")


def test_similar_pairs(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run("index", "pairs", built.parent / "rows.tsv", "--model", MODEL, "-k", "1", "--json") == 0
    )
    (pair,) = json.loads(capsys.readouterr().out)
    assert pair["rows"] == [1, 2]
    texts = [text for text, _ in ROWS]
    vectors = bertsmith.load(MODEL).encode(texts)
    (row, _), *_ = bertsmith.nearest(vectors[:1], vectors, 2)[0][1:]
    assert row == 1
    assert pair["similarity"] == pytest.approx(float(np.dot(*vectors[:2])), abs=1e-3)
    assert bertsmith.similar_pairs([*texts, texts[3]], MODEL, 1)[0].second == 5
    assert bertsmith.similar_pairs([*texts, texts[3]], MODEL, 1, skip_equal=True)[0].second == 1
