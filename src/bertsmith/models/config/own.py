"""The section of config.json that says what no published config can: our own shapes and heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import get_args

from bertsmith.errors import ConfigError, unknown
from bertsmith.models.config import values
from bertsmith.models.config.values import Config
from bertsmith.models.positions import (
    MOST,
    FunctionalRelative,
    Learned,
    Positions,
    SegmentRecurrent,
)
from bertsmith.models.spec import (
    Activation,
    DecoderSpec,
    LayerShape,
    Norm,
    Seen,
    Sharing,
    Spec,
)
from bertsmith.models.variant import Head, Variant

OWN_TYPE = "bertsmith"
KINDS: tuple[type[Positions], ...] = (Learned, FunctionalRelative, SegmentRecurrent)


def section(heads: Sequence[Head]) -> dict[str, object]:
    """The heads of a model that no published class has together."""
    return {"heads": [asdict(head) for head in heads]}


def write_own(variant: Variant, spec: Spec, heads: Sequence[Head]) -> dict[str, object]:
    """A config of the type "bertsmith": variant, spec and heads as they are."""
    shape = spec.to_json()
    own = {"variant": variant.name, "spec": shape, **section(heads)}
    return {"model_type": OWN_TYPE, "bertsmith": own}


def read_own(config: Config, variants: Mapping[str, Variant]) -> tuple[Variant, Spec]:
    """Variant and spec of a config of our own type."""
    own = _table(config, "bertsmith")
    if "variant" not in own or "spec" not in own:
        raise ConfigError("the section bertsmith needs variant and spec")
    variant = variants[values.text(own, "variant", tuple(variants))]
    kinds = (*KINDS, type(variant.spec.positions))
    return variant, _spec(_table(own, "spec"), {kind.kind: kind for kind in kinds})


def read_heads(config: Config, variant: Variant) -> tuple[Head, ...]:
    """The heads that our section names."""
    return tuple(_head(item, variant) for item in _list(_table(config, "bertsmith"), "heads"))


def _spec(shape: Config, kinds: Mapping[str, type[Positions]]) -> Spec:
    known = {field.name for field in fields(Spec)}
    for name in shape:
        if name not in known:
            raise unknown("field of a spec", str(name), known)
    choices = {
        "activation": get_args(Activation),
        "sharing": get_args(Sharing),
        "norm": get_args(Norm),
        "sees": get_args(Seen),
    }
    found: dict[str, object] = {}
    for name in shape:
        if name == "positions":
            found[name] = _positions(_table(shape, name), kinds)
        elif name == "channels":
            rows = _table(shape, name)
            found[name] = tuple((str(one), values.integer(rows, one, 1, MOST)) for one in rows)
        elif name == "shapes":
            found[name] = tuple(_layer_shape(item) for item in _list(shape, name))
        elif name in choices:
            found[name] = values.text(shape, name, choices[name])
        elif name in ("dropout", "attention_dropout", "norm_eps"):
            found[name] = values.fraction(shape, name)
        elif name == "decoder":
            found[name] = None if shape[name] is None else _decoder(_table(shape, name))
        elif name in ("pooler", "projected", "embedding_norm", "embedding_scale"):
            found[name] = values.truth(shape, name)
        else:
            low = 0 if name in ("pad_id", "segments", "tasks", "task") else 1
            found[name] = values.integer(shape, name, low, MOST)
    return Spec(**found)  # type: ignore[arg-type]


def _decoder(record: Config) -> DecoderSpec:
    names = {field.name for field in fields(DecoderSpec)}
    if set(record) != names:
        raise ConfigError(f"a decoder needs exactly {', '.join(sorted(names))}")
    lowest = {"start": 0}
    return DecoderSpec(
        **{name: values.integer(record, name, lowest.get(name, 1), MOST) for name in names}
    )


def _layer_shape(item: object) -> LayerShape:
    names = [field.name for field in fields(LayerShape)]
    if not isinstance(item, Mapping) or set(item) != set(names):
        raise ConfigError(f"the shape of a layer needs exactly {', '.join(names)}")
    return LayerShape(**{name: values.integer(item, name, 1, MOST) for name in names})


def _positions(record: Config, kinds: Mapping[str, type[Positions]]) -> Positions:
    if "kind" not in record:
        raise ConfigError(f"positions need a kind, one of {', '.join(kinds)}")
    return kinds[values.text(record, "kind", tuple(kinds))].from_json(record)


def _head(item: object, variant: Variant) -> Head:
    if not isinstance(item, Mapping) or set(item) - {"kind", "outputs", "dropout"}:
        raise ConfigError("each head needs kind, outputs and dropout, and nothing else")
    if "kind" not in item:
        raise ConfigError("a head needs a kind")
    kind = values.text(item, "kind", tuple(variant.heads))
    outputs = values.integer(item, "outputs", 1, 1_000_000) if "outputs" in item else 2
    dropout = values.fraction(item, "dropout") if item.get("dropout") is not None else None
    return Head(kind=kind, outputs=outputs, dropout=dropout)


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
