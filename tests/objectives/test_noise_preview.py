"""`bertsmith mask preview --noise`, as a user types it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from masking_cases import tokenizer
from test_mask_preview import run

from bertsmith.errors import ConfigError
from bertsmith.objectives.noise.noises import NOISES
from bertsmith.objectives.noise.preview import preview_noise

ENGLISH = "Cats play north. New words sing. The mat likes a piece. South York. "
CHINESE = "我爱北京天安门。大学生活很美好。今天天气不错！中国人民银行。"


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("vocabulary")
    tokenizer().save(folder)
    return str(folder)


def table(out: str) -> dict[str, list[str]]:
    rows = (line.split("\t") for line in out.splitlines())
    return {row[0]: row[1:] for row in rows if len(row) == 3}


@pytest.mark.parametrize("text", [ENGLISH, CHINESE])
def test_rates_are_measured_next_to_those_requested(model, tmp_path, text) -> None:
    file = tmp_path / "texts.txt"
    file.write_text(f"{text * 4}\n" * 100, encoding="utf-8")
    out = run(model, file, "--noise", "permutation", "--noise", "infilling:0.4", "--count", "2")
    found = table(out)
    asked, share = found["infilling: words"]
    assert asked == "40.00%"
    assert float(share.rstrip("%")) == pytest.approx(40, abs=2)
    assert float(found["permutation: sentences"][1].rstrip("%")) > 80
    assert "0: " in found["masks by words"][1]
    assert "100 texts" in out
    assert all(line.startswith("[CLS]") and line.endswith("[SEP]") for line in out.splitlines()[:2])


def test_what_was_taken_out_stands_before_the_arrow(model) -> None:
    text = "cats play words north south new york piece like sing"
    masked = run(model, text, "--noise", "masking:0.5")
    assert masked.count("→[MASK]›") == 5
    assert [piece.strip("‹›").split("→")[0] for piece in re.findall("‹.*?›", masked)]
    deleted = run(model, text, "--noise", "deletion:0.3")
    assert "[MASK]" not in deleted
    words = [w for piece in re.findall("‹(.*?)→›", deleted) for w in piece.split() if w[0] != "#"]
    assert len(words) == 3
    turned = run(model, text, "--noise", "rotation")
    assert turned.splitlines()[0].startswith("[CLS] ⇄")
    assert table(turned)["rotation: texts"] == ["100.00%", "100.00%"]


def test_every_token_is_shown_once_whatever_the_order() -> None:
    noises = [NOISES[kind]() for kind in ("permutation", "infilling", "rotation", "deletion")]
    found = preview_noise([ENGLISH * 6] * 20, tokenizer(), noises, count=20, seed=3)
    expected = sorted(tokenizer().encode_batch([ENGLISH * 6])[0].tokens)
    whole = 0
    for pieces in found.samples:
        shown = [piece.text for piece in pieces if piece.fate == "shown"]
        for piece in pieces:
            shown += piece.text.split("→")[0].split() if piece.fate != "shown" else []
        # What is deleted next to a moved stretch has no place of its own in the text.
        assert set(shown) <= set(expected)
        whole += sorted(shown) == expected
        assert len(shown) > 0.8 * len(expected)
    assert any(piece.jumps for piece in found.samples[0])
    both = preview_noise([ENGLISH * 6] * 5, tokenizer(), noises[:2], count=5)
    for pieces in both.samples:
        shown = [word for piece in pieces for word in piece.text.split("→[MASK]")[0].split()]
        assert sorted(shown) == expected


def test_a_page_is_written_and_wrong_options_are_refused(model, tmp_path: Path) -> None:
    page = tmp_path / "noise.html"
    run(model, ENGLISH, "--noise", "infilling:0.5", "--html", page)
    assert "Noise preview" in page.read_text(encoding="utf-8")
    assert 'class="mask"' in page.read_text(encoding="utf-8")
    for options, words in (
        (("--noise", "infiling"), "did you mean 'infilling'"),
        (("--noise", "infilling:x"), "after the colon stands a rate"),
        (("--noise", "infilling:3"), "less than or equal to 1"),
        (("--noise", "infilling", "--rate", "0.3"), "--rate is an option of masking"),
    ):
        with pytest.raises(ConfigError, match=words):
            run(model, ENGLISH, *options)
