"""config.json and specs: the published spelling of a shape, read strictly and written back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import cast

from bertsmith.errors import ConfigError, unknown
from bertsmith.models.config import values
from bertsmith.models.config.labels import NO_LABELS, Labels, read_labels, write_labels
from bertsmith.models.config.own import OWN_TYPE, read_heads, read_own, section, write_own
from bertsmith.models.config.rules import (
    ACTIVATIONS,
    HARMLESS,
    LIMITS,
    MOST_PARAMETERS,
    PUBLISHED_ACTIVATIONS,
    REFUSED,
)
from bertsmith.models.config.values import Config
from bertsmith.models.spec import Activation, Spec
from bertsmith.models.variant import ENCODER, ConfigTable, Head, Variant
from bertsmith.models.variants import VARIANTS, find

DECODER = "decoder."  # before the fields of a spec's decoder in a table of keys


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigReading:
    """What a config.json says.

    `spec.pooler` is what the named architecture has; the stored tensors have the last word.
    """

    variant: Variant
    spec: Spec
    heads: tuple[Head, ...] = ()
    labels: Labels = NO_LABELS
    unknown_keys: tuple[str, ...] = ()
    model_type: str = ""
    architecture: str | None = None


def spec_from_config(config: Config, *, variants: Sequence[Variant] = ()) -> ConfigReading:
    """Read a config.json, refusing what would change the numbers and is not understood.

    `variants` are known besides those of the table.
    """
    if not isinstance(config, Mapping):
        raise ConfigError(f"a config must be a table, not {values.shown(config)}")
    known = {**VARIANTS, **{variant.name: variant for variant in variants}}
    if config.get("model_type") == OWN_TYPE:
        variant, spec = read_own(config, known)
        heads = read_heads(config, variant)
        check_size(spec)
        labels = read_labels(config)
        return ConfigReading(
            variant=variant, spec=spec, heads=heads, labels=labels, model_type=OWN_TYPE
        )
    variant_data, model_type = _variant(config, known)
    _refuse(variant_data, config)
    spec = _spec(variant_data, config)
    check_size(spec)
    labels = read_labels(config)
    architecture = _architecture(config)
    heads = _heads(variant_data, config, architecture, labels)
    vocabulary = any(variant_data.heads[head.kind].reads_tokens for head in heads)
    if vocabulary and config.get("tie_word_embeddings") is False:
        raise ConfigError(
            "tie_word_embeddings = False is not supported for heads over the vocabulary: "
            "the output matrix is the token embedding"
        )
    pooled = any(variant_data.heads[head.kind].reads == "pooled" for head in heads)
    if heads and not pooled:
        spec = replace(spec, pooler=False)
    return ConfigReading(
        variant=variant_data,
        spec=spec,
        heads=heads,
        labels=labels,
        unknown_keys=tuple(sorted(map(str, set(config) - _known(variant_data)))),
        model_type=model_type,
        architecture=architecture,
    )


def config_from_spec(
    variant: str | Variant,
    spec: Spec,
    *,
    heads: Sequence[Head] = (),
    labels: Labels = NO_LABELS,
    model_type: str | None = None,
) -> dict[str, object]:
    """The config.json of a model, as transformers reads it.

    A spec that no published config can express (layers of different shapes, say) becomes a config
    of the type "bertsmith" with a section of its own; `expressible` tells which it will be.
    """
    data = find(variant)
    if not expressible(variant, spec):
        return {**write_own(data, spec, heads), **write_labels(labels)}
    kinds = "+".join(head.kind for head in sorted(heads, key=lambda head: head.kind))
    classes = data.architectures_of(spec)
    config: dict[str, object] = {
        "architectures": [classes.get(kinds or ENCODER, classes[ENCODER])],
        "model_type": model_type or data.model_type,
        **_written(data, spec),
        **write_labels(labels),
    }
    for head in heads:
        key = data.config.head_dropout.get(head.kind)
        if key and head.dropout is not None:
            config[key] = head.dropout
    if kinds and kinds not in classes:
        config["bertsmith"] = section(heads)  # transformers has no class with these heads
    return config


def expressible(variant: str | Variant, spec: Spec) -> bool:
    """Whether the family's published config can say all of this spec."""
    data = find(variant)
    try:
        again = _spec(data, _written(data, spec))
    except ConfigError:
        return False
    same = replace(again, pooler=spec.pooler)
    return same == spec or (spec.layers == 1 and replace(same, sharing=spec.sharing) == spec)


