"""Tensors in, tensors out: the parts models are made of; no files, no names, no options."""

from bertsmith.nn.encoder import Encoded, Encoder, Want
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import (
    Anticausal,
    Causal,
    Dense,
    Full,
    Layout,
    Mixed,
    Prefix,
    Sees,
    picture,
    real,
    visibility,
)
from bertsmith.nn.loss import LossSum
from bertsmith.nn.modes import evaluating
from bertsmith.nn.pooling import POOLINGS, pool

__all__ = [
    "POOLINGS",
    "Anticausal",
    "Causal",
    "Dense",
    "Encoded",
    "Encoder",
    "Full",
    "Inputs",
    "Layout",
    "LossSum",
    "Mixed",
    "Prefix",
    "Sees",
    "Want",
    "evaluating",
    "picture",
    "pool",
    "real",
    "visibility",
]
