"""Choosing layer, pooling, correction and dimension by the user's pairs, or hints without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.errors import ConfigError
from bertsmith.metrics.significance import Difference, Interval, bootstrap, paired_bootstrap
from bertsmith.models.sentence_spec import PoolingKind, SentenceSettings
from bertsmith.runtime.loading import LoadedModel
from bertsmith.sentences.pair_measure import ScoredPairs
from bertsmith.sentences.transform.flow import FlowSettings, fit_flow
from bertsmith.sentences.transform.moments import AnyVectors, moments_of
from bertsmith.sentences.transform.whitening import principal, whitening
from bertsmith.sentences.tune.candidates import Candidate, bases, dimensions
from bertsmith.sentences.tune.layer_vectors import LayerVectors, layer_vectors

Progress = Callable[[str, int, int], None]  # what is done, how far, of how many
POOLINGS: tuple[PoolingKind, ...] = ("mean", "first", "max")
ENCODED = "texts encoded"
SHOWN = 12  # candidates with an interval of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneSettings:
    """What is tried. `flows` are learned for the best so many layers and poolings."""

    poolings: tuple[PoolingKind, ...] = POOLINGS
    dimensions: tuple[int, ...] | None = None
    flows: int = 2
    flow: FlowSettings = FlowSettings()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A candidate, its measure on all pairs, and for the best ones its interval."""

    candidate: Candidate
    score: float
    interval: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneResult:
    """Everything tried, best first, and the winner: the simplest that the best does not beat.

    `lead` is the best minus the winner, `gain` the winner minus the folder as it is.
    """

    measure: str
    pairs: int
    fitted_on: str
    tried: tuple[Tried, ...]
    winner: Tried
    settings: SentenceSettings
    lead: Difference
    gain: Difference
    layers: int

    @property
    def best(self) -> Tried:
        """The highest measure."""
        return self.tried[0]


def tune(
    model: LoadedModel,
    pairs: ScoredPairs,
    settings: TuneSettings,
    *,
    texts: Sequence[str] = (),
    progress: Progress = lambda what, done, total: None,
) -> TuneResult:
    """Try every candidate on the pairs, from one pass of the encoder.

    Corrections are fitted on `texts`, or on the texts of the pairs, without their scores.
    """
    every = [*pairs.texts, *texts]
    count = len(pairs.texts)
    own = model.settings
    poolings = tuple(dict.fromkeys([*single_pooling(own), *settings.poolings]))

    def encoded(done: int) -> None:
        progress(ENCODED, done, len(every))

    with layer_vectors(model.host, model, every, poolings, progress=encoded) as kept:
        trial = _Trial(kept, pairs, slice(count, None) if len(texts) else slice(0, count))
        trial.add(_own(model, kept, pairs.texts))
        for layers, pooling in bases(kept.layers, poolings):
            trial.base(layers, pooling, settings)
            progress("layers and poolings tried", len(trial.tried), 0)
        for layers, pooling in trial.best_bases(settings.flows):
            trial.flow(layers, pooling, settings.flow)
            progress("flows learned", len(trial.tried), 0)
        return _decided(trial, own, single_pooling(own)[:1] or poolings[:1], bool(len(texts)))


