"""Tensors in, tensors out: the parts models are made of; no files, no names, no options."""

from bertsmith.nn.encoder import Encoded, Encoder, Want
from bertsmith.nn.layout import Layout, bidirectional, causal, picture, real, seq2seq
from bertsmith.nn.loss import LossSum
from bertsmith.nn.pooling import POOLINGS, pool

__all__ = [
    "POOLINGS",
    "Encoded",
    "Encoder",
    "Layout",
    "LossSum",
    "Want",
    "bidirectional",
    "causal",
    "picture",
    "pool",
    "real",
    "seq2seq",
]
