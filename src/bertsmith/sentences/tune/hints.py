"""Figures of vectors without labels: alignment, uniformity, isotropy. Hints, not quality."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertsmith.metrics.arrays import Floats
from bertsmith.sentences.transform.moments import AnyVectors, moments_of

_MOST = 2_000  # vectors that are compared with each other


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """Of vectors of length one, lower is better for all but `isotropy`.

    `alignment`: mean squared distance of texts that belong together, nan if none are known;
    `uniformity`: log of the mean Gaussian potential of any two (Wang and Isola 2020);
    `mean_cosine` of any two; `first_share` of the variance in the first principal direction;
    `isotropy`: IsoScore, 0 (one direction) to 1 (all alike) (Rudman et al. 2022).
    """

    alignment: float
    uniformity: float
    mean_cosine: float
    first_share: float
    isotropy: float


def hints(vectors: AnyVectors, partners: tuple[AnyVectors, AnyVectors] | None = None) -> Hints:
    """The figures of vectors (n, D); `partners` are pairs of vectors that belong together."""
    unit = _unit(vectors[:: max(1, len(vectors) // _MOST)][:_MOST])
    cosines = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
    potential = np.exp(-2.0 * (2.0 - 2.0 * cosines))
    variances = np.linalg.eigvalsh(moments_of([unit], unit.shape[1]).covariance())[::-1]
    variances = np.maximum(variances, 0.0)
    total = float(variances.sum())
    alignment = float("nan")
    if partners is not None:
        alignment = float(((_unit(partners[0]) - _unit(partners[1])) ** 2).sum(axis=1).mean())
    return Hints(
        alignment=alignment,
        uniformity=float(np.log(potential.mean())) if cosines.size else float("nan"),
        mean_cosine=float(cosines.mean()) if cosines.size else float("nan"),
        first_share=float(variances[0] / total) if total else float("nan"),
        isotropy=iso_score(variances),
    )


def iso_score(variances: Floats) -> float:
    """IsoScore of the variances (D,) along principal directions (arXiv:2108.07344)."""
    width = len(variances)
    norm = float(np.linalg.norm(variances))
    if width < 2 or not norm:
        return float("nan")
    scaled = np.sqrt(width) * variances / norm
    defect = float(np.linalg.norm(scaled - 1.0)) / np.sqrt(2 * (width - np.sqrt(width)))
    occupied = (width - defect**2 * (width - np.sqrt(width))) ** 2 / width**2
    return float((width * occupied - 1) / (width - 1))


def _unit(vectors: AnyVectors) -> Floats:
    given = np.asarray(vectors, dtype=np.float64)
    unit: Floats = given / np.maximum(np.linalg.norm(given, axis=1, keepdims=True), 1e-12)
    return unit
