"""The whole state of a run to and from a checkpoint: weights, optimizer, mean, numbers, facts."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from bertsmith.errors import DivergedError, FolderError, TensorMismatchError
from bertsmith.files.digest import json_digest
from bertsmith.training.checkpoints.checkpoint import CHECKPOINTS, Checkpoints, VerifiedCheckpoint
from bertsmith.training.checkpoints.checkpoint_files import Content, Groups, read_document
from bertsmith.training.checkpoints.resume import (
    Fact,
    check_changes,
    flatten,
    machine_facts,
)
from bertsmith.training.checkpoints.tensor_layout import StoredCheckpoint, layout_for, open_stored
from bertsmith.training.execution.rank_sync import together
from bertsmith.training.loop.averaging import TailAverage
from bertsmith.training.loop.best import BestWeights
from bertsmith.training.loop.guard import broken
from bertsmith.training.loop.run import Run
from bertsmith.training.loop.state import TrainState
from bertsmith.training.optimizers.optimizers import Optimizers

log = logging.getLogger(__name__)

MODEL, OPTIMIZER, AVERAGE, BEST = "model", "optimizer", "average", "best"  # groups of tensors
STATE, RESULT = "state.json", "result.json"


class Saver:
    """Saves and restores one run; every method is called by all ranks."""

    def __init__(
        self, run: Run, optimizers: Optimizers, average: TailAverage, best: BestWeights
    ) -> None:
        self._run = run
        self._optimizers = optimizers
        self._average = average
        self._best = best
        self._checkpoints: Checkpoints | None = None  # of a run in memory
        if run.folder is not None:
            self._checkpoints = Checkpoints(
                run.folder / CHECKPOINTS, keep=run.save.keep, ranks=run.execution.ranks
            )
        self.facts = run_facts(run)

    def restore(self) -> TrainState:
        """The newest whole checkpoint, put into model and optimizer, or a fresh state."""
        if self._checkpoints is None:
            return TrainState()
        self._checkpoints.prepare()
        checkpoint = self._checkpoints.newest()
        if checkpoint is None:
            return TrainState()
        state = together(self._run.execution.ranks, lambda: self._load(checkpoint))
        log.info("resuming from %s (step %d)", checkpoint.path, checkpoint.step)
        return state

    def save(self, state: TrainState, *, reason: str) -> None:
        """Write a checkpoint, if the run has a folder; refuses a state that is not finite."""
        if self._checkpoints is None:
            return
        state.averaged = self._average.count
        tensors = {MODEL: _weights(self._run.model), OPTIMIZER: self._optimizers.state()}
        if self._average.count:
            tensors[AVERAGE] = self._average.state()
        state.best = self._best.facts
        if state.best:
            tensors[BEST] = self._best.state()
        together(self._run.execution.ranks, lambda: _refuse_broken(tensors, state.step))
        content = Content(
            tensors=tensors,
            documents={STATE: state.to_json()},
            facts={
                "step": state.step,
                "reason": reason,
                "settings": self.facts,
                "settings_sha256": json_digest(self.facts),
            },
        )
        # A state that training broke down in must not push an older one out.
        self._checkpoints.save(state.step, content, rotate=reason != "diverged")

    def size(self) -> int:
        """About how many bytes a checkpoint takes, with Adam's two moments."""
        return 3 * sum(t.numel() * t.element_size() for t in _weights(self._run.model).values())

    def _load(self, checkpoint: VerifiedCheckpoint) -> TrainState:
        """Fill model, optimizer and mean; no rank needs another for it."""
        path = checkpoint.path
        before = checkpoint.manifest.get("settings")
        if not isinstance(before, dict):
            raise FolderError(f"{path}: the manifest has no settings; it is not of this version")
        changes = check_changes(before, self.facts, step=checkpoint.step, accept=self._run.accept)
        state = TrainState.from_json(read_document(path, STATE), where=str(path / STATE))
        stored = open_stored(path, checkpoint.manifest)
        weights = _weights(self._run.model)
        _check_fit(stored, MODEL, weights)
        stored.read(MODEL, weights)
        self._optimizers.load(_read_like(stored, OPTIMIZER, weights))
        if state.averaged:
            self._average.load(_read_like(stored, AVERAGE, weights), state.averaged)
        if state.best:
            self._best.load(_read_like(stored, BEST, weights), state.best)
        state.changes.extend(changes)
        return state


def run_facts(run: Run) -> dict[str, Fact]:
    """Everything that a checkpoint records of a run, by dotted name."""
    own: dict[str, Any] = {
        "seed": run.seed,
        "optimizer": run.optimizer.model_dump(),
        "schedule": run.schedule.model_dump(),
        "averaging": run.averaging.model_dump(),
        "sharding": layout_for({MODEL: _weights(run.model)}).name,
    }
    return {**flatten(own), **run.facts, **machine_facts(world=run.execution.ranks.world)}


def _weights(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and stored buffers, each once, whatever shares them."""
    stored = model.state_dict().keys()
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.detach() for name, tensor in named if name in stored}


def _refuse_broken(tensors: Groups, step: int) -> None:
    for group, named in tensors.items():
        bad = broken(named)
        if bad:
            raise DivergedError(
                f"nothing was saved at step {step:,}: {bad[0]} of the {group} is not finite"
                f" ({len(bad)} tensors in all); older checkpoints are untouched"
            )


def _read_like(
    stored: StoredCheckpoint, group: str, owners: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """A group whose tensors lie, and are sharded, as the parameters at the end of their names."""
    targets = {}
    for name, shape in stored.shapes(group).items():
        owner = owners.get(name.rpartition(":")[2])
        if owner is not None and owner.shape == shape.shape:
            targets[name] = torch.empty_like(owner, dtype=shape.dtype)
        else:
            targets[name] = torch.empty_like(shape, device="cpu")
    stored.read(group, targets)
    return targets


def _check_fit(stored: StoredCheckpoint, group: str, targets: Mapping[str, Tensor]) -> None:
    shapes, where = stored.shapes(group), stored.where(group)
    if set(targets) != set(shapes):
        odd = sorted(set(targets) ^ set(shapes))
        raise TensorMismatchError(
            f"{where} is of another model: {len(odd)} tensors are missing or left over, "
            f"{odd[0]} first"
        )
    for name, target in targets.items():
        if target.shape != shapes[name].shape:
            raise TensorMismatchError(
                f"{where}: {name} has shape {tuple(shapes[name].shape)}, "
                f"the model {tuple(target.shape)}"
            )
