"""Whitening: vectors of mean 0 and covariance 1 (Su et al. 2021, arXiv:2103.15316)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from bertsmith.errors import ConfigError
from bertsmith.metrics.arrays import Floats
from bertsmith.models.sentence_spec import DenseLayer
from bertsmith.sentences.transform.moments import AnyVectors, Moments
from bertsmith.wording import counted

# Directions of less variance than this share of the largest are rounding: dividing by their
# deviation would blow the rounding up to the size of everything else.
DEAD = 1e-9


@dataclass(frozen=True, slots=True)
class Principal:
    """Mean (D,), principal directions (D, r) and their variances (r,), largest first.

    `dead` directions without variance are left out. Each direction points where its largest
    component is positive.
    """

    mean: Floats
    directions: Floats
    variances: Floats
    texts: int
    dead: int

    @property
    def rank(self) -> int:
        """Directions with variance."""
        return len(self.variances)


def principal(moments: Moments, *, what: str = "whitening") -> Principal:
    """The principal directions of vectors, by the eigenvectors of their covariance."""
    if moments.count < 2:
        raise ConfigError(f"{what} needs at least 2 texts, and there are {moments.count}")
    variances, directions = np.linalg.eigh(moments.covariance())
    variances, directions = variances[::-1], directions[:, ::-1]
    alive = int((variances > DEAD * max(variances[0], 0.0)).sum())
    alive = min(alive, moments.count - 1)
    if not alive or not variances[0] > 0.0:
        raise ConfigError(f"all {moments.count:,} texts have the same vector; {what} is impossible")
    directions = directions[:, :alive]
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(alive)])
    return Principal(
        mean=moments.mean.copy(),
        directions=directions * signs,
        variances=variances[:alive].copy(),
        texts=moments.count,
        dead=len(variances) - alive,
    )


def check_keep(found: Principal, keep: int | None, *, what: str = "whitening") -> int:
    """How many dimensions stay; refused with the rank and the largest number where impossible."""
    width = len(found.mean)
    if keep is not None and keep < 1:
        raise ConfigError(f"keep must be at least 1, not {keep}")
    few = found.texts <= width
    if keep is None and few:
        raise ConfigError(
            f"{found.texts:,} texts are too few for {what} in {width} dimensions: their covariance "
            f"has rank {found.rank}; give more texts, or keep at most {found.rank} dimensions"
        )
    if keep is not None and keep > found.rank:
        dead = counted(found.dead, "direction")
        why = f"of {found.texts:,} texts" if few else f"without {dead} of no variance"
        raise ConfigError(
            f"{keep} dimensions cannot be kept: the covariance {why} has rank {found.rank}; the "
            f"largest number to keep is {found.rank}"
        )
    return found.rank if keep is None else keep


@dataclass(frozen=True, slots=True)
class Whitening:
    """x -> (x - mean) @ matrix: (n, D) -> (n, k), with covariance 1 on the texts it was fitted on.

    `variances` (k,) are those of the directions kept.
    """

    mean: Floats
    matrix: Floats
    variances: Floats
    texts: int
    dead: int

    def __call__(self, vectors: AnyVectors) -> Floats:
        """(n, D) -> (n, k) in float64."""
        whitened: Floats = (np.asarray(vectors, dtype=np.float64) - self.mean) @ self.matrix
        return whitened

    @property
    def kept(self) -> int:
        """k, the dimensions kept."""
        return len(self.variances)

    def layer(self) -> DenseLayer:
        """The same as one dense layer in float32."""
        return linear_layer(self.matrix.T, -self.mean @ self.matrix)

    def nll(self, vectors: AnyVectors) -> float:
        """Mean negative log likelihood per dimension of a Gaussian in the kept directions, nats."""
        white = self(vectors)
        squares = float((white**2).sum(axis=1).mean()) / self.kept
        return 0.5 * (squares + float(np.log(self.variances).mean()) + math.log(2 * math.pi))


def whitening(moments: Moments, keep: int | None = None) -> Whitening:
    """W = U S^(-1/2) of the covariance U S U', with the first `keep` columns; all by default."""
    found = principal(moments)
    kept = check_keep(found, keep)
    variances = found.variances[:kept]
    return Whitening(
        mean=found.mean,
        matrix=found.directions[:, :kept] / np.sqrt(variances),
        variances=variances,
        texts=found.texts,
        dead=found.dead,
    )


def linear_layer(weight: Floats, bias: Floats) -> DenseLayer:
    """A dense layer without an activation: (k, D), (k,) in float64 -> float32."""
    return DenseLayer(
        inputs=weight.shape[1],
        outputs=weight.shape[0],
        activation="identity",
        weight=torch.from_numpy(np.ascontiguousarray(weight)).float(),
        bias=torch.from_numpy(np.ascontiguousarray(bias)).float(),
    )
