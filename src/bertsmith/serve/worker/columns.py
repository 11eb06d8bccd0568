"""Whether the first columns of a model's vectors are of use by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from bertsmith.models.sentence_spec import DenseLayer

RECORD, KIND = "proof.json", "sentences"  # what `bertsmith sentences train` leaves in a folder
SLACK = 1e-3  # of rows that are orthogonal but for float32


def truncatable(folder: Path, dense: tuple[DenseLayer, ...]) -> bool | None:
    """True: trained for it (Matryoshka) or whitened, None: not known. Folders record no "no"."""
    return True if _trained_for_it(folder) or (dense and _whitens(dense[-1])) else None


def _trained_for_it(folder: Path) -> bool:
    try:
        record = json.loads((folder / RECORD).read_bytes())
        return record["kind"] == KIND and bool(record["recipe"]["matryoshka"]["dims"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _whitens(layer: DenseLayer) -> bool:
    """Whether a layer is U S^(-1/2): orthogonal rows, those of the largest variance first."""
    if layer.weight is None or layer.activation != "identity" or layer.residual:
        return False
    weight = layer.weight.double()
    lengths = weight.norm(dim=1)
    if not bool((lengths > 0).all()):
        return False
    products = (weight / lengths[:, None]) @ (weight / lengths[:, None]).T
    apart = float((products - torch.eye(len(weight), dtype=torch.double)).abs().max())
    ordered = bool((lengths[1:] >= lengths[:-1] * (1 - SLACK)).all())
    # Rows of one length are a rotation, which orders nothing.
    return apart < SLACK and ordered and float(lengths[-1]) > (1 + SLACK) * float(lengths[0])
