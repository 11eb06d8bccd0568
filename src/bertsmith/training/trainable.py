"""A model to train: a copy of a loaded one with the heads and the dropout of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bertsmith.errors import ConfigError
from bertsmith.models.build import Model, build
from bertsmith.models.spec import Spec
from bertsmith.models.surgery import copy_weights
from bertsmith.models.variant import Head
from bertsmith.training.recipe import DropoutSettings

USUAL_DROPOUT = 0.1


def trainable(
    source: Model, heads: Sequence[Head], dropout: DropoutSettings, *, device: str = "cpu"
) -> Model:
    """The model on the CPU still, its weights from `source`, which must have all of them."""
    spec = with_dropout(source.spec, dropout, device=device)
    model = build(source.variant, spec, heads=heads, empty=True)
    copied = copy_weights(source, model)
    missing = [name for name, _ in model.named_parameters() if name not in copied]
    if missing:
        raise ConfigError(f"the model has no {missing[0]}; it cannot be trained")
    return model


def with_dropout(spec: Spec, wanted: DropoutSettings, *, device: str) -> Spec:
    """A spec with the dropout of training."""
    attention, dropout = wanted.attention_dropout, wanted.dropout
    if attention is None:
        # Above 0 it rules out the fused attention of CPUs, at twice the time of a step.
        attention = 0.0 if device == "cpu" else spec.attention_dropout
    if dropout is None:
        # Pre-training that reads its text once needs none; a few thousand rows would be overfitted.
        dropout = spec.dropout or USUAL_DROPOUT
    return replace(spec, dropout=dropout, attention_dropout=attention)
