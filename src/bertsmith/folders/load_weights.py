"""From stored tensors to a model: every tensor finds its place, or is named in the error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from bertsmith.errors import ConfigError, TensorMismatchError
from bertsmith.folders.tensors import Weights, listed
from bertsmith.models.build import Model, build, build_head, with_heads
from bertsmith.models.config.keys import ConfigReading
from bertsmith.models.names import (
    OWN,
    StateMatch,
    form_of,
    from_published,
    ours_state,
    to_published,
    with_stored_pooler,
)
from bertsmith.models.sentence_spec import DenseLayer
from bertsmith.models.spec import Spec
from bertsmith.models.tensor_forms import PLAIN, Form, Joined
from bertsmith.models.variant import Head

LANGUAGE_MODEL_BIAS = "heads.language_model.bias"


def fill_model(
    reading: ConfigReading, weights: Weights, *, device: str, dtype: torch.dtype
) -> Model:
    """The model a config describes, with exactly the stored tensors."""
    spec = with_stored_pooler(reading.variant, reading.spec, weights.stored)
    layers = 0 if spec.sharing == "all" else spec.layers
    layers += 0 if spec.decoder is None else spec.decoder.layers
    if layers > len(weights.stored):
        raise TensorMismatchError(  # before a thousand layers are built to find them missing
            f"{weights.where}: the config says {layers:,} layers, and there are only "
            f"{len(weights.stored):,} tensors; take both from the same model"
        )
    variant = reading.variant
    model = build(variant, spec, device="meta", dtype=dtype)
    match = ours_state(variant, spec, weights.stored, ours=_names(model))
    heads = stored_heads(reading, spec, match.unused)
    if heads:
        try:
            model = with_heads(model, heads)
        except ConfigError as fault:
            raise ConfigError(f"{weights.where}: {fault}") from fault
        match = ours_state(variant, spec, weights.stored, heads=heads, ours=_names(model))
    match = _without_zeros(model, match, device)
    _check(weights, match, _stored_shapes(model, match))
    for ours, stored in match.names.items():
        tensor = weights.read(stored, dtype=dtype, device=device)
        _place(model, ours, _form(model, ours, stored).to_ours(tensor))
    _check_tied(model, weights, match)
    return model.eval()


def _without_zeros(model: Model, match: StateMatch, device: str) -> StateMatch:
    """A language model may be stored without its bias, which is then zero, as when published."""
    absent = set(_names(model)) - set(match.names)
    if LANGUAGE_MODEL_BIAS not in absent:
        return match
    bias = model.get_parameter(LANGUAGE_MODEL_BIAS)
    _place(model, LANGUAGE_MODEL_BIAS, torch.zeros(bias.shape, dtype=bias.dtype, device=device))
    published = to_published(model.variant, LANGUAGE_MODEL_BIAS)
    return replace(match, missing=tuple(name for name in match.missing if name != published))


def _names(model: Model) -> list[str]:
    return [name for name, _ in model.named_parameters()]


def _form(model: Model, ours: str, stored: str) -> Form:
    return PLAIN if stored.startswith(OWN) else form_of(model.variant, ours)


def _stored_shapes(model: Model, match: StateMatch) -> dict[str, tuple[int, ...]]:
    """The shape in which each of our tensors should be stored."""
    shapes: dict[str, tuple[int, ...]] = {}
    for ours, stored in match.names.items():
        form = _form(model, ours, stored)
        shape = tuple(form.to_stored(model.get_parameter(ours), model.spec.heads).shape)
        if isinstance(form, Joined):
            shape = (*shape[:-1], shape[-1] * form.count)
        shapes[ours] = shape
    return shapes


def fill_dense(
    layer: DenseLayer, weights: Weights, *, device: str, dtype: torch.dtype
) -> DenseLayer:
    """A dense layer with its stored tensors."""
    tensors = read_exactly(weights, layer.shapes, device=device, dtype=dtype)
    return replace(
        layer,
        weight=tensors["linear.weight"],
        bias=tensors.get("linear.bias"),
        residual_weight=tensors.get("residual.weight"),
    )


def read_exactly(
    weights: Weights, shapes: Mapping[str, tuple[int, ...]], *, device: str, dtype: torch.dtype
) -> dict[str, Tensor]:
    """The tensors of these names and shapes; what is missing, left over or misshapen is named."""
    names = {name: name for name in shapes if name in weights.stored}
    match = StateMatch(
        names=names,
        missing=tuple(name for name in shapes if name not in names),
        tied={},
        unused=(),
        buffers=(),
        leftovers=tuple(name for name in weights.stored if name not in shapes),
    )
    _check(weights, match, shapes)
    return {name: weights.read(name, dtype=dtype, device=device) for name in shapes}


def stored_heads(reading: ConfigReading, spec: Spec, unused: Sequence[str]) -> tuple[Head, ...]:
    """The heads that tensors outside of the encoder belong to: first those the config names.

    A head that the config names and of which nothing is stored is left away, not invented, unless
    it needs nothing: a language model is the token embedding, and its bias may be zero. One
    that nobody named is added where it is whole and its names fit no other head: "classifier"
    alone does not say whether it is of texts or of tokens.
    """
    kinds = tuple(reading.variant.heads)
    stored: dict[str, set[str]] = {kind: set() for kind in kinds}  # names by fitting head
    for kind in kinds:
        for name in unused:
            if from_published(reading.variant, name, heads=[kind]) is not None:
                stored[kind].add(name)
    heads = [head for head in reading.heads if stored[head.kind] or head.kind == "language_model"]
    for kind in kinds:
        others = [stored[other] for other in kinds if other != kind]
        rivals = set[str]().union(*others, *(stored[head.kind] for head in heads))
        if stored[kind] and not stored[kind] & rivals and _whole(reading, spec, kind, stored[kind]):
            heads.append(Head(kind=kind))
    return tuple(heads)


def _whole(reading: ConfigReading, spec: Spec, kind: str, stored: set[str]) -> bool:
    """Whether a head nobody named is stored whole and can stand on this encoder."""
    if reading.variant.heads[kind].reads == "pooled" and not spec.pooler:
        return False
    present = {from_published(reading.variant, name, heads=[kind]) for name in stored}
    with torch.device("meta"):
        head = build_head(reading.variant, spec, Head(kind=kind))
    return {f"heads.{kind}.{name}" for name, _ in head.named_parameters()} <= present


def _check(weights: Weights, match: StateMatch, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise one error that names all tensors that do not fit."""
    faults = []
    if match.missing:
        faults.append(listed("missing", match.missing))
    extra = [*match.leftovers, *match.unused]
    if extra:
        faults.append(listed("left over", extra))
    misshapen = [
        f"{stored} is {weights.shapes[stored]} and should be {shapes[ours]}"
        for ours, stored in match.names.items()
        if weights.shapes[stored] != shapes[ours]
    ]
    if misshapen:
        faults.append(listed("misshapen", misshapen))
    if faults:
        raise TensorMismatchError(
            f"{weights.where}: the tensors do not fit the config: {'; '.join(faults)}; "
            "take config.json and weights from the same model"
        )


def _place(model: Model, ours: str, tensor: Tensor) -> None:
    """Put a tensor where its name says; blocks that share a module share the tensor."""
    path, _, attribute = ours.rpartition(".")
    setattr(model.get_submodule(path), attribute, nn.Parameter(tensor))


def _check_tied(model: Model, weights: Weights, match: StateMatch) -> None:
    """A stored copy of a tied tensor must be that tensor."""
    for stored, ours in match.tied.items():
        kept = model.get_parameter(ours)
        copy = weights.read(stored, dtype=kept.dtype, device=str(kept.device))
        if copy.shape != kept.shape or not torch.equal(copy, kept):
            raise TensorMismatchError(
                f"{weights.where}: {stored} should repeat {match.names[ours]} and differs from it; "
                "a separate output matrix is not supported"
            )
