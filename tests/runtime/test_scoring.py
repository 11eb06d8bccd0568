"""Pseudo-log-likelihood against a plain loop over transformers, and minimal pairs."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from bertsmith.cli.app import load_command
from bertsmith.errors import InputFileError, TooLongError
from bertsmith.runtime.scoring import MinimalPair, compare_pairs, read_pairs, score_texts

TEXTS = [
    "the man went to the store .",
    "",
    "a doggy ran home, walking and walking",
    "[MASK] [SEP]",
    "milk",
    "the man went to the store .",
]


def plain_scores(folder, model, text: str, hide: str) -> list[float]:
    """One forward pass of transformers for each token."""
    from transformers import BertForMaskedLM

    reference = BertForMaskedLM.from_pretrained(folder).eval()
    encoding = model.tokenizer.encode(text)
    found = []
    for place in range(1, len(encoding) - 1):
        ids = torch.from_numpy(encoding.ids).long()
        target = int(ids[place])
        for other in range(place, len(encoding) - 1):
            same = encoding.words[other] == encoding.words[place]
            if other == place or (hide == "word" and same):
                ids[other] = model.mask_id
        with torch.no_grad():
            row = reference(ids[None]).logits[0, place]
        found.append(float(row.log_softmax(-1)[target]))
    return found


@pytest.mark.parametrize("hide", ["token", "word"])
def test_scores_equal_a_plain_loop_over_transformers(folder, model, hide) -> None:
    for text, found in zip(TEXTS, score_texts(model, TEXTS, hide=hide, budget=40), strict=True):
        expected = plain_scores(folder, model, text, hide)
        assert found.values == pytest.approx(expected, abs=1e-5)
        assert found.total == pytest.approx(sum(expected), abs=1e-4)
        assert len(found.tokens) == len(expected)


def test_a_word_hidden_whole_scores_differently_only_where_words_have_pieces(model) -> None:
    one, other = (list(score_texts(model, TEXTS, hide=hide)) for hide in ("token", "word"))
    assert one[0].values == pytest.approx(other[0].values, abs=1e-6)
    assert not np.allclose(one[2].values, other[2].values)


def test_a_long_text_is_refused_by_its_number(model) -> None:
    with pytest.raises(TooLongError, match="text 2"):
        list(score_texts(model, ["a", "man " * 600]))


def test_a_tie_counts_one_half(model) -> None:
    def pair(good: str, bad: str, phenomenon: str) -> MinimalPair:
        return MinimalPair(good=good, bad=bad, phenomenon=phenomenon, paradigm="p")

    likely, other = sorted(
        ["the man ran home .", "home man . ran the"],
        key=lambda text: -next(score_texts(model, [text])).total,
    )
    pairs = [
        pair("The man.", "the  man .", "ties"),
        pair(likely, other, "won"),
        pair(other, likely, "lost"),
        pair("THE DOG", "the dog", "ties"),
    ]
    report = compare_pairs(model, pairs * 80)  # more than one block of texts
    assert {v.name: (v.pairs, v.accuracy, v.ties) for v in report.phenomena} == {
        "ties": (160, 0.5, 160),
        "won": (80, 1.0, 0),
        "lost": (80, 0.0, 0),
    }
    assert report.overall.accuracy == 0.5
    assert [v.name for v in report.paradigms] == ["p"]


def test_pairs_come_from_a_folder_and_faults_name_file_and_line(tmp_path) -> None:
    row = {"sentence_good": "a", "sentence_bad": "b", "UID": "u", "linguistics_term": "t"}
    (tmp_path / "u.jsonl").write_text(f"{json.dumps(row)}\n\n{json.dumps(row)}\n")
    assert (
        read_pairs(tmp_path) == [MinimalPair(good="a", bad="b", phenomenon="t", paradigm="u")] * 2
    )
    assert len(read_pairs(tmp_path, limit=1)) == 1
    (tmp_path / "v.jsonl").write_text('{"sentence_good": 3}\n')
    with pytest.raises(InputFileError, match=r"v\.jsonl, line 1"):
        read_pairs(tmp_path)
    with pytest.raises(InputFileError, match="holds no"):
        read_pairs(tmp_path / "empty")


def test_the_command_scores_a_file_a_text_and_pairs(folder, tmp_path, capsys) -> None:
    (tmp_path / "texts.txt").write_text("the man\nhome\n")
    score = load_command("lm")

    def run(*arguments: str) -> None:
        with pytest.raises(SystemExit, match="0"):
            score(["score", str(folder), *arguments])

    run(str(tmp_path / "texts.txt"), "--json")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["tokens"] for row in rows] == [2, 1]
    run("the man", "--tokens")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert float(lines[0].split("\t")[0]) == pytest.approx(rows[0]["score"], abs=1e-3)
    row = {"sentence_good": "the man", "sentence_bad": "man the", "linguistics_term": "order"}
    (tmp_path / "order.jsonl").write_text(json.dumps(row) + "\n")
    run("--blimp", str(tmp_path))
    assert "order" in capsys.readouterr().out
