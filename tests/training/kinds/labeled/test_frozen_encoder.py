"""An encoder that stays as it is: it is read once, drops nothing out, and only the head learns."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from tiny_finetuning import (
    RECIPE,
    StopAt,
    finetune_seeds,
    straight_and_cut,
    tiny_job,
    weights,
)

from bertsmith.folders.read import load_model
from bertsmith.nn.encoder import Encoder
from bertsmith.nn.inputs import Inputs
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.text_vector import Layers, Pooling
from bertsmith.training.execution.execution import Execution, RunSettings
from bertsmith.training.kinds.labeled import encoder_cache
from bertsmith.training.kinds.labeled.encoder_cache import PHASE
from bertsmith.training.kinds.labeled.learner import finetune
from bertsmith.training.kinds.labeled.recipe import (
    EncoderSettings,
    FinetuneRecipe,
    TextVectorSettings,
)
from bertsmith.training.loop.progress import Progress

SECOND = RunSettings(seed=1)
WEIGHTS = ("model.safetensors", "task_head.safetensors")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the tokens of each pass through an encoder."""
    tokens: list[int] = []
    forward = Encoder.forward

    def counted(self: Encoder, inputs: Inputs, *others: object, **named: object) -> object:
        tokens.append(len(inputs.ids))
        return forward(self, inputs, *others, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Encoder, "forward", counted)
    return tokens


def frozen(
    pooling: Pooling = "mean", layers: Layers = "last", length: LengthSettings | None = None
) -> FinetuneRecipe:
    return RECIPE.model_copy(
        update={
            "encoder": EncoderSettings(frozen=True),
            "vector": TextVectorSettings(pooling=pooling, layers=layers),
            "length": length or RECIPE.length,
        }
    )


@pytest.mark.parametrize("task", ["classify", "multilabel", "regress", "choose"])
def test_each_text_is_read_once_and_the_folder_says_the_same(
    source: str, tmp_path: Path, read: list[int], task: str
) -> None:
    job = tiny_job(source, tmp_path / "out", task, recipe=frozen())
    looks: list[Progress] = []
    done = finetune(job, watch=looks.append)
    begun = [look for look in looks if look.phase == PHASE]
    assert begun[-1].share == 1.0
    assert sum(read) == begun[-1].tokens, "epochs and evaluations read tokens again"
    assert done.outcome.seconds >= begun[-1].seconds, "the time of the reading counts"
    assert {look.tokens for look in looks if not look.phase} == {0}
    said = load_predictor(tmp_path / "out").predict(job.rows.dev)
    assert [one.value for one in said] == [one.value for one in done.finished.predictions]


@pytest.mark.parametrize("pooling", ["mean", "first", "published", "attention"])
def test_only_what_stands_above_the_encoder_learns(
    source: str, tmp_path: Path, pooling: Pooling
) -> None:
    done = finetune(tiny_job(source, tmp_path / "out", recipe=frozen(pooling)))
    old, new = load_model(source).model, load_model(tmp_path / "out").model
    stored = dict(old.named_parameters())
    changed = {
        name
        for name, parameter in new.named_parameters()
        if name in stored and not torch.equal(parameter, stored[name])
    }
    poolers = {"encoder.pooler.weight", "encoder.pooler.bias"}
    assert changed == (poolers if pooling == "published" else set())
    assert done.dev_figures is not None
    assert done.dev_figures["accuracy"] > 0.5


def test_vectors_that_are_not_kept_lead_to_the_same_head(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[int]
) -> None:
    windows = frozen("mean", 1, LengthSettings(max_length=6, stride=3))
    kept = finetune(tiny_job(source, tmp_path / "kept", recipe=windows))
    once = sum(read)
    monkeypatch.setattr(encoder_cache, "MOST", 0)
    anew = finetune(tiny_job(source, tmp_path / "anew", recipe=windows))
    assert sum(read) > 3 * once
    assert kept.finished is not None
    assert anew.finished is not None
    ours, theirs = kept.finished.model.stored(), anew.finished.model.stored()
    assert {"own.output.weight", "own.output.bias"} <= ours.keys()
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], atol=1e-4, rtol=1e-3)


def test_a_stopped_run_goes_on_to_the_same_bits(source: str, tmp_path: Path) -> None:
    straight_and_cut(source, tmp_path, frozen())
    assert set(weights(tmp_path / "cut")) == set(WEIGHTS)


def test_a_finished_run_reads_no_training_row_again(
    source: str, tmp_path: Path, read: list[int]
) -> None:
    job = tiny_job(source, tmp_path / "out", recipe=frozen())
    first = finetune(job)
    del read[:]
    again = finetune(job)
    dev = sum(read)
    assert again.dev_figures == first.dev_figures
    del read[:]
    load_predictor(tmp_path / "out").predict(job.rows.dev)
    assert dev <= 3 * sum(read), "the last look at development rows, and what is said of them"


@pytest.mark.parametrize("name", ["dropout", "attention_dropout"])
def test_dropout_inside_of_it_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="drops nothing out"):
        EncoderSettings.model_validate({"frozen": True, name: 0.1})


def test_all_seeds_share_what_was_read_and_learn_the_same_as_alone(
    source: str, tmp_path: Path, read: list[int]
) -> None:
    alone = finetune(
        tiny_job(source, tmp_path / "alone", recipe=frozen().model_copy(update={"run": SECOND}))
    )
    once = sum(read)
    read.clear()
    many = finetune_seeds(tiny_job(source, tmp_path / "many", recipe=frozen()), [0, 1])
    assert sum(read) == once
    assert many.members[1].figures == alone.dev_figures
    for name in WEIGHTS:
        second = tmp_path / "many" / "seeds" / "1" / name
        assert second.read_bytes() == (tmp_path / "alone" / name).read_bytes()


def test_a_stop_request_while_the_encoder_reads_ends_the_run_at_once(
    source: str, tmp_path: Path, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder_cache, "MICRO_TOKENS", 64)
    stop = StopAt(-1)
    phases: list[str | None] = []

    def watch(look: Progress) -> None:
        phases.append(look.phase)
        stop.received = "SIGINT"

    job = tiny_job(source, tmp_path / "out", recipe=frozen())
    done = finetune(job, execution=Execution(stop=stop), watch=watch)
    assert phases == [PHASE]  # one batch, of many
    assert (done.outcome.status, done.outcome.signal, done.outcome.step) == ("stopped", "SIGINT", 0)
    assert done.outcome.exit_code == 75
    assert finetune(job).outcome.status == "finished"
