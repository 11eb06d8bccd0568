"""A head and an input wrapper of one's own: a verbalizer on the masked LM, behind a soft prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny_finetuning import RECIPE, rows, tiny_job
from tiny_models import shrunk
from tiny_tasks import SPECIAL, TASK_WORDS, word_tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

import bertsmith
from bertsmith.errors import ConfigError, HardwareError
from bertsmith.folders.write import save_model
from bertsmith.metrics import CLASSIFICATION
from bertsmith.models.build import build
from bertsmith.models.text_model import TextModel
from bertsmith.nn import Inputs, Layout, LossSum
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.tasks.batch import TaskBatch, task_batch
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.kinds import TASKS
from bertsmith.tasks.model.heads import of_tokens
from bertsmith.tasks.model.task_head import InputWrapper, TaskHead
from bertsmith.tasks.task import PublishedHead, Task, TaskKind
from bertsmith.training.kinds.labeled.learner import finetune
from bertsmith.training.kinds.labeled.recipe import EncoderSettings

WORDS = {"yes": "green", "no": "red"}  # what the masked LM says for each label
IDS = {word: len(SPECIAL) + number for number, word in enumerate(TASK_WORDS)}
MASK = SPECIAL.index("[MASK]")
PROMPT = 3


class Verbalizer(TaskHead):
    """The masked LM's logits of a word per label, at the mask: V -> C."""

    def rows(self, model: TextModel, batch: TaskBatch) -> Tensor:
        return (batch.ids == MASK).nonzero()[:, 0]

    def read(self, model: TextModel, layers: Sequence[Tensor], batch: TaskBatch) -> Tensor:
        return layers[-1]

    def logits(self, model: TextModel, read: Tensor, batch: TaskBatch) -> Tensor:
        every = of_tokens(model).logits("masked_lm", read)  # (E, V)
        return every[:, [IDS[WORDS[label]] for label in ("no", "yes")]]


class SoftPrompt(InputWrapper):
    """Vectors before each text."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.prompt = nn.Parameter(torch.zeros(PROMPT, width))

    def forward(self, inputs: Inputs) -> tuple[Inputs, Tensor]:
        lengths = inputs.layout.lengths
        owners = torch.repeat_interleave(torch.tensor(lengths))
        place = torch.arange(len(inputs.ids)) + PROMPT * (owners + 1)
        ids = torch.zeros(len(inputs.ids) + PROMPT * len(lengths), dtype=torch.long)
        added = torch.ones_like(ids, dtype=torch.bool).index_fill(0, place, False)
        wrapped = Inputs(
            ids.index_copy(0, place, inputs.ids),
            Layout.of([length + PROMPT for length in lengths]),
            {n: torch.zeros_like(ids).index_copy(0, place, c) for n, c in inputs.channels.items()},
            self.prompt.repeat(len(lengths), 1),
            added.nonzero()[:, 0],
        )
        return wrapped, place


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompted(Classify):
    kind = property(lambda self: KIND)  # type: ignore[assignment]

    def features(self, examples: Any, tokenizer: Any, lengths: Any) -> list[Feature]:
        """Each text with a mask at its end."""
        longer = [replace(e, texts=(f"{e.texts[0]} house",)) for e in examples]
        found = Classify.features(self, longer, tokenizer, lengths)
        for feature in found:
            feature.encoding.ids[-2] = MASK
        return found

    def loss(self, logits: Tensor, batch: TaskBatch) -> LossSum:
        return LossSum(F.cross_entropy(logits, batch.wanted, reduction="sum"), batch.examples)


def prompt_of(model: TextModel, task: Task, random: torch.Generator | None) -> SoftPrompt:
    return SoftPrompt(of_tokens(model).spec.embedding)


KIND = TaskKind(
    name="prompted",
    title="labels as words of a masked LM",
    target="label",
    metric=CLASSIFICATION,
    from_data=lambda examples, options: Prompted(labels=("no", "yes")),
    from_json=lambda values: Prompted(labels=tuple(values["labels"])),
    head=PublishedHead("masked_lm", labeled=False),
    open_head=lambda model, task, random: Verbalizer(),
    wrapper=prompt_of,
)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A masked LM that knows a dozen words; the task is in the table."""
    monkeypatch.setitem(TASKS, "prompted", KIND)
    size = len(SPECIAL) + len(TASK_WORDS)
    spec = replace(shrunk("bert", vocab_size=size, hidden=32, heads=2, rows=64), pooler=False)
    model = build("bert", spec, heads=["masked_lm"], generator=torch.Generator().manual_seed(1))
    save_model(model, word_tokenizer(), tmp_path / "source")
    return str(tmp_path / "source")


def test_a_verbalizer_behind_a_soft_prompt_is_trained_stored_and_predicts(
    source: str, tmp_path: Path
) -> None:
    done = finetune(replace(tiny_job(source, tmp_path / "out"), task="prompted"))
    assert done.dev_figures is not None
    assert done.dev_figures["accuracy"] > 0.9

    (stored,) = [
        f for f in (tmp_path / "out").glob("*.safetensors") if f.name != "model.safetensors"
    ]
    weights = load_file(stored)
    assert list(weights) == ["wrapper.prompt"], "the head has none of its own"
    assert weights["wrapper.prompt"].abs().max() > 1e-3, "the prompt has learned"

    with pytest.raises(HardwareError, match="this model reads inputs that a wrapper changes"):
        load_predictor(tmp_path / "out", precision="bf16")
    predictor = load_predictor(tmp_path / "out")
    asked = rows(20, seed=9)
    features = predictor.reading.features(predictor.task, asked)
    batch = task_batch(features)
    alone = torch.cat([predictor.logits(task_batch([one])) for one in features])
    torch.testing.assert_close(predictor.logits(batch), alone, atol=1e-5, rtol=0)
    wrapper = predictor.model.wrapper
    assert isinstance(wrapper, SoftPrompt)
    inputs, place = wrapper(batch.inputs)
    at = place[(batch.ids == MASK).nonzero()[:, 0]]
    model = predictor.model.transformer
    with torch.no_grad():
        words = model.logits("masked_lm", model(inputs).hidden[at])
    by_hand = ["yes" if row[IDS["green"]] > row[IDS["red"]] else "no" for row in words]
    texts = [one.texts[0] for one in asked]
    assert [one.value for one in bertsmith.load(tmp_path / "out").predict(texts)] == by_hand


def test_a_prompt_learns_under_a_frozen_encoder(source: str, tmp_path: Path) -> None:
    recipe = RECIPE.model_copy(update={"encoder": EncoderSettings(frozen=True)})
    done = finetune(replace(tiny_job(source, None, recipe=recipe), task="prompted"))
    assert done.finished is not None
    trained_model = done.finished.model
    assert not trained_model.keeps_vectors
    assert not trained_model.keeps_layers
    assert isinstance(trained_model.wrapper, SoftPrompt)
    assert trained_model.wrapper.prompt.abs().max() > 1e-3
    trained = {name for name, one in trained_model.named_parameters() if one.requires_grad}
    assert all(name.startswith(("model.heads.", "wrapper.")) for name in trained)


@pytest.mark.parametrize("section", [{"layers": (8,)}, {"lstm": 4}, {"samples": 3}])
def test_settings_of_heads_are_refused_for_a_task_that_brings_one(
    source: str, section: dict[str, Any]
) -> None:
    head = RECIPE.head.model_copy(update=section)
    recipe = RECIPE.model_copy(update={"head": head})
    with pytest.raises(ConfigError, match="prompted brings a head of its own: leave out head"):
        finetune(replace(tiny_job(source, None, recipe=recipe), task="prompted"))