class _Trial:
    """Scores candidates; vectors of each are kept only as similarities, by their figure."""

    def __init__(self, kept: LayerVectors, pairs: ScoredPairs, fitted: slice) -> None:
        self.kept = kept
        self.pairs = pairs
        self._fitted = fitted
        self.tried: list[Tried] = []
        self.figures: dict[Candidate, Callable[[NDArray[np.int64]], float]] = {}

    def add(self, given: tuple[Candidate, AnyVectors]) -> None:
        """Score a candidate by the vectors (n, D) of the pairs' texts."""
        candidate, vectors = given
        figure = self.pairs.figure(vectors)
        self.figures[candidate] = figure
        score = figure(np.arange(len(self.pairs)))
        self.tried.append(Tried(candidate=candidate, score=score))

    def base(self, layers: tuple[int, ...], pooling: PoolingKind, settings: TuneSettings) -> None:
        """Layers and a pooling, plain and whitened."""
        vectors = self.kept.of(layers, pooling)
        some = vectors[: len(self.pairs.texts)]
        plain = Candidate(layers=layers, pooling=pooling, dimension=vectors.shape[1])
        self.add((plain, some))
        moments = moments_of([vectors[self._fitted]], vectors.shape[1])
        if moments.count < 3 or not np.ptp(vectors[self._fitted], axis=0).any():
            return  # the first tokens of the embeddings are all alike
        rank = principal(moments).rank
        for size in settings.dimensions or dimensions(vectors.shape[1], rank):
            if size > rank:
                continue
            fitted = whitening(moments, size)
            white = replace(plain, correction="whitening", dimension=size, dense=(fitted.layer(),))
            self.add((white, fitted(some)))

    def flow(self, layers: tuple[int, ...], pooling: PoolingKind, settings: FlowSettings) -> None:
        """A flow of layers and a pooling; too few texts for one are no reason to stop."""
        vectors = self.kept.of(layers, pooling)
        texts = vectors[self._fitted]
        try:
            fit = fit_flow([texts], vectors.shape[1], settings)
        except ConfigError:
            return
        dense = fit.flow.layers()
        candidate = Candidate(
            layers=layers, pooling=pooling, correction="flow", dimension=fit.flow.kept, dense=dense
        )
        some = torch.from_numpy(np.array(vectors[: len(self.pairs.texts)])).double()
        self.add((candidate, fit.flow(some).numpy()))

    def best_bases(self, most: int) -> list[tuple[tuple[int, ...], PoolingKind]]:
        """The layers and poolings of the best candidates so far."""
        ordered = sorted(self.tried, key=_rank)
        found = [(one.candidate.layers, one.candidate.pooling) for one in ordered]
        return list(dict.fromkeys(pair for pair in found if pair[0]))[:most]


def _decided(
    trial: _Trial, own: SentenceSettings, usual: Sequence[PoolingKind], separate: bool
) -> TuneResult:
    ordered = sorted(trial.tried, key=_rank)
    last, rows = trial.kept.layers, len(trial.pairs)

    def simple(one: Tried) -> tuple[int, ...]:
        return one.candidate.complexity(last, usual[0])

    best = ordered[0]
    winner, lead = best, Difference(0.0, 0.0, 0.0, 1.0)
    for one in sorted(ordered, key=simple):
        if one is best:
            break
        between = paired_bootstrap(
            trial.figures[one.candidate], trial.figures[best.candidate], rows
        )
        if between.low <= 0.0:
            winner, lead = one, between
            break
    first = next(one for one in trial.tried if one.candidate.own)
    gain = paired_bootstrap(trial.figures[first.candidate], trial.figures[winner.candidate], rows)
    chosen = {*(id(one) for one in ordered[:SHOWN]), id(winner), id(first)}
    shown = [_with_interval(one, trial, rows) if id(one) in chosen else one for one in ordered]
    return TuneResult(
        measure=trial.pairs.measure,
        pairs=rows,
        fitted_on="the texts given" if separate else "the texts of the pairs, without scores",
        tried=tuple(shown),
        winner=shown[ordered.index(winner)],
        settings=winner.candidate.settings(own, last),
        lead=lead,
        gain=gain,
        layers=last,
    )


def _with_interval(one: Tried, trial: _Trial, rows: int) -> Tried:
    return replace(one, interval=bootstrap(trial.figures[one.candidate], rows))


def _rank(one: Tried) -> tuple[bool, float]:
    """Best first; what has no measure (vectors that are all alike) comes last."""
    return np.isnan(one.score), -one.score


def single_pooling(own: SentenceSettings) -> tuple[PoolingKind, ...]:
    """The folder's pooling, if it is one."""
    return own.pooling if len(own.pooling) == 1 else ()


def _own(
    model: LoadedModel, kept: LayerVectors, texts: Sequence[str]
) -> tuple[Candidate, AnyVectors]:
    """The vectors as the folder has them: from the same pass where they are a pooling of it."""
    own = model.settings
    if len(own.pooling) == 1 and own.layer_mix is None:
        vectors = kept.of((kept.layers,), own.pooling[0])[: len(texts)]
        given = torch.from_numpy(np.array(vectors))
        vectors = own.head().finish(given).numpy()
        layers: tuple[int, ...] = (kept.layers,)
    else:
        vectors, layers = model.encode(list(texts)), ()
    candidate = Candidate(
        layers=layers, pooling=own.pooling[0], dimension=vectors.shape[1], own=True
    )
    return candidate, vectors
