"""Training ELMo: both directions, resume, folders, scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bertsmith.classic.elmo.folder import open_elmo, open_reader
from bertsmith.classic.elmo.learner import ElmoJob, elmo_learner
from bertsmith.classic.elmo.model import ElmoModel
from bertsmith.classic.elmo.settings import ElmoSettings
from bertsmith.classic.neural.line_job import FinishedLm
from bertsmith.classic.neural.settings import NeuralPlan
from bertsmith.classic.neural.softmax import AdaptiveSoftmax, SampledSoftmax
from bertsmith.errors import TensorMismatchError
from bertsmith.folders.kinds import abilities_at
from bertsmith.models.word_encoders.elmo_spec import ElmoSpec
from bertsmith.text.whole_words.characters import count_cut
from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.learner import run_job
from bertsmith.training.loop.progress import Progress, Watcher
from bertsmith.training.optimizers.optimizers import AdamWSettings

pytestmark = pytest.mark.usefixtures("edited_folders")

TINY = ElmoSpec(length=14, characters=4, filters=((1, 4), (2, 6)), hidden=12, projection=8)
WIDER = ElmoSpec(length=14, filters=((1, 16), (2, 16)), hidden=32, projection=16)


@dataclass(frozen=True)
class Words:
    """A small stream in memory."""

    ids: np.ndarray
    starts: np.ndarray
    documents: np.ndarray
    words: tuple[str, ...]
    counts: np.ndarray


@pytest.fixture
def text() -> Words:
    """Lines that count upward, so that the next word and the one before are both known."""
    names = ("<unk>", *(f"word{n}" for n in range(8)), "a-word-of-more-bytes")
    random = np.random.default_rng(0)
    lines = []
    for _ in range(120):
        first, size = random.integers(1, 9), random.integers(1, 9)
        lines.append((first + np.arange(size)) % 9 + 1)
    ids = np.concatenate(lines).astype(np.int32)
    starts = np.cumsum([0, *map(len, lines)])
    counts = np.bincount(ids, minlength=len(names))
    return Words(ids, starts, np.array([0, len(lines)]), names, counts)


def settings(steps: int, **changes: object) -> ElmoSettings:
    plan = NeuralPlan(steps=steps, lines=8, window=6)
    given = ElmoSettings(
        model=TINY, plan=plan, optimizer=AdamWSettings(lr=1e-2), save=SaveSettings(every=3)
    )
    return given.model_copy(update=changes)


def trained(job: ElmoJob, *, watch: Watcher | None = None) -> FinishedLm[ElmoModel]:
    finished = run_job(elmo_learner(), job, watch=watch).finished
    assert finished is not None
    return finished


@pytest.mark.parametrize("softmax", [AdaptiveSoftmax(cutoffs=(4,)), SampledSoftmax(samples=5)])
def test_both_directions_learn(text: Words, softmax: object) -> None:
    given = settings(250, softmax=softmax, model=WIDER, dropout=0.0)
    result = trained(ElmoJob(stream=text, settings=given))
    assert result.notes == (
        "1 of 10 words have more than 12 bytes: the model reads their first ones",
    )
    assert result.figures is not None
    assert set(result.figures) == {"perplexity", "forward", "backward"}
    assert max(result.figures.values()) < 4.0  # of 10 words; first words cannot be known


def test_a_killed_run_ends_with_the_same_bits(text: Words, tmp_path: Path) -> None:
    def kill(progress: Progress) -> None:
        if progress.step == 8:
            raise KeyboardInterrupt

    given = settings(12, softmax=SampledSoftmax(samples=5))
    whole = trained(ElmoJob(stream=text, settings=given, out=tmp_path / "whole"))
    job = ElmoJob(stream=text, settings=given, out=tmp_path / "killed")
    with pytest.raises(KeyboardInterrupt):
        trained(job, watch=kill)
    resumed = trained(job)
    other = resumed.model.module.state_dict()
    for name, tensor in whole.model.module.state_dict().items():
        assert torch.equal(tensor, other[name]), name


def test_a_folder_gives_the_same_figures_and_refuses_other_shapes(
    text: Words, tmp_path: Path
) -> None:
    result = trained(ElmoJob(stream=text, settings=settings(20), out=tmp_path / "elmo"))
    assert abilities_at(tmp_path / "elmo") == {"lm", "words"}
    again = open_elmo(tmp_path / "elmo")
    lines = [np.array([1, 2, 3]), np.array([], dtype=np.int64), np.array([5] * 9), np.array([0])]
    forward, backward = again.both_log_probabilities(lines)
    for found, wanted in zip(forward, result.model.log_probabilities(lines), strict=True):
        assert np.array_equal(found, wanted)
    # One line at a time, and one prediction at a time, give the same.
    for number, line in enumerate(lines):
        alone = again.backward_log_probabilities([line])[0]
        assert np.allclose(alone, backward[number], atol=1e-5)
        steps = again.next_log_probabilities([line[:n] for n in range(len(line) + 1)])
        wanted = np.append(line, len(again.words))
        assert np.allclose(steps[np.arange(len(wanted)), wanted], forward[number], atol=1e-5)
        assert np.allclose(np.exp(steps).sum(1), 1.0, atol=1e-5)
    config = tmp_path / "elmo" / "config.json"
    config.write_text(config.read_text().replace('"hidden": 12', '"hidden": 13'))
    with pytest.raises(TensorMismatchError, match="network"):
        open_elmo(tmp_path / "elmo")


def test_a_later_word_changes_no_forward_prediction_before_it(text: Words) -> None:
    result = trained(ElmoJob(stream=text, settings=settings(5)))
    lines = [np.array([1, 2, 3, 4]), np.array([1, 2, 3, 9])]
    forward, backward = result.model.both_log_probabilities(lines)
    assert np.allclose(forward[0][:3], forward[1][:3], atol=1e-6)
    assert not np.allclose(backward[0][:3], backward[1][:3], atol=1e-4)


def test_vectors_depend_on_the_sentence_and_on_characters(text: Words, tmp_path: Path) -> None:
    trained(ElmoJob(stream=text, settings=settings(5), out=tmp_path / "elmo"))
    reader = open_reader(tmp_path / "elmo")
    first, second = reader.read([["word1", "word2"], ["word1", "never"]])
    assert first.shape == (3, 2, 16)
    assert np.allclose(first[0, 0], second[0, 0], atol=1e-6)  # the word itself
    assert not np.allclose(first[2, 0], second[2, 0], atol=1e-4)
    assert not np.allclose(second[0, 1], reader.read([["newer"]])[0][0, 0], atol=1e-4)
    assert count_cut(["é" * 6, "é" * 7], 14) == 1


def test_a_text_of_one_line_needs_a_held_out_one(text: Words) -> None:
    one = replace(text, starts=text.starts[:2], documents=np.array([0, 1]))
    with pytest.raises(Exception, match="held-out file"):
        trained(ElmoJob(stream=one, settings=settings(2)))
