"""Results of finished runs, a file each, so that none of them is repeated."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertsmith.errors import ConfigError
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.strict_json import json_values
from bertsmith.tasks.prediction import Prediction

log = logging.getLogger(__name__)

NAME = re.compile(r"[\w.+-]+")
Figures = Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """The result of a finished run: figures of the development rows (None: there is no such)."""

    name: str
    figures: Figures
    seconds: float
    more: Mapping[str, Any] = field(default_factory=dict)  # plain values that belong to it
    answers: Sequence[Prediction] = ()  # to the development rows

    def to_json(self) -> dict[str, Any]:
        """Plain values; the answers are left out."""
        told = {"name": self.name, "figures": self.figures, "seconds": round(self.seconds, 3)}
        return dict(json_values({**told, **self.more}))


def _path(store: Path, name: str) -> Path:
    if not NAME.fullmatch(name):
        raise ConfigError(f"{name!r} cannot name a run: use letters, digits, ., +, - and _")
    return store / f"{name}.json"


def write_result(store: Path, tried: TrialResult, key: str) -> None:
    """Remember a finished run under the key of all that decided it."""
    store.mkdir(parents=True, exist_ok=True)
    told = {
        "key": key,
        "figures": tried.figures,
        "seconds": tried.seconds,
        "more": tried.more,
        "answers": [one.to_json() for one in tried.answers],
    }
    text = json.dumps(json_values(told), ensure_ascii=False)
    write_staged(_path(store, tried.name), text.encode("utf-8", "surrogatepass") + b"\n")


def read_result(store: Path, name: str, key: str) -> TrialResult | None:
    """What is known of a run with this key; None if it is to be made."""
    path = _path(store, name)
    try:
        told = json.loads(path.read_bytes())
        if told["key"] != key:
            return None
        return TrialResult(
            name=name,
            figures=dict(told["figures"]),
            seconds=float(told["seconds"]),
            more=told["more"],
            answers=tuple(_prediction(one) for one in told["answers"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        log.warning("%s is damaged; the run is made again", path)
        return None


def _prediction(told: Mapping[str, Any]) -> Prediction:
    """What is compared of an answer: its value, probabilities and tags."""
    value = told["prediction"]
    return Prediction(
        value=tuple(value) if isinstance(value, list) else value,
        probabilities=told.get("probabilities", {}),
        confidence=told.get("confidence"),
        cut=told.get("tokens_cut", 0),
        tags=tuple(told.get("tags", ())),
    )
