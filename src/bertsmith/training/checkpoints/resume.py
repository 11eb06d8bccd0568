"""Checks whether changed settings still allow resuming; no change passes in silence."""

from __future__ import annotations

import importlib.metadata
import json
import logging
import platform
from collections.abc import Collection, Mapping
from typing import Any

import torch

from bertsmith import __version__
from bertsmith.config import Settings
from bertsmith.errors import ConfigError

log = logging.getLogger(__name__)

Fact = str | int | float | bool | None

# What may differ: logged, recorded in every later checkpoint, and never in the way. Everything else
# changes what is learned, so the run is refused until the user accepts that change by name.
FREE = {
    "threads": "sums are added in another order: equal to about 1e-6, not bit for bit",
    "world": "the global batch is the same: equal to about 1e-6, not bit for bit",
    "sharding": "sums are added in another order: equal to about 1e-6, not bit for bit",
    "versions": "another version may round differently",
    "machine": "another processor may round differently",
    "batch.micro_tokens": "the batch is the same: equal to about 1e-6, not bit for bit",
    "run.threads": "sums are added in another order: equal to about 1e-6, not bit for bit",
    "run.devices": "the global batch is the same: equal to about 1e-6, not bit for bit",
    "save": "no effect on what is learned",
    "eval": "no effect on what is learned",
    "log": "no effect on what is learned",
}


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Fact]:
    """Nested settings as dotted names, as in overrides; lists become JSON text."""
    flat: dict[str, Fact] = {}
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{name}.")
        elif isinstance(value, str | int | float | bool) or value is None:
            flat[name] = value
        else:
            flat[name] = json.dumps(value, sort_keys=True, default=str)
    return flat


def recorded(settings: Settings, *, without: Collection[str]) -> dict[str, Fact]:
    """The settings of a job by dotted names, but not these sections.

    Left out is what the loop records itself (the optimizer) and what changes nothing that is
    learned.
    """
    tree = settings.model_dump(mode="json")
    return flatten({name: part for name, part in tree.items() if name not in without})


def machine_facts(*, world: int) -> dict[str, Fact]:
    """What this process adds to the facts of a run: threads, ranks, versions, processor."""
    return {
        "threads": torch.get_num_threads(),
        "world": world,
        "versions.bertsmith": __version__,
        "versions.torch": str(torch.__version__),
        "versions.numpy": importlib.metadata.version("numpy"),
        "versions.python": platform.python_version(),
        "machine.architecture": platform.machine(),
        "machine.instructions": torch.backends.cpu.get_cpu_capability(),
    }


def check_changes(
    before: Mapping[str, Fact], now: Mapping[str, Fact], *, step: int, accept: Collection[str] = ()
) -> list[dict[str, Any]]:
    """The changes since the checkpoint, each logged; a change that matters is refused by name."""
    names = sorted(
        name for name in {*before, *now} if before.get(name, _NONE) != now.get(name, _NONE)
    )
    refused = [name for name in names if _reason(name) is None and name not in accept]
    if refused:
        lines = "; ".join(
            f"{name} was {_shown(before, name)} and is {_shown(now, name)}" for name in refused
        )
        raise ConfigError(
            f"the run stands at step {step:,} and its settings have changed: {lines}. Put them "
            f"back, give another folder, or accept the change by name ({', '.join(refused)})"
        )
    changes = []
    for name in names:
        why = _reason(name) or "accepted by name: the run is no longer the one that was begun"
        old, new = _shown(before, name), _shown(now, name)
        log.warning("since step %d %s was %s and is %s; %s", step, name, old, new, why)
        changes.append({"step": step, "name": name, "before": old, "after": new})
    return changes


_NONE = object()


def _reason(name: str) -> str | None:
    """Why a change of this setting is let through, if it is."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        reason = FREE.get(".".join(parts[:length]))
        if reason is not None:
            return reason
    return None


def _shown(facts: Mapping[str, Fact], name: str) -> str:
    if name not in facts:
        return "not given"
    text = json.dumps(facts[name])
    return text if len(text) <= 80 else text[:77] + "..."
