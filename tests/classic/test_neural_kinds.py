"""Neural kinds in the table of language models: from a file of text to scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_words import tiny_settings

from bertsmith.classic.kinds import LM_KINDS, lm_kind
from bertsmith.classic.language_model import score_lines
from bertsmith.classic.neural.mixture import fitted_mixture
from bertsmith.classic.neural.settings import NEURAL_KINDS
from bertsmith.classic.stream.splitting import SplitRule
from bertsmith.classic.stream.stream import WordReading, WordStream, build_words
from bertsmith.errors import ConfigError

TEXT = "the cat sat\nthe dog ran\n\na dog sat\nthe cat ran\n\na cat sat\n" * 12


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> WordStream:
    folder = tmp_path_factory.mktemp("words")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    reading = WordReading(split="spaces", form="sentences")
    return build_words([folder / "text.txt"], folder / "words", reading=reading)


def test_every_neural_kind_is_in_the_table() -> None:
    assert {name: LM_KINDS[name].settings for name in NEURAL_KINDS} == NEURAL_KINDS
    with pytest.raises(ConfigError, match="did you mean 'lstm'"):
        lm_kind("lstn")


@pytest.mark.parametrize("name", NEURAL_KINDS)
def test_a_kind_trains_on_a_stream_and_opens_its_folder(
    name: str, words: WordStream, tmp_path: Path
) -> None:
    plan = {"steps": 60, "lines": 8, "window": 8, "evaluations": 2}
    settings = tiny_settings(name, plan=plan, optimizer={"lr": 0.02})
    LM_KINDS[name].train(words, settings, tmp_path / "model")
    model = LM_KINDS[name].open(tmp_path / "model")
    assert model.kind == name
    assert model.words == words.words
    assert SplitRule.open(tmp_path / "model") == words.rule
    score = score_lines(model, [words.encode(["the", "cat", "sat"]), words.encode(["zebra"])])
    assert (score.words, score.lines, score.unknown) == (4, 2, 1)
    plain = score_lines(model, [words.encode(["the", "cat", "sat"])] * 3)
    assert 1 < plain.perplexity() < 3  # two choices for every word, one for the line end
    mixture = fitted_mixture([model, model], [words.line(0)])
    np.testing.assert_allclose(
        mixture.log_probabilities([words.line(1)])[0], model.log_probabilities([words.line(1)])[0]
    )
