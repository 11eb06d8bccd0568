"""Sampling by filling: the chain has its exact stationary distribution, and a model obeys it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import run
from folder_models import tiny_model, tiny_tokenizer

import bertsmith
from bertsmith.errors import ConfigError, FolderError, TextError, TooLongError
from bertsmith.folders.write import save_model
from bertsmith.runtime.generation.filling import FillingOptions, filling_states

TOKENS, PLACES = 4, 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filling") / "masked"
    save_model(tiny_model("bert", heads=("masked_lm",)), tiny_tokenizer(), path)
    return path


def table() -> torch.Tensor:
    """Logits (other token, place, token): conditionals that belong to no joint distribution."""
    rng = torch.Generator().manual_seed(5)
    return torch.randn(TOKENS, PLACES, TOKENS, generator=rng)


def conditional(states: np.ndarray, places: np.ndarray) -> torch.Tensor:
    other = states[np.arange(len(states)), 1 - places]
    return table()[torch.from_numpy(other).long(), torch.from_numpy(places).long()]


def stationary() -> np.ndarray:
    """(4, 4): the exact vector of the random-scan chain of 16 states."""
    chances = table().double().softmax(-1).numpy()
    states = list(itertools.product(range(TOKENS), repeat=2))
    moves = np.zeros((16, 16))
    for row, (one, two) in enumerate(states):
        for new in range(TOKENS):
            moves[row, states.index((new, two))] += 0.5 * chances[two, 0, new]
            moves[row, states.index((one, new))] += 0.5 * chances[one, 1, new]
    values, vectors = np.linalg.eig(moves.T)
    vector = np.real(vectors[:, np.argmax(np.real(values))])
    return (vector / vector.sum()).reshape(TOKENS, TOKENS)


def test_visited_states_follow_the_exact_stationary_distribution() -> None:
    chains, steps = 500, 240
    options = FillingOptions(steps=steps, top_k=0, seed=1, answers=chains)
    visited = np.zeros((TOKENS, TOKENS))
    begin = np.zeros((chains, PLACES), dtype=np.int32)
    for number, states in enumerate(filling_states(conditional, begin, np.arange(2), options)):
        if number >= 40:
            np.add.at(visited, (states[:, 0], states[:, 1]), 1)
    distance = 0.5 * np.abs(visited / visited.sum() - stationary()).sum()
    assert distance < 0.02
    uniform = 0.5 * np.abs(1 / 16 - stationary()).sum()
    assert uniform > 0.1, "the test could not fail"


def test_one_text_is_the_same_among_others_and_again(folder: Path) -> None:
    model = bertsmith.load(folder, precision="fp32")
    several = model.sample_by_filling(FillingOptions(length=6, steps=20, seed=4, answers=3))
    alone = model.sample_by_filling(FillingOptions(length=6, steps=20, seed=4))
    assert alone[0].tokens == several[0].tokens
    assert len({one.tokens for one in several}) == 3
    other = model.sample_by_filling(FillingOptions(length=6, steps=20, seed=5))
    assert other[0].tokens != alone[0].tokens


def test_no_control_or_unknown_token_is_ever_written(folder: Path) -> None:
    model = bertsmith.load(folder, precision="fp32")
    forbidden = model.tokenizer.control_tokens | {"[UNK]"}
    texts = model.sample_by_filling(
        FillingOptions(length=8, steps=200, top_k=0, temperature=50.0, answers=20)
    )
    written = {token for one in texts for token in one.tokens}
    assert len(written) > 10
    assert not written & forbidden


def test_left_to_right_fills_every_mask_once_and_keeps_the_start(folder: Path) -> None:
    model = bertsmith.load(folder, precision="fp32")
    options = FillingOptions(start="a [MASK] c [MASK]", order="left_to_right", top_k=1)
    (text,) = model.sample_by_filling(options)
    assert (text.tokens[0], text.tokens[2]) == ("a", "c")
    first = model.fill("a [MASK] c [MASK]", top=50).guesses[0]
    control = model.tokenizer.control_tokens
    expected = next(guess.token for guess in first if guess.token not in control)
    assert text.tokens[1] == expected


def test_the_score_is_the_mean_pseudo_log_likelihood(folder: Path) -> None:
    model = bertsmith.load(folder, precision="fp32")
    (text,) = model.sample_by_filling(FillingOptions(start="a [MASK] c", top_k=1, steps=1))
    (score,) = model.score([text.text])
    assert score.tokens == text.tokens
    assert text.score == pytest.approx(score.total / len(score.values), abs=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 0}, "length is 0"),
        ({"steps": -1}, "steps is -1"),
        ({"temperature": 0.0}, "temperature"),
        ({"top_k": -2}, "top_k"),
        ({"order": "backwards"}, "random or left_to_right"),
        ({"order": "left_to_right", "steps": 3}, "leave steps out"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        FillingOptions(**options)


def test_texts_that_cannot_be_filled_are_refused(folder: Path, tmp_path: Path) -> None:
    model = bertsmith.load(folder, precision="fp32")
    with pytest.raises(ConfigError, match="leave length out"):
        model.sample_by_filling(FillingOptions(start="a [MASK]", length=3))
    with pytest.raises(TooLongError, match="a smaller length"):
        model.sample_by_filling(FillingOptions(length=5_000))
    with pytest.raises(TextError, match="control token"):
        model.sample_by_filling(FillingOptions(start="a [SEP] b", length=2))
    causal = tmp_path / "causal"
    save_model(tiny_model("bert", heads=("masked_lm",), sees="before"), tiny_tokenizer(), causal)
    with pytest.raises(FolderError, match="causal"):
        bertsmith.load(causal, precision="fp32").sample_by_filling()


def test_the_command_writes_by_filling(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run("generate", folder, "--length", "5", "--fill-steps", "9", "--answers", "2", "--scores")
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["1", "2"]
    assert all(float(line.split("\t")[1]) < 0 for line in lines)
    assert (
        run("generate", folder, "--start", "a [MASK]", "--fill-order", "left_to_right", "--json")
        == 0
    )
    assert '"sampling by filling"' in capsys.readouterr().out
    assert run("generate", folder, "a b", "--length", "5") == 2
    assert "--length is for text by filling" in capsys.readouterr().err
    assert run("generate", folder, "--length", "5", "--beams", "3") == 2
    assert "--beams is not for text by filling" in capsys.readouterr().err
    assert run("generate", folder) == 2
    assert "--length 20" in capsys.readouterr().err
