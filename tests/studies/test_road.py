"""`bertsmith road`: one table, kills, dashes with reasons, no rank for models of both sides."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fork_client import ForkServer
from html_tree import Tree
from tiny_road import SETTINGS, tiny_request, write_documents

from bertsmith.api.studies import road
from bertsmith.classic.word_vectors.word_vectors import WordVectors
from bertsmith.cli.app import main
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.report.elements.page import page
from bertsmith.studies.road.kinds import ROAD_KINDS
from bertsmith.studies.road.material import read_documents
from bertsmith.studies.road.measures import WordTests
from bertsmith.studies.road.readers import PieceReader, WordPieces
from bertsmith.studies.road.study import RoadClock, read_road
from bertsmith.studies.road.table import (
    COLUMNS,
    RoadRow,
    RoadTable,
    complete,
    road_sections,
    without_times,
)


@pytest.fixture(scope="module")
def straight(forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a road that nobody interrupted; its material is next to it."""
    place = tmp_path_factory.mktemp("road")
    write_documents(place)
    ended = forks.run("road", material=place, folder=place / "straight")
    assert ended["code"] == 0, ended["error"]
    return place / "straight"


def table_of(folder: Path) -> dict[str, Any]:
    return without_times(json.loads((folder / "road.json").read_bytes()))


def rows_of(folder: Path) -> dict[str, Any]:
    return {row["model"]: row for row in table_of(folder)["rows"]}


def test_a_killed_road_ends_with_the_same_table(forks: ForkServer, straight: Path) -> None:
    place = straight.parent

    def run(kill: str | None) -> int:
        order = {"material": place, "folder": place / "killed", "kill": kill}
        return int(forks.run("road", **order)["code"])

    for kill in ("preparation", "nnlm:2", "lstm:tests", "gpt:3", "bert:2"):
        assert run(kill) == -9
    assert run(None) == 0
    assert table_of(place / "killed") == table_of(straight)


def test_every_cell_has_a_number_or_a_reason_and_only_one_direction_is_ranked(
    straight: Path,
) -> None:
    rows = rows_of(straight)
    assert list(rows) == list(ROAD_KINDS)
    for row in rows.values():
        for column in COLUMNS:
            cell = row["cells"][column]
            assert column == "rank" or (cell.get("value") is None) == bool(cell.get("reason"))
    ranked = {name for name, row in rows.items() if row["rank"]}
    assert ranked == {"ngram", "nnlm", "lstm", "gpt"}
    bits = {name: rows[name]["cells"]["bits_per_character"]["value"] for name in ranked}
    assert sorted(ranked, key=lambda name: rows[name]["rank"]) == sorted(
        ranked, key=bits.__getitem__
    )
    assert {row["steps"] for row in rows.values()} == {None, 4}
    assert rows["bert"]["cells"]["pseudo_perplexity"]["value"] > 1
    assert rows["elmo"]["cells"]["directions"]["other"] > 1
    assert rows["ngram"]["cells"]["probe"]["reason"] == "it counts n-grams and has no vectors"
    assert "one vector per word" in rows["lstm"]["cells"]["similarity_contexts"]["reason"]


def test_units_are_the_same_for_all_left_to_right_models(straight: Path) -> None:
    rows = rows_of(straight)
    for name in ("ngram", "nnlm", "lstm", "gpt"):
        cells = rows[name]["cells"]
        bits = cells["bits_per_character"]["value"]
        ratio = np.log(cells["perplexity_word"]["value"]) / bits
        first = rows["ngram"]["cells"]
        other = np.log(first["perplexity_word"]["value"]) / first["bits_per_character"]["value"]
        assert ratio == pytest.approx(other)


def test_the_page_shows_the_table_offline(straight: Path) -> None:
    page = (straight / "road.html").read_text(encoding="utf-8")
    tags = [tag for tag, _ in Tree(page).tags]
    assert not {"script", "link", "img", "iframe"} & set(tags)
    assert tags.count("svg") == 1
    assert "http:" not in page
    assert "https:" not in page
    assert "may not be compared" in page
    for kind in ROAD_KINDS.values():
        assert kind.title in page


def test_documents_are_split_once_and_whole(straight: Path) -> None:
    parts = [
        (straight / "text" / name).read_text(encoding="utf-8").strip().split("\n\n")
        for name in ("train.txt", "validation.txt", "held-out.txt")
    ]
    request = tiny_request(straight.parent, straight)
    given = ["\n".join(sentences) for sentences, _ in read_documents(request)]
    assert sorted(one for part in parts for one in part) == sorted(given)
    assert len(parts[2]) == len(given) // 10


def test_the_mean_of_pieces_is_the_vector_of_a_word_and_long_sentences_are_read_in_parts(
    straight: Path,
) -> None:
    study = read_road(tiny_request(straight.parent, straight))
    model = ROAD_KINDS["bert"].open(straight / "models" / "bert", study.material)
    reader = model.contexts
    assert isinstance(reader, PieceReader)
    (vectors,) = reader.read([["the", "queen", "sees"]])
    pieces = WordPieces(study.material.tokenizer)
    assert vectors.shape == (3, 16)
    assert len(pieces.of("queen")) >= 1
    (whole,) = reader.read([["the", "queen", "sees"] * 60])
    assert whole.shape == (180, 16)
    assert not np.isnan(whole).any()
    short = replace(reader, window=8)
    (parts,) = short.read([["the", "cat", "sees", "a", "dog"]])
    (first,) = short.read([["the"]])
    assert parts.shape == (5, 16)
    assert first.shape == (1, 16)


