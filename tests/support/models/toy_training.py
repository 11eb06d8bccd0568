"""A run small enough to be killed a thousand times: two parts, unequal counts, dropout."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.folders.tensor_file import byte_view
from bertsmith.nn.loss import LossSum, cross_entropy
from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.checkpoints.checkpoint_files import verify
from bertsmith.training.checkpoints.tensor_layout import open_stored
from bertsmith.training.execution.stop import StopSignals
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.evaluate import EvaluationSettings
from bertsmith.training.loop.log import LogSettings
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.run import Outcome, Run
from bertsmith.training.loop.schedule import LinearSettings, StableSettings
from bertsmith.training.loop.workload import Workload
from bertsmith.training.optimizers.optimizers import AdamWSettings

WORDS, WIDTH = 23, 16


@dataclass(frozen=True)
class ToyScore:
    correct: int
    count: int


@dataclass(frozen=True)
class ToyBatch:
    ids: Tensor  # (T,)
    targets: Tensor  # (T,), -100 where nothing is asked
    labels: Tensor  # (B,)

    def to(self, device: torch.device) -> ToyBatch:
        return replace(self, ids=self.ids.to(device), targets=self.targets.to(device))


class ToyModel(nn.Module):
    def __init__(self, seed: int = 0, dropout: float = 0.1) -> None:
        super().__init__()
        self.tokens = nn.Embedding(WORDS, WIDTH)
        self.dense = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.pair = nn.Linear(WIDTH, 2)
        self.dropout = dropout
        rng = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.normal_(0.0, 0.3, generator=rng)

    def forward(self, ids: Tensor) -> Tensor:
        rows = F.dropout(self.tokens(ids), self.dropout, self.training)
        return self.norm(rows + torch.tanh(self.dense(rows)))


@dataclass
class ToyWork(Workload):
    """Predicts the next word of a noisy cycle, and whether a text began with an even word."""

    seed: int = 0
    texts: int = 6  # of a step, over all ranks
    micro: int = 2  # micro-batches of a step
    pause: float = 0.0
    shares: list[float] = field(default_factory=list)
    parts: dict[str, float] = field(default_factory=lambda: {"word": 1.0, "pair": 0.5})
    plant: dict[int, str] = field(default_factory=dict)

    @property
    def weights(self) -> dict[str, float]:
        return self.parts

    def micro_batches(self, step: int, share: float) -> list[ToyBatch]:
        self.shares.append(share)
        rows = [self._text(step * self.texts + i) for i in range(self.texts)]
        cuts = np.array_split(np.arange(self.texts), self.micro)
        return [self._batch([rows[i] for i in cut], step) for cut in cuts if len(cut)]

    def counts(self, batch: ToyBatch) -> dict[str, int]:
        return {"word": int((batch.targets >= 0).sum()), "pair": len(batch.labels)}

    def tokens(self, batch: ToyBatch) -> int:
        return batch.ids.numel()

    def examples(self, step: int) -> str:
        return f"examples {step * self.texts} to {(step + 1) * self.texts - 1}"

    def loss(self, model: nn.Module, batch: ToyBatch) -> tuple[dict[str, LossSum], dict[str, Any]]:
        if self.pause:
            time.sleep(self.pause)
        assert isinstance(model, ToyModel)
        asked = batch.targets >= 0
        rows = model(batch.ids)
        word_logits = rows[asked] @ model.tokens.weight.T
        first = rows.view(len(batch.labels), -1, WIDTH)[:, 0]
        pair_logits = model.pair(first)
        targets = batch.targets[asked]
        parts = {
            "word": cross_entropy(word_logits, targets),
            "pair": cross_entropy(pair_logits, batch.labels),
        }
        right = int((word_logits.argmax(-1) == targets).sum())
        return parts, {"word": ToyScore(right, targets.numel())}

    def held_out(self) -> list[ToyBatch]:
        return [self._batch([self._text(10_000_000 + i) for i in range(8)], -1)]

    def _text(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng([self.seed, number])
        ids = (rng.integers(WORDS) + np.arange(9) * 5) % WORDS
        noisy = rng.random(9) < 0.1
        ids[noisy] = rng.integers(0, WORDS, int(noisy.sum()))
        asked = rng.random(8) < rng.random()  # very unequal counts
        asked[0] = True
        return ids, asked

    def _batch(self, rows: list[tuple[np.ndarray, np.ndarray]], step: int) -> ToyBatch:
        ids = torch.from_numpy(np.stack([ids[:-1] for ids, _ in rows])).long()
        targets = torch.from_numpy(np.stack([np.where(a, ids[1:], -100) for ids, a in rows])).long()
        if self.plant.get(step) == "nothing":
            targets.fill_(-100)
        return ToyBatch(ids.flatten(), targets.flatten(), ids[:, 0] % 2)


def toy_run(folder: Path | None, *, steps: int = 24, pause: float = 0.0, **changes: Any) -> Run:
    """A run of a second or less; `changes` replace fields of the Run."""
    run = Run(
        folder=folder,
        model=ToyModel(),
        workload=ToyWork(pause=pause),
        schedule=StableSettings(steps=steps, warmup=0.2, decay=0.4),
        optimizer=AdamWSettings(lr=5e-3),
        save=SaveSettings(every=5, keep=2),
        evaluation=EvaluationSettings(every=7),
        averaging=AveragingSettings(tail=0.4, every=2),
        log=LogSettings(every=3),
        seed=11,
        facts={"data.sha256": "d" * 64, "vocabulary.sha256": "v" * 64, "precision": "fp32"},
    )
    return replace(run, **changes)


def train_heeding_signals(run: Run) -> Outcome:
    """As a command trains: SIGTERM and others stop it."""
    with StopSignals() as stop:
        return train(replace(run, execution=replace(run.execution, stop=stop)))


def linear(steps: int) -> LinearSettings:
    return LinearSettings(steps=steps)


def final_state(folder: Path) -> dict[str, Any]:
    """Everything that must be bit-identical at the end of a run, however often it was killed."""
    newest = sorted((folder / "checkpoints").glob("step-*"))[-1]
    tensors = {
        f"{group}:{name}": hashlib.sha256(byte_view(tensor)).hexdigest()
        for group in ("model", "optimizer", "average")
        for name, tensor in saved_tensors(newest, group).items()
    }
    state = json.loads((newest / "state.json").read_text())
    for name in ("clock", "reserve", "changes"):
        state.pop(name)
    result = json.loads((folder / "result.json").read_text())
    result.pop("seconds")
    return {
        "newest": newest.name,
        "tensors": tensors,
        "state": state,
        "result": result,
        "log": log_lines(folder),
    }


def saved_tensors(checkpoint: Path, group: str) -> dict[str, Tensor]:
    """A group of tensors of a checkpoint, whole, whatever its layout."""
    stored = open_stored(checkpoint, verify(checkpoint))
    found = {name: torch.empty_like(t, device="cpu") for name, t in stored.shapes(group).items()}
    stored.read(group, found)
    return found


def log_lines(folder: Path) -> list[dict[str, Any]]:
    """The log without times and remarks."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    kept = [line for line in lines if line["kind"] in ("train", "eval", "final", "end")]
    return [
        {k: v for k, v in line.items() if k not in ("seconds", "tokens_per_second")}
        for line in kept
    ]
