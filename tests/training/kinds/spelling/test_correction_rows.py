"""Wrong and right texts: SIGHAN's files and figures, confusions, planted errors, odd rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.labeled.errors.confusions import (
    confusions_of_pairs,
    pinyin_confusions,
    read_confusions,
)
from bertsmith.labeled.errors.misspell import ErrorSettings, misspelled
from bertsmith.labeled.errors.rows import correction_rows, read_corrections, wrong_places
from bertsmith.labeled.errors.sighan import read_sighan, read_truth
from bertsmith.labeled.pairs.splits import PairFiles
from bertsmith.labeled.spec import DataSpec
from bertsmith.metrics.correction import CORRECTIONS

# The example of the official SIGHAN tool: what is right and what a system said, by place.
TOY = [
    ({}, {}),
    ({3: "生", 26: "直", 35: "關"}, {3: "生", 25: "直", 35: "關"}),
    ({}, {}),
    ({15: "舞"}, {15: "舞"}),
    ({16: "炭", 48: "作"}, {16: "炭", 48: "做"}),
    ({49: "已"}, {}),
    ({}, {8: "天"}),
    ({45: "是"}, {45: "是"}),
    ({33: "有"}, {}),
    ({17: "考", 18: "慮"}, {17: "考", 18: "慮"}),
]
ESSAYS = """<ESSAY title="一">
<TEXT>
<PASSAGE id="A-1">我今天很高幸。</PASSAGE>
<PASSAGE id="A-2">天氣很好。</PASSAGE>
</TEXT>
<MISTAKE id="A-1" location="6">
<WRONG>高幸</WRONG>
<CORRECTION>高興</CORRECTION>
</MISTAKE>
</ESSAY>
"""


def test_the_official_figures_are_those_of_the_official_tool() -> None:
    figures = CORRECTIONS.score(*zip(*TOY, strict=True))
    wanted = {
        "false_alarm_rate": 0.3333,
        "detection_accuracy": 0.6,
        "detection_precision": 0.8,
        "detection_recall": 0.5714,
        "detection_f1": 0.6667,
        "correction_accuracy": 0.5,
        "correction_precision": 0.75,
        "correction_recall": 0.4286,
        "correction_f1": 0.5455,
    }
    assert {name: round(figures[name], 4) for name in wanted} == wanted
    assert figures["character_right_among_detected"] == pytest.approx(7 / 8)


def test_essays_and_test_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "train.sgml").write_text(ESSAYS, encoding="utf-8")
    data = read_sighan(tmp_path / "train.sgml")
    assert data.rows == [("我今天很高幸。", "我今天很高興。"), ("天氣很好。", "天氣很好。")]
    (tmp_path / "TestInput.txt").write_text(
        "(pid=B-1)\t我今天很高幸。\n(pid=B-2)\t天氣很好。\n", encoding="utf-8"
    )
    (tmp_path / "TestTruth.txt").write_text("B-1, 6, 興\nB-2, 0\n", encoding="utf-8")
    assert read_sighan(tmp_path / "TestInput.txt").rows == data.rows
    assert read_truth(tmp_path / "TestTruth.txt") == {"B-1": {5: "興"}, "B-2": {}}


def test_marks_that_do_not_fit_their_text_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "train.sgml"
    path.write_text(ESSAYS.replace('location="6"', 'location="2"'), encoding="utf-8")
    data = read_sighan(path)
    assert data.rows[0] == ("我今天很高幸。", "我今天很高幸。")
    assert "1 mistake whose marked text is not at its location" in data.notes[0]
    path.write_text(ESSAYS.replace('MISTAKE id="A-1"', 'MISTAKE id="A-9"'), encoding="utf-8")
    with pytest.raises(InputFileError, match="line 6: no passage above has the id 'A-9'"):
        read_sighan(path)


def test_a_mistake_without_its_passage_is_counted_as_published_files_have_some(
    tmp_path: Path,
) -> None:
    path = tmp_path / "train.sgml"
    stray = """<MISTAKE id="A-9" location="6">
