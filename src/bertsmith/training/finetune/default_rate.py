"""The default learning rate of fine-tuning: by model width, or by the size of vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertsmith.tasks.feature import Feature
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.training.execution.execution import Execution
from bertsmith.training.finetune.encoder_cache import encode_passages

# 1e-4 suits a width of 384 (all-MiniLM-L6-v2). In inverse proportion, 128 gets 3e-4, which stands
# in the grid for compact BERTs (Turc et al. 2019, arXiv:1908.08962), and 768 gets 5e-5, which
# stands in that of BERT itself (Devlin et al. 2018).
WIDTH, RATE_AT_WIDTH = 384, 1e-4

# How far the first steps of Adam move logits, which is its rate times the sum of a vector's sizes.
# Vectors of some models and layers are ten times as long as those of others: one rate for all would
# let length decide which is best.
STRIDE = 0.3

HEAD_ALONE = 1e-3  # where a head's input changes while it learns, so that no size is known
SAMPLE = 64  # rows whose vectors are measured


def default_rate(model: TaskModel, features: Sequence[Feature], execution: Execution) -> float:
    """By the width of the model; if its encoder is frozen, by the size of what the head reads."""
    if not model.frozen:
        return by_width(model.model.spec.hidden)
    learns_below = any(weight.requires_grad for weight in model.model.encoder.parameters())
    if learns_below or not model.keeps_vectors:
        return HEAD_ALONE
    rate = by_size(encode_passages(model, features[:SAMPLE], execution))
    # All ranks must have the same, and their last bits need not agree.
    return execution.ranks.sum_counts({"rate": rate if execution.ranks.is_first else 0.0})["rate"]


def by_width(hidden: int) -> float:
    """For training all weights: the wider the model, the lower."""
    return _two_digits(RATE_AT_WIDTH * WIDTH / hidden)


def by_size(vectors: NDArray[np.float32]) -> float:
    """For training a head alone on vectors (N, W)."""
    size = float(np.abs(vectors).sum(axis=1).mean())
    return _two_digits(STRIDE / max(size, 1e-6))


def _two_digits(rate: float) -> float:
    """Rounded, so that a run that resumes elsewhere gets the same."""
    return float(f"{rate:.1e}")
