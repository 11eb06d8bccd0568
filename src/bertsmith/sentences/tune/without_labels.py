"""Layers, poolings and whitening compared without labels: hints, and no choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from bertsmith.metrics.arrays import Floats
from bertsmith.models.sentence_spec import PoolingKind
from bertsmith.runtime.loading import LoadedModel
from bertsmith.sentences.transform.moments import AnyVectors, moments_of
from bertsmith.sentences.transform.whitening import principal, whitening
from bertsmith.sentences.tune.candidates import Candidate, bases, dimensions
from bertsmith.sentences.tune.layer_vectors import LayerVectors, layer_vectors
from bertsmith.sentences.tune.tune import ENCODED, Progress, TuneSettings, single_pooling

_MOST = 2_000  # vectors that are compared with each other
Sides = tuple[AnyVectors, AnyVectors]
Base = tuple[tuple[int, ...], PoolingKind]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinted:
    """A candidate with its figures without labels."""

    candidate: Candidate
    hints: Hints


def tune_without_labels(
    model: LoadedModel,
    texts: Sequence[str],
    settings: TuneSettings,
    *,
    partners: Sequence[tuple[str, ...]] = (),
    progress: Progress = lambda what, done, total: None,
) -> list[Hinted]:
    """Alignment, uniformity and isotropy of layers and poolings, plain and whitened.

    Alignment is that of the `partners`, pairs of texts that belong together, or else of each text
    encoded twice with dropout.
    """
    own = model.settings
    poolings = tuple(dict.fromkeys([*single_pooling(own), *settings.poolings]))
    distinct = list(dict.fromkeys([*texts, *(text for row in partners for text in row[:2])]))
    passes = 1 if partners else 3

    with ExitStack() as files:

        def encoded(number: int, *, dropout: bool) -> LayerVectors:
            def shown(done: int) -> None:
                progress(ENCODED, number * len(distinct) + done, passes * len(distinct))

            return files.enter_context(
                layer_vectors(
                    model.host, model, distinct, poolings, dropout=dropout, progress=shown
                )
            )

        kept = encoded(0, dropout=False)
        if partners:
            places = {text: number for number, text in enumerate(distinct)}
            one, two = ([places[row[side]] for row in partners] for side in (0, 1))

            def sides(base: Base) -> Sides:
                vectors = kept.of(*base)
                return vectors[one], vectors[two]

        else:
            twice = encoded(1, dropout=True), encoded(2, dropout=True)

            def sides(base: Base) -> Sides:
                return twice[0].of(*base), twice[1].of(*base)

        return [
            found
            for base in bases(kept.layers, poolings)
            for found in _of_base(kept, base, sides(base), settings)
        ]


def _of_base(kept: LayerVectors, base: Base, sides: Sides, settings: TuneSettings) -> list[Hinted]:
    vectors = kept.of(*base)
    width = vectors.shape[1]
    plain = Candidate(layers=base[0], pooling=base[1], dimension=width)
    if not np.ptp(vectors, axis=0).any():
        return []  # the first tokens of the embeddings are all alike
    found = [Hinted(candidate=plain, hints=hints(vectors, sides))]
    moments = moments_of([vectors], width)
    rank = principal(moments).rank
    for size in settings.dimensions or dimensions(width, rank):
        if size <= rank:
            white = whitening(moments, size)
            candidate = replace(plain, correction="whitening", dimension=size)
            after: Callable[[AnyVectors], AnyVectors] = white
            found.append(
                Hinted(
                    candidate=candidate,
                    hints=hints(after(vectors), (after(sides[0]), after(sides[1]))),
                )
            )
    return found
