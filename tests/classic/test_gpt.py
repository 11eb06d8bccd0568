"""The causal language model as a kind: causality, learning, exact resume, folders of both uses."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fork_client import ForkServer
from tiny_tasks import word_tokenizer
from tiny_words import TinyWords, random_words, tiny_gpt, tiny_words

from bertsmith.classic.gpt.folder import open_gpt
from bertsmith.classic.gpt.learner import GptJob, gpt_learner
from bertsmith.classic.gpt.model import GptLm
from bertsmith.classic.gpt.settings import GptSettings
from bertsmith.classic.gpt.units import TokenUnits
from bertsmith.classic.kinds import open_lm
from bertsmith.classic.neural.line_job import FinishedLm
from bertsmith.classic.stream.stream import WordReading, build_words
from bertsmith.config import validated
from bertsmith.errors import BertsmithError, ConfigError, FolderError
from bertsmith.folders.read import load_model
from bertsmith.nn.inputs import Inputs
from bertsmith.training.learner import run_job

pytestmark = pytest.mark.usefixtures("edited_folders")


def lines_of(stream: TinyWords) -> list[np.ndarray]:
    return np.split(stream.ids, stream.starts[1:-1])


def finished(job: GptJob) -> FinishedLm[GptLm]:
    result = run_job(gpt_learner(), job)
    assert result.finished is not None
    return result.finished


def trained(out: Path | None = None, **changes: Any) -> GptLm:
    job = GptJob(stream=random_words(60), settings=tiny_gpt(**changes), out=out)
    return finished(job).model


def test_a_later_word_changes_nothing_before_it() -> None:
    model = trained()
    line = np.array([3, 5, 1, 1, 7, 2, 4, 6, 8, 9, 10, 11, 2, 3], dtype=np.int32)
    (before,) = model.log_probabilities([line])
    for place in range(len(line)):
        changed = line.copy()
        changed[place] = changed[place] % 11 + 1
        (after,) = model.log_probabilities([changed])
        assert np.allclose(after[:place], before[:place], atol=1e-9)
        assert abs(after[place] - before[place]) > 1e-6


def test_the_chances_of_next_words_sum_to_one_and_agree_with_the_scores() -> None:
    model = trained()
    line = np.array([3, 5, 1, 1, 7, 2, 4, 6, 8, 9, 10, 11, 2, 3, 1, 5], dtype=np.int32)
    rows = model.next_log_probabilities([line[:length] for length in range(len(line) + 1)])
    assert rows.shape == (len(line) + 1, 13)
    np.testing.assert_allclose(np.exp(rows).sum(1), 1, atol=1e-9)
    (scores,) = model.log_probabilities([line])
    np.testing.assert_allclose(scores[:-1], rows[np.arange(len(line)), line], atol=1e-6)
    assert scores[-1] == pytest.approx(rows[-1, 12], abs=1e-6)


def test_a_model_learns_what_follows_what_over_windows_of_a_long_line() -> None:
    stream = random_words(300)
    plan = {"steps": 150, "lines": 16, "window": 8, "evaluations": 2}
    result = finished(GptJob(stream=stream, settings=tiny_gpt(plan=plan)))
    assert result.perplexity is not None
    assert result.perplexity < 5  # 8.4 by counts of single words
    long = np.concatenate(lines_of(random_words(1, longest=60, seed=5)))
    follows = np.array([7 * 3 % 11 + 1], dtype=np.int32)
    chances = result.model.next_log_probabilities([np.append(long, 7)])
    assert chances[0].argmax() == follows[0]


def test_a_killed_run_ends_in_the_same_bytes(forks: ForkServer, tmp_path: Path) -> None:
    def run(folder: str, kill: int | None = None) -> dict[str, Any]:
        return forks.run("neural", folder=tmp_path / folder, kind="gpt", changes={}, kill=kill)

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


def test_a_folder_of_words_gives_the_same_numbers(tmp_path: Path) -> None:
    model = trained(tmp_path / "model")
    opened = open_lm(tmp_path / "model")
    assert (opened.kind, opened.words) == ("gpt", model.words)
    lines = lines_of(random_words(20, seed=3))
    for found, wanted in zip(
        opened.log_probabilities(lines), model.log_probabilities(lines), strict=True
    ):
        assert np.array_equal(found, wanted)


def test_a_folder_of_pieces_is_a_model_folder_of_its_tokenizer(tmp_path: Path) -> None:
    words = ["red", "green", "blue", "round", "square", "##s"]
    tokenizer = word_tokenizer(words)
    text = "reds green\nblue rounds square\nsquares red\n" * 12
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    stream = build_words(
        [tmp_path / "text.txt"],
        tmp_path / "words",
        tokenizer=tokenizer,
        reading=WordReading(form="sentences"),
    )
    settings = tiny_gpt()
    finished(GptJob(stream=stream, settings=settings, out=tmp_path / "model", rule=stream.rule))
    lm = open_gpt(tmp_path / "model")
    assert set(lm.words) == {"<unk>", *words}
    loaded = load_model(tmp_path / "model")  # as every other part of the toolkit does
    ids = loaded.tokenizer.encode("reds green").ids  # [CLS] red ##s green [SEP]
    with torch.no_grad():
        hidden = loaded.model(Inputs.of(ids, [len(ids)])).hidden
        logits = loaded.model.logits("masked_lm", hidden)
    classes = [tokenizer.token_to_id(word) for word in lm.words[1:]]
    classes = [tokenizer.special.unk, *classes, tokenizer.special.sep]
    chances = logits[:, classes].double().log_softmax(1)
    wanted = [chances[n, classes.index(int(ids[n + 1]))].item() for n in range(4)]
    line = stream.encode(["red", "##s", "green"])
    assert lm.log_probabilities([line])[0] == pytest.approx(wanted, abs=1e-6)


def test_a_tokenizer_without_an_end_and_foreign_words_are_refused() -> None:
    words = ("<unk>", "red", "elsewhere")
    with pytest.raises(ConfigError, match="'elsewhere' is no piece of the tokenizer"):
        TokenUnits.of(words, word_tokenizer(["red"]))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"model": {"sees": "all"}}, "sees"),
        ({"model": {"positions": 64}, "plan": {"steps": 1, "window": 65}}, "64"),
        ({"plan": {"steps": 1, "lanes": 3}}, "lanes"),
        ({"plan": {"steps": 3, "epochs": 1.0}}, "exactly one"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tree: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validated(GptSettings, tree, "test")


def test_a_broken_folder_is_refused(tmp_path: Path) -> None:
    trained(tmp_path / "model")
    record = tmp_path / "model/bertsmith.json"
    tree = json.loads(record.read_text())
    tree["language_model"]["window"] = 10**6
    record.write_text(json.dumps(tree))
    with pytest.raises(FolderError, match="window"):
        open_gpt(tmp_path / "model")
    tree["language_model"]["words"] = 11
    record.write_text(json.dumps(tree))
    with pytest.raises(FolderError, match=r"words\.txt has 12 words and bertsmith\.json says 11"):
        open_gpt(tmp_path / "model")
    record.unlink()
    with pytest.raises(FolderError, match="cannot give probabilities of words"):
        open_lm(tmp_path / "model")


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (tiny_words([], vocabulary=5), "no word to learn from"),
        (tiny_words([[1, 1, 0], [1, 0]], vocabulary=2), "2 words, the unknown one included"),
        (tiny_words([[1, 2, 3, 1]], vocabulary=5), "one line, so none can be held out"),
    ],
)
def test_text_that_nothing_can_be_learned_from_is_refused(stream: TinyWords, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        finished(GptJob(stream=stream, settings=tiny_gpt()))


def test_one_word_and_a_held_out_line_are_enough() -> None:
    one = tiny_words([[1]], vocabulary=3)
    result = finished(GptJob(stream=one, settings=tiny_gpt(), held_out=one))
    assert result.perplexity is not None
    assert math.isfinite(result.perplexity)


def test_a_changed_setting_is_refused_when_a_run_resumes(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    with pytest.raises(BertsmithError, match="seed was 0 and is 1"):
        trained(tmp_path / "run", seed=1)
