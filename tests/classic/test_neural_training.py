"""Neural language models in the one training loop: learning, resuming, folders, refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fork_client import ForkServer
from tiny_words import TinyWords, random_words, tiny_settings, tiny_words

from bertsmith.classic.neural.folder import open_neural, save_neural
from bertsmith.classic.neural.learner import NeuralJob, neural_learner
from bertsmith.classic.neural.line_job import FinishedLm, split_lines
from bertsmith.classic.neural.scoring import NeuralLm
from bertsmith.classic.neural.settings import NEURAL_KINDS
from bertsmith.config import validated
from bertsmith.errors import BertsmithError, ConfigError, FolderError, TensorMismatchError
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.learner import Trained, run_job

pytestmark = pytest.mark.usefixtures("edited_folders")

SOFTMAXES: list[dict[str, Any]] = [
    {"softmax": {"kind": "full"}},
    {"softmax": {"kind": "adaptive"}},
    {"softmax": {"kind": "sampled", "samples": 64}},
    {"softmax": {"kind": "nce", "samples": 64}},
    {"softmax": {"kind": "full"}, "tied": True},
]
LONGER = {"steps": 400, "lines": 16, "lanes": 4, "window": 12, "evaluations": 4}


def lines_of(stream: TinyWords) -> list[np.ndarray]:
    return np.split(stream.ids, stream.starts[1:-1])


def train(job: NeuralJob) -> Trained[FinishedLm[NeuralLm]]:
    return run_job(neural_learner(), job)


def trained(kind: str, **changes: Any) -> tuple[NeuralLm, float]:
    settings = tiny_settings(kind, **{"plan": LONGER, "optimizer": {"lr": 0.02}, **changes})
    finished = train(NeuralJob(stream=random_words(300), settings=settings)).finished
    assert finished is not None
    assert finished.perplexity is not None
    return finished.model, finished.perplexity


def unigram_perplexity() -> float:
    lines, held_out = split_lines(
        NeuralJob(stream=random_words(300), settings=tiny_settings("nnlm"))
    )
    train, test = (part.tokens(0, len(part)) for part in (lines, held_out))
    chances = np.bincount(train, minlength=13) / len(train)
    return float(np.exp(-np.log(np.maximum(chances[test], 1e-3)).mean()))


@pytest.mark.parametrize("kind", NEURAL_KINDS)
@pytest.mark.parametrize("changes", SOFTMAXES, ids=lambda one: "-".join(map(str, one.values())))
def test_a_model_learns_what_follows_what(kind: str, changes: dict[str, Any]) -> None:
    model, perplexity = trained(kind, **changes)
    assert perplexity < 0.75 * unigram_perplexity()
    _, held_out = split_lines(NeuralJob(stream=random_words(300), settings=model.settings))
    texts = [held_out.tokens(n, n + 1)[:-1] - 1 for n in range(len(held_out))]
    scores = model.log_probabilities(texts)
    assert [len(one) for one in scores] == [len(text) + 1 for text in texts]
    assert math.exp(-np.concatenate(scores).mean()) == pytest.approx(perplexity, rel=1e-5)


@pytest.mark.parametrize("reset", ["line", "document", "none"])
@pytest.mark.parametrize("kind", NEURAL_KINDS)
def test_the_chances_of_next_words_sum_to_one_and_agree_with_the_scores(
    kind: str, reset: str
) -> None:
    settings = tiny_settings(kind, reset=reset)
    model = NeuralLm(
        settings=settings,
        words=random_words(5).words,
        network=settings.build(np.arange(13, 0, -1)).eval(),
    )
    line = np.array([3, 5, 1, 1, 7, 2], dtype=np.int32)
    rows = model.next_log_probabilities([line[:length] for length in range(7)])
    assert rows.shape == (7, 13)
    np.testing.assert_allclose(np.exp(rows).sum(1), 1, atol=1e-6)
    (scores,) = model.log_probabilities([line])
    np.testing.assert_allclose(scores[:6], rows[np.arange(6), line], atol=1e-6)
    assert scores[6] == pytest.approx(rows[6, 12], abs=1e-6)


def test_lines_are_scored_after_those_before_them_unless_states_are_reset() -> None:
    lines = lines_of(random_words(4))
    for reset, alike in (("line", True), ("document", False), ("none", False)):
        settings = tiny_settings("lstm", reset=reset)
        network = settings.build(np.arange(13, 0, -1)).eval()
        model = NeuralLm(settings=settings, words=random_words(4).words, network=network)
        together, alone = model.log_probabilities(lines), model.log_probabilities(lines[1:2])
        assert np.allclose(together[1], alone[0], atol=1e-6) == alike
    assert model.log_probabilities([]) == []


KILLED: list[tuple[str, dict[str, Any]]] = [
    ("nnlm", {"reset": "line", "softmax": {"kind": "nce", "samples": 9}, "dropout": 0.3}),
    ("nnlm", {"reset": "document"}),
    ("lstm", {"reset": "document", "dropout": 0.3, "layers": 2}),
    ("gru", {"reset": "none", "softmax": {"kind": "adaptive"}}),
    ("lstm", {"reset": "line", "softmax": {"kind": "sampled", "samples": 9}}),
]


@pytest.mark.parametrize(("kind", "changes"), KILLED)
def test_a_killed_run_ends_in_the_same_bytes(
    kind: str, changes: dict[str, Any], forks: ForkServer, tmp_path: Path
) -> None:
    def run(folder: str, kill: int | None = None) -> dict[str, Any]:
        return forks.run("neural", folder=tmp_path / folder, kind=kind, changes=changes, kill=kill)

    straight = run("straight")
    assert straight["code"] == 0, straight["error"]
    for step in (6, 11):
        assert run("killed", kill=step)["code"] == -9
    ended = run("killed")
    assert ended["code"] == 0, ended["error"]
    for name in ("model.safetensors", "config.json", "words.txt"):
        assert (tmp_path / "killed" / name).read_bytes() == (
            tmp_path / "straight" / name
        ).read_bytes(), name


def test_a_changed_setting_is_refused_when_a_run_resumes(tmp_path: Path) -> None:
    stream = random_words(30)
    train(NeuralJob(stream=stream, settings=tiny_settings("nnlm"), out=tmp_path / "run"))
    changed = tiny_settings("nnlm", order=3)
    with pytest.raises(BertsmithError, match="order was 5 and is 3"):
        train(NeuralJob(stream=stream, settings=changed, out=tmp_path / "run"))
    other = random_words(31)
    with pytest.raises(BertsmithError, match=r"data\.train"):
        train(NeuralJob(stream=other, settings=tiny_settings("nnlm"), out=tmp_path / "run"))


def test_training_ends_early_with_the_weights_of_least_perplexity() -> None:
    plan = {"steps": 400, "lines": 8, "window": 12, "evaluations": 40}
    settings = tiny_settings(
        "nnlm", plan=plan, optimizer={"lr": 0.05}, best={"patience": 2}, hidden=32
    )
    result = train(NeuralJob(stream=random_words(30), settings=settings))
    assert result.outcome.step < 400
    assert result.outcome.chosen == "best"
    assert result.outcome.last is not None
    assert result.finished is not None
    assert result.finished.perplexity is not None
    assert result.finished.perplexity <= result.outcome.last.figures["perplexity"]


@pytest.mark.parametrize("kind", NEURAL_KINDS)
@pytest.mark.parametrize("changes", SOFTMAXES, ids=lambda one: "-".join(map(str, one.values())))
def test_a_folder_gives_the_same_numbers(
    kind: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    settings = tiny_settings(kind, **changes)
    stream = random_words(20)
    network = settings.build(np.arange(13, 0, -1)).eval()
    model = NeuralLm(settings=settings, words=stream.words, network=network)
    save_neural(model, tmp_path / "model")
    opened = open_neural(tmp_path / "model")
    assert opened.words == stream.words
    assert opened.kind == kind
    assert opened.settings == settings
    lines = lines_of(stream)
    for found, wanted in zip(
        opened.log_probabilities(lines), model.log_probabilities(lines), strict=True
    ):
        assert np.array_equal(found, wanted)
    vectors = opened.word_vectors()
    assert vectors.words == stream.words
    assert np.array_equal(vectors.matrix, network.body.embedding.weight.detach()[1:].numpy())


def test_a_broken_folder_is_refused(tmp_path: Path) -> None:
    settings = tiny_settings("lstm")
    network = settings.build(np.arange(13, 0, -1))
    model = NeuralLm(settings=settings, words=random_words(5).words, network=network)
    save_neural(model, tmp_path / "model")
    config = json.loads((tmp_path / "model/config.json").read_text())

    def write(**changes: Any) -> None:
        (tmp_path / "model/config.json").write_text(json.dumps({**config, **changes}))

    write(model_type="lstn")
    with pytest.raises(ConfigError, match=r"config\.json.*did you mean 'lstm'"):
        open_neural(tmp_path / "model")
    write(vocab_size=11)
    with pytest.raises(FolderError, match=r"words\.txt has 12 words and config\.json says 11"):
        open_neural(tmp_path / "model")
    write(settings={**config["settings"], "hidden": 10**6})
    with pytest.raises(TensorMismatchError, match="shape"):
        open_neural(tmp_path / "model")
    for name in ("hidden", "layers", "width"):
        write(settings={**config["settings"], name: 10**12})
        with pytest.raises(ConfigError, match=f"{name} is 1000000000000; it should be less than"):
            open_neural(tmp_path / "model")
    write(settings={**config["settings"], "hiden": 3})
    with pytest.raises(ConfigError, match="did you mean 'hidden'"):
        open_neural(tmp_path / "model")
    write()
    (tmp_path / "model/words.txt").write_text("a\n" * 12)
    with pytest.raises(FolderError, match="one is empty or twice"):
        open_neural(tmp_path / "model")


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (tiny_words([], vocabulary=5), "no word to learn from"),
        (tiny_words([[], []], vocabulary=5), "no word to learn from"),
        (tiny_words([[1, 1, 0], [1, 0]], vocabulary=2), "2 words, the unknown one included"),
        (tiny_words([[1, 2, 3, 1]], vocabulary=5), "one line, so none can be held out"),
    ],
)
def test_text_that_nothing_can_be_learned_from_is_refused(stream: TinyWords, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        train(NeuralJob(stream=stream, settings=tiny_settings("nnlm")))


def test_one_word_and_a_held_out_line_are_enough() -> None:
    one = tiny_words([[1]], vocabulary=3)
    settings = tiny_settings("lstm", reset="none")
    finished = train(NeuralJob(stream=one, settings=settings, held_out=one)).finished
    assert finished is not None
    assert finished.perplexity is not None
    assert math.isfinite(finished.perplexity)
    other = tiny_words([[1]], vocabulary=4)
    with pytest.raises(ConfigError, match="encoded with other words"):
        train(NeuralJob(stream=one, settings=settings, held_out=other))


def test_several_processes_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    class Two(Ranks):
        world = 2

    job = NeuralJob(stream=random_words(30), settings=tiny_settings("nnlm"), out=tmp_path / "run")
    with pytest.raises(ConfigError, match="train in one process; set devices to 1"):
        run_job(neural_learner(), job, execution=Execution(ranks=Two()))
    assert not (tmp_path / "run").exists()


def test_settings_that_exclude_each_other_are_refused() -> None:
    for tree, message in (
        ({"direct": True, "tied": True}, "exclude each other"),
        ({"order": 1}, "order is 1"),
        ({"plan": {"steps": 3, "epochs": 1.0}}, "exactly one"),
        ({"softmax": "adaptve"}, "did you mean 'adaptive'"),
        ({"layers": 2}, "no setting is called 'layers'"),
    ):
        with pytest.raises(ConfigError, match=message):
            validated(NEURAL_KINDS["nnlm"], tree, "test")
    settings = tiny_settings("gru")
    network = settings.build(np.arange(13, 0, -1))
    model = NeuralLm(settings=settings, words=random_words(5).words, network=network)
    with pytest.raises(ConfigError, match="not all words of this model"):
        model.log_probabilities([np.array([12])])


def test_documents_are_held_out_whole() -> None:
    lines, held_out = split_lines(
        NeuralJob(stream=random_words(40, every=7), settings=tiny_settings("nnlm", held_out=0.2))
    )
    assert (len(lines), len(held_out)) == (35, 5)


def test_vectors_are_written_as_word2vec_text_without_a_change(tmp_path: Path) -> None:
    settings = tiny_settings("nnlm")
    network = settings.build(np.arange(13, 0, -1))
    model = NeuralLm(settings=settings, words=random_words(5).words, network=network)
    model.word_vectors().write(tmp_path / "vectors.txt")
    first, *rows = (tmp_path / "vectors.txt").read_text().splitlines()
    assert first == "12 8"
    vectors = model.word_vectors()
    assert tuple(row.split(" ")[0] for row in rows) == vectors.words
    found = np.array([row.split(" ")[1:] for row in rows], dtype=np.float32)
    assert np.array_equal(found, vectors.matrix)