def check_size(spec: Spec) -> None:
    """Refuse a model that could not be meant, before anything is allocated."""
    blocks = spec.products[:1] if spec.sharing == "all" else spec.products
    count = (
        spec.vocab_size + spec.positions.table[0] + spec.segments + spec.tasks
    ) * spec.embedding + sum(blocks)
    if spec.decoder is not None:
        inside = 8 * spec.hidden**2 + 2 * spec.hidden * spec.decoder.feed_forward
        count += spec.decoder.layers * inside
    if count > MOST_PARAMETERS:
        raise ConfigError(f"a model of {count:,} parameters; at most {MOST_PARAMETERS:,} are read")


def _variant(config: Config, known: Mapping[str, Variant]) -> tuple[Variant, str]:
    """The family by model type, or, for old configs without one, by what only it has."""
    if config.get("model_type") is not None:
        name = values.text(config, "model_type")
        for variant in known.values():
            if name == variant.model_type or name in variant.aliases:
                return variant, name
        raise unknown("supported model type", name[:60], [v.model_type for v in known.values()])
    architecture = _architecture(config)
    if architecture is not None:
        for variant in known.values():
            if architecture in _class_names(variant):
                return variant, variant.model_type
        raise ConfigError(
            f"architecture {architecture[:60]!r} is not known, and no model_type is set"
        )
    if config.get("use_relative_position") is True:
        return find("nezha"), "nezha"
    if "n_layers" in config and "dim" in config:
        return find("distilbert"), "distilbert"
    if "num_hidden_groups" in config:
        return find("albert"), "albert"
    if (
        "hidden_size" in config
        and "embedding_size" not in config
        and not config.get("pad_token_id")
    ):
        return find("bert"), "bert"  # bert_config.json of 2018 names no type
    raise ConfigError('the config has no "model_type"; add the right one, "bert" for instance')


def _architecture(config: Config) -> str | None:
    named = config.get("architectures")
    if named is None or named == []:
        return None
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise values.wrong(config, "architectures", "a list of class names")
    return cast("str", named[0])


def _refuse(variant: Variant, config: Config) -> None:
    table = variant.config
    own = {*table.constants, *(key for keys in table.keys.values() for key in keys)}
    own |= set(table.switches.values())
    if table.grouped:
        own.add("num_hidden_groups")
    own |= set(variant.spec.positions.published(table.rows_key))
    for key, allowed in REFUSED.items():
        if key in config and key not in own and config[key] not in allowed:
            raise ConfigError(
                f"{key} = {values.shown(config[key])} would change what the model computes and is "
                f"not supported for {variant.model_type}"
            )
    for key, value in table.constants.items():
        if config.get(key) is not None and (config[key] != value):
            raise ConfigError(f"{key} must be {value} here, not {values.shown(config[key])}")
    width = config.get("embedding_size")
    if width is not None and "embedding" not in table.keys and width != config.get("hidden_size"):
        raise ConfigError(
            f"embedding_size = {values.shown(width)} differs from hidden_size, which "
            f"{variant.model_type} does not support"
        )


def _spec(variant: Variant, config: Config) -> Spec:
    table = variant.config
    found: dict[str, object] = {}
    for field, keys in table.keys.items():
        key = values.present(config, keys)
        if not _switched_on(table, config, field):
            found[field] = 0
        elif key is not None:
            found[field] = _value(table, config, field, key)
        elif field in table.defaults:
            found[field] = _default(table, field)
        elif field != "feed_forward" or table.feed_forward_ratio is None:
            raise ConfigError(f"the config has no {keys[0]!r}")
    if table.feed_forward_ratio is not None:
        found.setdefault("feed_forward", table.feed_forward_ratio * cast("int", found["hidden"]))
    found.setdefault("embedding", found["hidden"])
    first = table.rows_key.uncounted
    if table.positions_after_pad:
        first = cast("int", found["pad_id"]) + 1
    found["positions"] = variant.spec.positions.from_published(config, first, table.rows_key)
    if table.grouped:
        found["sharing"] = _sharing(config, cast("int", found["layers"]))
    decoder = {name: found.pop(name) for name in list(found) if name.startswith(DECODER)}
    if decoder and variant.spec.decoder is not None:
        parts = {name.removeprefix(DECODER): value for name, value in decoder.items()}
        found["decoder"] = replace(variant.spec.decoder, **parts)  # type: ignore[arg-type]
    return replace(variant.spec, **found)  # type: ignore[arg-type]


def _switched_on(table: ConfigTable, config: Config, field: str) -> bool:
    """Whether a number counts: its switch is true, or it has none."""
    switch = table.switches.get(field)
    return switch is None or (config.get(switch) is not None and values.truth(config, switch))