def test_words_that_one_model_lacks_count_for_none() -> None:
    tests = WordTests.read([], [])
    rows = np.eye(3, dtype=np.float32)
    sets = {
        "one": {"inputs": WordVectors(("a", "b", "c"), rows)},
        "two": {"inputs": WordVectors(("a", "c", "d"), rows)},
    }
    cells, facts = tests.compare(sets)
    assert cells["one"]["similarity_inputs"] == {"reason": "no --word-pairs were given"}
    assert facts == []


def row(name: str, bits: float | None, **cells: Any) -> RoadRow:
    own = {} if bits is None else {"bits_per_character": {"value": bits}}
    return RoadRow(name=name, title=name, about="", cells=complete({**own, **cells}, {}))


def test_a_pseudo_perplexity_is_never_ranked() -> None:
    rows = (
        row("a", 2.0),
        row("b", None, pseudo_perplexity={"value": 1.5}),
        row("c", 1.0),
        row("d", float("inf")),
    )
    table = RoadTable(rows=rows)
    assert [table.rank(one) for one in rows] == [2, None, 1, None]
    assert "b" not in [one.title for one in table.ranking()]
    shown = page("x", road_sections(table))
    assert "No left-to-right" not in shown
    assert "No left-to-right" in page("x", road_sections(RoadTable(rows=rows[1:2])))


def test_a_failed_model_has_dashes_with_the_error() -> None:
    cells = complete({}, {}, failed="no memory")
    assert {cell["reason"] for cell in cells.values()} == {"no memory"}


def test_times_are_planned_by_kind_and_shrink_where_the_road_is_late(tmp_path: Path) -> None:
    clock = RoadClock(tmp_path / "plan.json", 1000.0, preparation=70.0)
    total = sum(kind.share for kind in ROAD_KINDS.values())
    assert clock.training_seconds("lstm") == pytest.approx(900 * 19 / total * 0.75, abs=0.1)
    assert "LSTM" in clock.lines()[0]
    clock.ended("ngram", 500.0)
    again = RoadClock(tmp_path / "plan.json", 1000.0, preparation=5.0)
    assert again.training_seconds("lstm") == clock.training_seconds("lstm")
    late = again.training_seconds("bert")
    assert late is not None
    assert late < 0.6 * 900 * 19 / total * 0.75
    assert RoadClock(tmp_path / "steps.json", None, 1.0).training_seconds("bert") is None


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"steps": None}, ConfigError, "either a budget"),
        ({"budget": 60.0}, ConfigError, "not both"),
        ({"steps": None, "budget": 3.0}, ConfigError, "too short"),
        ({"files": []}, InputFileError, "no files were given"),
        ({"labels": Path("nowhere.tsv")}, InputFileError, "there is no file nowhere.tsv"),
        ({"settings": ["lstn.hidden=3"]}, ConfigError, "did you mean 'lstm'"),
        ({"settings": ["hidden=3"]}, ConfigError, "KIND.key=value"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_written(
    tmp_path: Path, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    write_documents(tmp_path)
    request = tiny_request(tmp_path, tmp_path / "out", **changes)
    with pytest.raises(error, match=message):
        read_road(request)
    assert not (tmp_path / "out").exists()


def test_too_few_documents_and_foreign_labels_are_refused(tmp_path: Path) -> None:
    write_documents(tmp_path, documents=4)
    with pytest.raises(InputFileError, match="4 documents; a road splits by document"):
        read_road(tiny_request(tmp_path, tmp_path / "few"))
    write_documents(tmp_path)
    (tmp_path / "labels.tsv").write_text(
        "text\tlabel\n" + "".join(f"a b {n}\tx\n" for n in range(30)), encoding="utf-8"
    )
    with pytest.raises(InputFileError, match="too few for a probe"):
        read_road(tiny_request(tmp_path, tmp_path / "one-label"))


def test_another_request_for_the_same_folder_is_refused(straight: Path) -> None:
    with pytest.raises(ConfigError, match="steps was 4 and is now 5"):
        read_road(tiny_request(straight.parent, straight, steps=5))


def test_the_command_prints_the_finished_table_again(
    straight: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = straight.parent
    options = ["--steps", "4", "--vocab-size", "90", "--probe", str(place / "labels.tsv")]
    options += ["--word-pairs", str(place / "similarity.txt")]
    options += ["--analogies", str(place / "analogies.txt")]
    options += [part for one in SETTINGS for part in ("--set", one)]
    with pytest.raises(SystemExit) as end:
        main(["road", str(place / "docs.txt"), *options, "--out", str(straight), "--quiet"])
    assert not end.value.code
    shown = capsys.readouterr().out
    assert "perplexity per piece" in shown
    assert "it counts n-grams and has no vectors" in shown


def test_late_preparation_is_said(tmp_path: Path) -> None:
    assert "little left to train" in RoadClock(tmp_path / "plan.json", 100.0, 60.0).lines()[-1]


def test_python_takes_one_file_or_several_and_needs_a_time(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="there is no file docs"):
        road("docs.txt", tmp_path / "out", steps=1)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match="is no time"):
        road(["docs.txt"], tmp_path / "out", budget="soon")
