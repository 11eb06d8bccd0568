"""The length table counts the very tokens that tasks would cut."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from tiny_tasks import TASK_WORDS, row, word_tokenizer

from bertsmith.errors import ConfigError
from bertsmith.evaluation.length_table import LengthTable, length_table, row_lengths
from bertsmith.labeled import Answers, ChoiceIndex, Label, Splits
from bertsmith.tasks.length import LengthSettings, encodings
from bertsmith.text.encoding import UnknownTokens


def words(count: int, draw: random.Random) -> str:
    return " ".join(draw.choices(TASK_WORDS, k=count))


def table(lengths: list[int], **more) -> LengthTable:
    return LengthTable(tokens={"train": np.array(lengths)}, limits=(64, 128, 256, 512), **more)


@pytest.mark.parametrize("fields", [1, 2, 3])
def test_a_row_is_cut_exactly_when_the_table_says_so(fields: int) -> None:
    draw = random.Random(fields)
    tokenizer = word_tokenizer()
    rows = [
        row(n, [words(draw.randint(0, 30), draw) for _ in range(fields)], Label("x"))
        for n in range(1_500)  # more than are counted at once
    ]
    rows.append(row(1_500, ["\u0301 [SEP] Stone! unheard"] * fields, Label("x")))
    limit = 20 * fields
    found = length_table({"train": rows}, tokenizer, limits=(limit,))
    texts = [one.texts for one in rows]
    parts = encodings(texts, tokenizer, LengthSettings(max_length=limit))
    cut = np.array([one[0].total_cut for one in parts])
    whole = np.array([len(one[0]) + one[0].total_cut for one in parts])
    assert found.tokens["train"].tolist() == whole.tolist()
    assert 0 < found.cut(limit) == (cut > 0).mean() < 1
    assert found.lost(limit) == pytest.approx(cut.sum() / whole.sum())


def test_choices_are_read_one_at_a_time_also_where_the_right_one_is_not_known() -> None:
    tokenizer = word_tokenizer()
    texts = ["red stone", "bird", "green tree house", "river"]
    splits = Splits(train=[row(0, texts, ChoiceIndex(1))], test=[row(1, texts)])
    found = length_table(splits, tokenizer)
    assert list(found.tokens) == ["train", "test"]
    assert found.tokens["train"].tolist() == found.tokens["test"].tolist() == [2 + 3 + 3]
    assert row_lengths(splits.train, tokenizer).tolist() == [2 + 1 + 3 + 1 + 5]


def test_percentiles_are_lengths_of_rows() -> None:
    found = table(list(range(1, 101)))
    assert [found.percentile(share) for share in (50, 95, 99, 100)] == [50, 95, 99, 100]
    assert found.cut(64) == 0.36
    assert found.cut(100) == 0.0
    assert found.suggested == 128
    assert table([10] * 98 + [200] * 2).suggested == 256
    assert table([10] * 99 + [200]).suggested == 64
    assert table([9_000]).suggested == 512


def test_the_lines_and_the_json_say_the_same() -> None:
    found = LengthTable(
        tokens={"train": np.array([10, 70, 70, 600]), "dev": np.array([5, 5])},
        limits=(64, 512),
        unknown=UnknownTokens(1_000, 561),
    )
    assert found.lines(chosen=512) == [
        "tokens  p50  p95  p99  max  cut at 64  cut at 512",
        "train    70  600  600  600     75.0 %      25.0 %",
        "dev       5    5    5    5      0.0 %       0.0 %",
        "warning: unknown tokens ([UNK]): 561 of 1,000, 56.1 %: the vocabulary does not cover "
        "these texts; use a model of their language",
        "max length 512: 16.7 % of the rows are cut, 11.6 % of all tokens",
    ]
    assert found.lines(chosen=600)[-1] == "max length 600: every row fits"
    stored = json.loads(json.dumps(found.to_json(chosen=512)))
    assert stored["unknown"] == 0.561
    assert stored["splits"]["train"] == {
        "rows": 4, "p50": 70, "p95": 600, "p99": 600, "max": 600, "cut": {"64": 0.75, "512": 0.25}
    }  # fmt: skip
    assert stored["all"]["cut"] == {"64": 0.5, "512": pytest.approx(1 / 6)}
    assert stored["chosen"]["cut"] == {"train": 0.25, "dev": 0.0}
    assert "chosen" not in found.to_json()
    rare = table([10] * 4_999 + [100])
    assert "<0.1 %" in rare.lines()[1]


def test_questions_are_read_in_windows_and_not_cut() -> None:
    tokenizer = word_tokenizer()
    rows = [row(0, ["red", words(90, random.Random(0))], Answers(()))]
    found = length_table({"train": rows}, tokenizer, limits=(64, 128))
    assert found.windows
    assert not length_table({"train": [row(0, ["red"], Label("x"))]}, tokenizer).windows
    assert length_table({"train": [row(0, ["red"], Label("x"))]}, tokenizer, windows=True).windows
    assert "longer than 64" in found.lines()[0]
    assert found.lines(chosen=64)[-1].endswith("100.0 % of the rows are read in several windows")


def test_what_is_not_there_is_said() -> None:
    found = length_table({"train": []}, word_tokenizer())
    assert found.lines(chosen=64)[-1] == "max length 64: every row fits"
    assert found.to_json()["all"]["rows"] == 0
    with pytest.raises(ConfigError, match="no split is called 'trian'; did you mean 'train'"):
        table([1]).cut(64, "trian")