def _default(table: ConfigTable, field: str) -> object:
    """The value of a field whose key is absent."""
    key = table.keys[field][0]
    return _value(table, {key: table.defaults[field]}, field, key)


def _value(table: ConfigTable, config: Config, field: str, key: str) -> object:
    if field == "activation":
        names = table.activations or ACTIVATIONS
        return names[values.text(config, key, tuple(names))]
    if field == "sees":
        return "before" if values.truth(config, key) else "all"
    if field == "embedding_scale":
        return values.truth(config, key)
    if field == "decoder.start":
        return values.integer(config, key, 0, LIMITS["vocab_size"])
    if field == "norm_eps":
        eps = values.fraction(config, key)
        if eps <= 0:
            raise values.wrong(config, key, "a number above 0")
        return eps
    if field in ("dropout", "attention_dropout"):
        return values.fraction(config, key)
    if field == "pad_id":
        return values.integer(config, key, 0, LIMITS["vocab_size"])
    most = LIMITS[field.removeprefix(DECODER)]
    return values.integer(config, key, 0 if field in ("segments", "task") else 1, most)


def _sharing(config: Config, layers: int) -> str:
    if config.get("num_hidden_groups") is None:
        return "all"
    groups = values.integer(config, "num_hidden_groups", 1, LIMITS["layers"])
    if groups not in (1, layers):
        raise ConfigError(
            f"num_hidden_groups = {groups} of {layers} layers is not supported: 1 shares them all, "
            f"{layers} shares none"
        )
    return "all" if groups == 1 else "none"


def _heads(
    variant: Variant, config: Config, architecture: str | None, labels: Labels
) -> tuple[Head, ...]:
    """The heads of the named architecture; an unknown one has none that we can name."""
    if config.get("bertsmith") is not None:
        return read_heads(config, variant)
    stem = variant.architectures[ENCODER].removesuffix("Model")
    known = _class_names(variant)
    endings = {name.removeprefix(stem): kinds for name, kinds in known.items()}
    _, split, ending = (architecture or "").partition("For")
    kinds = known.get(architecture or "", endings.get(split + ending, ENCODER))
    if kinds == ENCODER:
        return ()
    heads = []
    for kind in kinds.split("+"):
        key = variant.config.head_dropout.get(kind)
        dropout = None
        if key is not None and config.get(key) is not None:
            dropout = values.fraction(config, key)
        outputs = labels.count if kind in ("sequence", "token") else 2
        heads.append(Head(kind=kind, outputs=outputs, dropout=dropout))
    return tuple(heads)


def _class_names(variant: Variant) -> dict[str, str]:
    """The heads of every class of a family, by its name."""
    tables = (variant.architectures, variant.causal_architectures)
    return {name: kinds for table in tables for kinds, name in table.items()}


def _written(variant: Variant, spec: Spec) -> dict[str, object]:
    table = variant.config
    config: dict[str, object] = {"initializer_range": 0.02, **table.constants}
    shape = asdict(spec)
    shape |= {DECODER + name: value for name, value in (shape["decoder"] or {}).items()}
    for field, keys in table.keys.items():
        if field not in shape:
            raise ConfigError(f"{variant.model_type} has no shape without a decoder")
        if field in table.switches:
            config[table.switches[field]] = bool(shape[field])
            if not shape[field]:
                continue
        if field not in table.sparse or shape[field] != _default(table, field):
            config[keys[0]] = _published(table, field, shape[field])
    config |= {key: shape[field] for key, field in table.copies.items()}
    config |= spec.positions.published(table.rows_key)
    if table.grouped:
        config["num_hidden_groups"] = 1 if spec.sharing == "all" else spec.layers
    return config


def _published(table: ConfigTable, field: str, value: object) -> object:
    """A value of a spec as config.json spells it."""
    if field == "sees":
        return value == "before"
    if field != "activation":
        return value
    if table.activations is None:
        return PUBLISHED_ACTIVATIONS[cast("Activation", value)]
    for name, ours in table.activations.items():
        if ours == value:
            return name
    raise ConfigError(f"this family has no name for the activation {value}")


def _known(variant: Variant) -> set[str]:
    table = variant.config
    known = {key for keys in table.keys.values() for key in keys}
    known |= {*table.constants, *table.copies, *table.switches.values(), table.rows_key.name}
    known |= table.harmless | HARMLESS | set(REFUSED)
    return known | {
        "architectures",
        "bertsmith",
        "embedding_size",
        "id2label",
        "label2id",
        "max_position_embeddings",
        "model_type",
        "num_labels",
        "problem_type",
    }
