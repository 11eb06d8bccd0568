"""The section of config.json that says what no published config can: our own shapes and heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import get_args

from bertsmith.errors import ConfigError, unknown
from bertsmith.models.config import values
from bertsmith.models.config.values import Config
from bertsmith.models.spec import (
    Activation,
    FunctionalRelative,
    Learned,
    Positions,
    Sharing,
    Spec,
)
from bertsmith.models.variant import HEAD_KINDS, Head
from bertsmith.models.variants import VARIANTS

OWN_TYPE = "bertsmith"
MOST = 2**31 - 1


def section(heads: Sequence[Head]) -> dict[str, object]:
    """The heads of a model that no published class has together."""
    return {"heads": [asdict(head) for head in heads]}


def write_own(variant: str, spec: Spec, heads: Sequence[Head]) -> dict[str, object]:
    """A config of the type "bertsmith": variant, spec and heads as they are."""
    shape = asdict(spec)
    kind = "learned" if isinstance(spec.positions, Learned) else "functional_relative"
    shape["positions"] = {"kind": kind, **asdict(spec.positions)}
    own = {"variant": variant, "spec": shape, **section(heads)}
    return {"model_type": OWN_TYPE, "bertsmith": own}


def read_own(config: Config) -> tuple[str, Spec, tuple[Head, ...]]:
    """Variant, spec and heads of our section; the spec is a default one where only heads stand."""
    own = _table(config, "bertsmith")
    heads = tuple(_head(item) for item in _list(own, "heads"))
    if config.get("model_type") != OWN_TYPE:
        return "", Spec(), heads
    if "variant" not in own or "spec" not in own:
        raise ConfigError("the section bertsmith needs variant and spec")
    return values.text(own, "variant", tuple(VARIANTS)), _spec(_table(own, "spec")), heads


def _spec(shape: Config) -> Spec:
    known = {field.name for field in fields(Spec)}
    for name in shape:
        if name not in known:
            raise unknown("field of a spec", str(name), known)
    choices = {"activation": get_args(Activation), "sharing": get_args(Sharing)}
    found: dict[str, object] = {}
    for name in shape:
        if name == "positions":
            found[name] = _positions(_table(shape, name))
        elif name in choices:
            found[name] = values.text(shape, name, choices[name])
        elif name in ("dropout", "attention_dropout", "norm_eps"):
            found[name] = values.fraction(shape, name)
        elif name in ("pooler", "projected"):
            found[name] = _truth(shape, name)
        else:
            low = 0 if name in ("pad_id", "segments") else 1
            found[name] = values.integer(shape, name, low, MOST)
    return Spec(**found)  # type: ignore[arg-type]


def _positions(table: Config) -> Positions:
    if "kind" not in table:
        raise ConfigError("positions need a kind, learned or functional_relative")
    kind = values.text(table, "kind", ("learned", "functional_relative"))
    numbers = {key: values.integer(table, key, 0, MOST) for key in table if key != "kind"}
    expected = {"rows", "first"} if kind == "learned" else {"clip"}
    if set(numbers) != expected:
        raise ConfigError(f"{kind} positions need exactly {', '.join(sorted(expected))}")
    if kind == "functional_relative":
        return FunctionalRelative(clip=max(numbers["clip"], 1))
    if numbers["rows"] <= numbers["first"]:
        raise ConfigError(f"positions have {numbers['rows']} rows, all before the first one")
    return Learned(rows=numbers["rows"], first=numbers["first"])


def _head(item: object) -> Head:
    if not isinstance(item, Mapping) or set(item) - {"kind", "outputs", "dropout"}:
        raise ConfigError("each head needs kind, outputs and dropout, and nothing else")
    if "kind" not in item:
        raise ConfigError("a head needs a kind")
    values.text(item, "kind", HEAD_KINDS)
    outputs = values.integer(item, "outputs", 1, 1_000_000) if "outputs" in item else 2
    dropout = values.fraction(item, "dropout") if item.get("dropout") is not None else None
    return Head(kind=item["kind"], outputs=outputs, dropout=dropout)


def _table(config: Config, key: str) -> Config:
    value = config.get(key)
    if not isinstance(value, Mapping):
        raise ConfigError(f"{key} must be a table, not {values.shown(value)}")
    return value


def _list(config: Config, key: str) -> list[object]:
    value = config.get(key, [])
    if not isinstance(value, list):
        raise values.wrong(config, key, "a list")
    return value


def _truth(config: Config, key: str) -> bool:
    value = config[key]
    if not isinstance(value, bool):
        raise values.wrong(config, key, "true or false")
    return value
