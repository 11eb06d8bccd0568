"""Token dropout: which tokens are masked, when, and that runs repeat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_finetuning import RECIPE, rows, straight_and_cut, tiny_job, weights
from tiny_tasks import SPECIAL, row, word_tokenizer

from bertsmith.config import changed
from bertsmith.errors import ConfigError
from bertsmith.labeled.example import Label
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.tasks.classify import Classify, classify_from
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.losses import CrossEntropySettings
from bertsmith.tasks.regularizers import TokenDropout
from bertsmith.tasks.task import TaskOptions
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.kinds.labeled.learner import finetune
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe, PlanSettings
from bertsmith.training.kinds.labeled.record import regularization
from bertsmith.training.kinds.labeled.workload import FinetuneWorkload, Regularizers

TOKENIZER = word_tokenizer()
MASK = SPECIAL.index("[MASK]")


class OneOf(Ranks):
    """A rank that never has to meet the others."""

    def __init__(self, rank: int, world: int) -> None:
        self._place = (rank, world)

    @property
    def rank(self) -> int:
        return self._place[0]

    @property
    def world(self) -> int:
        return self._place[1]


def task_and_features(texts: list[str]) -> tuple[Classify, list[Feature]]:
    examples = [row(n, [text], Label("ab"[n % 2])) for n, text in enumerate(texts)]
    task = classify_from(examples, TaskOptions(loss=CrossEntropySettings()))
    return task, task.features(examples, TOKENIZER, LengthSettings(max_length=512))


def masking(share: float) -> FinetuneRecipe:
    return changed(RECIPE, {"regularization.token_dropout": share})


def test_the_share_is_hidden_and_special_tokens_are_not() -> None:
    _, (long, _) = task_and_features(["bird " * 400, "red"])
    masked = TokenDropout(0.25, MASK, seed=5)
    shares = []
    for reading in range(50):
        (hidden,) = masked.hide([long], reading)
        ids = hidden.encoding.ids
        changed = ids != long.encoding.ids
        assert set(ids[changed].tolist()) == {MASK}
        assert not changed[[0, -1]].any()
        shares.append(changed.sum() / 400)
    # 20,000 draws: the standard error of their mean is .003.
    assert abs(np.mean(shares) - 0.25) < 0.015
    assert (long.encoding.ids != MASK).all()


def test_a_reading_hides_the_same_tokens_again_and_another_reading_others() -> None:
    _, (text, _) = task_and_features(["red bird tree " * 30, "red"])
    masked = TokenDropout(0.5, MASK, seed=5)
    first, again, other = (masked.hide([text], at)[0].encoding.ids for at in (7, 7, 8))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    elsewhere = TokenDropout(0.5, MASK, seed=6).hide([text], 7)[0].encoding.ids
    assert not np.array_equal(first, elsewhere)


def test_several_ranks_hide_what_one_hides() -> None:
    task, features = task_and_features([example.texts[0] for example in rows(24)])
    plan = PlanSettings(batch=8)

    def read(rank: int, world: int) -> list[list[int]]:
        work = FinetuneWorkload(
            task,
            features,
            plan=plan,
            seed=3,
            ranks=OneOf(rank, world),
            regularizers=Regularizers(token_dropout=TokenDropout(0.3, MASK, seed=3)),
        )
        batches = [batch for step in range(4) for batch in work.micro_batches(step, 0.0)]
        return sorted(
            text.tolist() for batch in batches for text in batch.ids.split(batch.layout.lengths)
        )

    assert sorted(read(0, 2) + read(1, 2)) == read(0, 1)
    assert any(MASK in text for text in read(0, 1))


def test_a_run_learns_and_goes_on_to_the_same_bits(source: str, tmp_path: Path) -> None:
    done = straight_and_cut(source, tmp_path, masking(0.2))
    assert done.dev_figures is not None
    assert done.dev_figures["accuracy"] > 0.8
    finetune(tiny_job(source, tmp_path / "whole", recipe=masking(0.0)))
    assert weights(tmp_path / "whole") != weights(tmp_path / "straight")
    told = {
        name: regularization(load_predictor(tmp_path / name), masking(share))
        for name, share in (("straight", 0.2), ("whole", 0.0))
    }
    assert "token dropout 0.2" in told["straight"]
    assert "token" not in told["whole"]


def test_a_vocabulary_without_a_mask_and_a_frozen_encoder_are_refused() -> None:
    files = {"vocab.txt": b"[PAD]\n[UNK]\n[CLS]\n[SEP]\nred", "tokenizer_config.json": b"{}"}
    maskless = Tokenizer.from_files(files)
    assert TokenDropout.of(0.0, maskless, seed=0) is None
    with pytest.raises(ConfigError, match=r"regularization\.token_dropout=0\.1 needs a mask token"):
        TokenDropout.of(0.1, maskless, seed=0)
    with pytest.raises(ConfigError, match="a frozen encoder reads each text once"):
        changed(masking(0.1), {"encoder.frozen": True})