<WRONG>高幸</WRONG>
<CORRECTION>高興</CORRECTION>
</MISTAKE>
"""
    path.write_text(ESSAYS.replace("</ESSAY>", f"{stray}</ESSAY>"), encoding="utf-8")
    data = read_sighan(path)
    assert data.rows[0] == ("我今天很高幸。", "我今天很高興。")
    assert "1 mistake without a passage of that id left out (first: line 10, A-9)" in data.notes[0]


def test_test_input_without_its_truth_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "TestInput.txt"
    path.write_text("(pid=B-1)\t我今天很高幸。\n", encoding="utf-8")
    with pytest.raises(InputFileError, match="Truth instead of Input"):
        read_sighan(path)
    (tmp_path / "TestTruth.txt").write_text("B-1, 60, 興\n", encoding="utf-8")
    with pytest.raises(InputFileError, match="place 60 of 'B-1' is outside"):
        read_sighan(path)
    (tmp_path / "TestTruth.txt").write_text("B-1, six, 興\n", encoding="utf-8")
    with pytest.raises(InputFileError, match="line 1"):
        read_sighan(path)


def test_pairs_of_different_lengths_are_counted_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("wrong\tright\n天乙人丙\t天甲人丙\n天\t天甲\n", encoding="utf-8")
    spec = DataSpec(text=("wrong", "right"))
    data = correction_rows(path, spec)
    assert data.rows == [("天乙人丙", "天甲人丙")]
    assert "line 3: the wrong text has 1 characters, the right one 2" in " ".join(data.notes)
    path.write_text("wrong\tright\n天\t天甲\n", encoding="utf-8")
    with pytest.raises(InputFileError, match="same length"):
        correction_rows(path, spec)


def test_named_columns_are_those_of_dev_and_test_files_too(tmp_path: Path) -> None:
    for name, row in (("train", "天乙\t天甲"), ("dev", "人乙\t人丙"), ("test", "日乙\t日丁")):
        (tmp_path / f"{name}.tsv").write_text(f"wrong\tright\n{row}\n", encoding="utf-8")
    also = {name: tmp_path / f"{name}.tsv" for name in ("dev", "test")}
    spec = DataSpec(text=("wrong", "right"))
    files = PairFiles(data=tmp_path / "train.tsv", spec=spec, also=also)
    splits = read_corrections(files, ErrorSettings())
    assert splits.dev.rows == [("人乙", "人丙")], "the header is no row"
    assert splits.test is not None
    assert splits.test.rows == [("日乙", "日丁")]


def test_clean_text_without_confusions_says_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "clean.txt"
    path.write_text("他是她的事情\n天气很好\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"errors\.confusions"):
        correction_rows(path, DataSpec())
    planted = correction_rows(
        path, DataSpec(), errors=ErrorSettings(confusions="pinyin", rate=1.0, clean=0.0)
    )
    assert [right for _, right in planted.rows] == ["他是她的事情", "天气很好"]
    assert all(len(one) == len(other) for one, other in planted.rows)
    with pytest.raises(ConfigError, match="there is no file"):
        correction_rows(path, DataSpec(), errors=ErrorSettings(confusions="nowhere.txt"))


def test_both_layouts_of_confusion_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "sound.txt").write_text("漢字\t同音\t近音\n一\t衣意\t以一\n", encoding="utf-8")
    assert read_confusions(tmp_path / "sound.txt") == {"一": "衣意以"}
    (tmp_path / "shape.txt").write_text("一,二三\n,天地\n", encoding="utf-8")
    assert read_confusions(tmp_path / "shape.txt") == {"一": "二三"}
    (tmp_path / "odd.txt").write_text("一\t二\n一二三\n", encoding="utf-8")
    with pytest.raises(InputFileError, match="line 2"):
        read_confusions(tmp_path / "odd.txt")
    (tmp_path / "none.txt").write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(InputFileError, match="no line"):
        read_confusions(tmp_path / "none.txt")


def test_sounds_and_pairs_give_confusions() -> None:
    assert pinyin_confusions("一衣天a") == {"一": "衣", "衣": "一"}
    assert confusions_of_pairs([("天乙", "天甲"), ("天丙a", "天甲1")]) == {"丙": "甲", "乙": "甲"}


@given(st.text("一衣天a1，", max_size=30), st.integers(0, 99))
def test_planted_errors_are_a_function_of_seed_and_text(text: str, seed: int) -> None:
    settings = ErrorSettings(rate=0.5, clean=0.1, seed=seed)
    confusions = {"一": "衣意", "衣": "一"}
    wrong = misspelled(text, confusions, settings)
    assert wrong == misspelled(text, confusions, settings)
    assert len(wrong) == len(text)
    assert all(text[place] in confusions for place in wrong_places(wrong, text))
