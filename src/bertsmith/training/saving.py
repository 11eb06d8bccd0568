"""The whole state of a run to and from a checkpoint: weights, optimizer, mean, numbers, facts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from bertsmith.errors import BertsmithError, FolderError, TensorMismatchError
from bertsmith.training.averaging import TailAverage
from bertsmith.training.checkpoint import Checkpoints, Found
from bertsmith.training.checkpoint_files import Content, read_document, read_tensors
from bertsmith.training.guard import DivergedError, broken
from bertsmith.training.optimizers import Optimizers, sharded_like
from bertsmith.training.resume import Fact, check_changes, digest, flatten, machine_facts
from bertsmith.training.run import Run
from bertsmith.training.state import TrainState
from bertsmith.training.work import Ranks

log = logging.getLogger(__name__)

MODEL, OPTIMIZER, AVERAGE = "model.safetensors", "optimizer.safetensors", "average.safetensors"
STATE, RESULT = "state.json", "result.json"
Result = TypeVar("Result")


class Saver:
    """Saves and restores one run; every method is called by all ranks, the first one writes."""

    def __init__(self, run: Run, optimizers: Optimizers, average: TailAverage) -> None:
        self._run = run
        self._optimizers = optimizers
        self._average = average
        self._checkpoints = Checkpoints(run.folder / "checkpoints", keep=run.save.keep)
        self.facts = run_facts(run)

    def restore(self) -> TrainState:
        """The newest whole checkpoint, put into model and optimizer, or a fresh state."""
        ranks = self._run.ranks
        found = on_first(ranks, self._find)
        step = int(ranks.sum_counts({"step": found.step + 1 if found else 0})["step"]) - 1
        if step < 0:
            return TrainState()
        if found is None:
            found = self._checkpoints.at(step)
        state = self._load(found)
        log.info("going on from %s (step %d)", found.path, step)
        return state

    def save(self, state: TrainState, *, reason: str) -> None:
        """Write a checkpoint; refuses a state that is not finite."""
        state.averaged = self._average.count
        tensors = {
            MODEL: _whole(_weights(self._run.model)),
            OPTIMIZER: _whole(self._optimizers.state()),
        }
        if self._average.count:
            tensors[AVERAGE] = _whole(self._average.state())
        for name, group in tensors.items():
            bad = broken(group)
            if bad:
                raise DivergedError(
                    f"nothing was saved at step {state.step:,}: {bad[0]} of {name} is not finite"
                    f" ({len(bad)} tensors in all); older checkpoints are untouched"
                )
        content = Content(
            tensors=tensors,
            documents={STATE: state.to_json()},
            facts={
                "step": state.step,
                "reason": reason,
                "settings": self.facts,
                "settings_sha256": digest(self.facts),
            },
        )
        # A state that training broke down in must not push an older one out.
        keep_all = reason == "diverged"
        on_first(
            self._run.ranks,
            lambda: self._checkpoints.save(state.step, content, rotate=not keep_all),
        )

    def size(self) -> int:
        """About how many bytes a checkpoint takes, with Adam's two moments."""
        return 3 * sum(t.numel() * t.element_size() for t in _weights(self._run.model).values())

    def _find(self) -> Found | None:
        for path in self._run.folder.glob(f".{RESULT}.*.partial"):
            path.unlink(missing_ok=True)  # a process was killed between two system calls
        self._checkpoints.prepare()
        return self._checkpoints.newest()

    def _load(self, found: Found) -> TrainState:
        path = found.path
        before = found.manifest.get("settings")
        if not isinstance(before, dict):
            raise FolderError(f"{path}: the manifest has no settings; it is not of this version")
        changes = check_changes(before, self.facts, step=found.step, accept=self._run.accept)
        _fill(_weights(self._run.model), read_tensors(path, MODEL), str(path / MODEL))
        self._optimizers.load(read_tensors(path, OPTIMIZER))
        state = TrainState.from_json(read_document(path, STATE), where=str(path / STATE))
        if AVERAGE in found.manifest["files"]:
            self._average.load(read_tensors(path, AVERAGE), state.averaged)
        state.changes.extend(changes)
        return state


def run_facts(run: Run) -> dict[str, Fact]:
    """Everything that a checkpoint records of a run, by dotted name."""
    own: dict[str, Any] = {
        "seed": run.seed,
        "optimizer": run.optimizer.model_dump(),
        "schedule": run.schedule.model_dump(),
        "averaging": run.averaging.model_dump(),
    }
    return {**flatten(own), **run.facts, **machine_facts(world=run.ranks.world)}


def on_first(ranks: Ranks, action: Callable[[], Result]) -> Result | None:
    """Do something on the first rank only; if it fails there, all ranks fail."""
    fault: BaseException | None = None
    result: Result | None = None
    if ranks.is_first:
        try:
            result = action()
        except Exception as error:  # raised again below, once all ranks know
            fault = error
    if ranks.any(fault is not None):
        raise fault or BertsmithError("the first rank failed; its own message says why")
    return result


def _weights(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and stored buffers, each once, whatever shares them."""
    stored = model.state_dict().keys()
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.detach() for name, tensor in named if name in stored}


def _whole(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors as they are, those sharded over ranks put together (a collective call)."""
    return {
        name: tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        for name, tensor in tensors.items()
    }


@torch.no_grad()
def _fill(targets: Mapping[str, Tensor], stored: Mapping[str, Tensor], where: str) -> None:
    if set(targets) != set(stored):
        odd = sorted(set(targets) ^ set(stored))
        raise TensorMismatchError(
            f"{where} is of another model: {len(odd)} tensors are missing or left over, "
            f"{odd[0]} first"
        )
    for name, target in targets.items():
        if target.shape != stored[name].shape:
            raise TensorMismatchError(
                f"{where}: {name} has shape {tuple(stored[name].shape)}, "
                f"the model {tuple(target.shape)}"
            )
        target.copy_(sharded_like(stored[name], target))
