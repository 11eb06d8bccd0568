"""Softmaxes over words: full, adaptive, sampled and noise-contrastive, with exact scores of all."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Protocol

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.config import Count, Settings, named_by_kind
from bertsmith.errors import ConfigError
from bertsmith.nn.loss import LossSum
from bertsmith.nn.vocabulary_loss import CHUNK_BYTES, vocabulary_loss

FIRST_SHARE, MOST_FIRST, GROWTH = 10, 2_000, (4, 20)  # of automatic cutoffs
DIVISOR = 4  # each tail of an adaptive softmax is so many times narrower (Grave et al. 2017)


class FullSoftmax(Settings):
    """Every word is scored for every prediction."""

    kind: Literal["full"] = "full"


class AdaptiveSoftmax(Settings):
    """Frequent words first, rare ones in tails of fewer dimensions (Grave et al. 2017)."""

    kind: Literal["adaptive"] = "adaptive"
    cutoffs: Annotated[tuple[Count, ...], Field(strict=False)] | None = None  # None: by size


class NoiseWords(Settings):
    """How noise words are drawn: so many for the predictions of a pass, by count ** power."""

    samples: Count = 1_024
    power: Annotated[float, Field(ge=0, le=1)] = 0.75


class SampledSoftmax(NoiseWords):
    """The sum over words is estimated from noise words in training (Bengio and Senecal 2008)."""

    kind: Literal["sampled"] = "sampled"


class NoiseContrast(NoiseWords):
    """Words are classified against noise in training, with a sum of 1 (Mnih and Teh 2012)."""

    kind: Literal["nce"] = "nce"


SoftmaxKind = FullSoftmax | AdaptiveSoftmax | SampledSoftmax | NoiseContrast
SoftmaxSettings = Annotated[
    SoftmaxKind,
    Field(discriminator="kind"),
    named_by_kind("softmax", dict.fromkeys(("full", "adaptive", "sampled", "nce"))),
]


class WordSoftmax(Protocol):
    """Scores of words from rows; classes are ordered by falling count."""

    def loss(self, rows: Tensor, targets: Tensor, noise: Tensor | None) -> LossSum:
        """What training minimizes: (T, D), (T,), noise words (S,) -> LossSum."""

    def scores(self, rows: Tensor, targets: Tensor) -> Tensor:
        """Exact log probabilities of the targets, whatever training minimizes: -> (T,)."""

    def log_probabilities(self, rows: Tensor) -> Tensor:
        """Exact log probabilities of all classes: (T, D) -> (T, V)."""


class LinearSoftmax(nn.Module):
    """One row of weights per word, which may be shared with the embeddings."""

    def __init__(self, width: int, classes: int, *, shared: Tensor | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, width)) if shared is None else shared
        self.bias = nn.Parameter(torch.empty(classes))

    def loss(self, rows: Tensor, targets: Tensor, noise: Tensor | None) -> LossSum:
        """The exact loss: (T, D), (T,) -> LossSum."""
        return vocabulary_loss(rows, self.weight, self.bias, targets)[0]

    def scores(self, rows: Tensor, targets: Tensor) -> Tensor:
        """Exact log probabilities of the targets, in chunks of rows."""
        most = max(1, CHUNK_BYTES // (4 * len(self.bias)))
        parts = [
            self.log_probabilities(some).gather(1, wanted[:, None])[:, 0]
            for some, wanted in zip(
                torch.split(rows, most), torch.split(targets, most), strict=True
            )
        ]
        return torch.cat(parts) if parts else rows.new_zeros(0)

    def log_probabilities(self, rows: Tensor) -> Tensor:
        """Exact log probabilities of all classes: (T, D) -> (T, V)."""
        return F.linear(rows, self.weight, self.bias).log_softmax(1)


class _ByNoise(LinearSoftmax):
    """A loss on targets and noise words alone; `expected` (V,) is log(samples x probability)."""

    expected: Tensor

    def __init__(
        self, width: int, classes: int, *, noise: Tensor, samples: int, shared: Tensor | None
    ) -> None:
        super().__init__(width, classes, shared=shared)
        self.register_buffer("expected", (samples * noise).log().float(), persistent=False)

    def _logits(
        self, rows: Tensor, targets: Tensor, noise: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of the targets (T,), of the noise (T, S), the noise words."""
        if noise is None:
            raise ConfigError("this softmax needs noise words in training")
        wanted = (rows * self.weight[targets]).sum(1) + self.bias[targets]
        return wanted, F.linear(rows, self.weight[noise], self.bias[noise]), noise


class ImportanceSoftmax(_ByNoise):
    """Softmax whose sum over words is the target and noise words divided by their chances.

    A noise word equal to the target is left out, so the estimate of the sum is unbiased.
    """

    def loss(self, rows: Tensor, targets: Tensor, noise: Tensor | None) -> LossSum:
        """(T, D), (T,), (S,) -> LossSum."""
        wanted, others, noise = self._logits(rows, targets, noise)
        others = others - self.expected[noise]
        others = others.masked_fill(noise[None, :] == targets[:, None], -math.inf)
        total = torch.cat([wanted[:, None], others], dim=1).logsumexp(1)
        return LossSum((total - wanted).sum(), targets.numel())


class ContrastSoftmax(_ByNoise):
    """Logistic regression of words against noise: score - log(samples x chance), sum taken as 1."""

    def loss(self, rows: Tensor, targets: Tensor, noise: Tensor | None) -> LossSum:
        """(T, D), (T,), (S,) -> LossSum."""
        wanted, others, noise = self._logits(rows, targets, noise)
        right = F.softplus(self.expected[targets] - wanted)
        wrong = F.softplus(others - self.expected[noise])
        return LossSum(right.sum() + wrong.sum(), targets.numel())


class TailedSoftmax(nn.Module):
    """torch's adaptive softmax, with sums instead of means."""

    def __init__(self, width: int, classes: int, cutoffs: list[int]) -> None:
        super().__init__()
        self.words = nn.AdaptiveLogSoftmaxWithLoss(width, classes, cutoffs, div_value=DIVISOR)

    def loss(self, rows: Tensor, targets: Tensor, noise: Tensor | None) -> LossSum:
        """The exact loss: (T, D), (T,) -> LossSum."""
        return LossSum(-self.scores(rows, targets).sum(), targets.numel())

    def scores(self, rows: Tensor, targets: Tensor) -> Tensor:
        """Exact log probabilities of the targets."""
        found: Tensor = self.words(rows, targets).output
        return found

    def log_probabilities(self, rows: Tensor) -> Tensor:
        """Exact log probabilities of all classes: (T, D) -> (T, V)."""
        return self.words.log_prob(rows)


def build_softmax(
    settings: SoftmaxKind, *, width: int, noise: Tensor, shared: Tensor | None
) -> LinearSoftmax | TailedSoftmax:
    """The softmax of these settings; `noise` (V,) are the chances of noise words."""
    classes = len(noise)
    match settings:
        case FullSoftmax():
            return LinearSoftmax(width, classes, shared=shared)
        case AdaptiveSoftmax():
            if shared is not None:
                raise ConfigError(
                    "an adaptive softmax cannot share the embeddings: its rare words have fewer "
                    "dimensions; set tied=false, or softmax full, sampled or nce"
                )
            return TailedSoftmax(width, classes, cutoffs_of(settings, width, classes))
        case SampledSoftmax(samples=samples):
            return ImportanceSoftmax(width, classes, noise=noise, samples=samples, shared=shared)
        case NoiseContrast(samples=samples):
            return ContrastSoftmax(width, classes, noise=noise, samples=samples, shared=shared)


def cutoffs_of(settings: AdaptiveSoftmax, width: int, classes: int) -> list[int]:
    """Where the tails of an adaptive softmax begin; by default after a tenth of the words."""
    most = max(1, int(math.log(width, DIVISOR)))  # a tail needs a dimension
    if settings.cutoffs is None:
        first = max(1, min(classes // FIRST_SHARE, MOST_FIRST))
        every = [first, *(first * growth for growth in GROWTH)]
        return [cutoff for cutoff in every if cutoff < classes][:most]
    cutoffs = list(settings.cutoffs)
    if not cutoffs or cutoffs != sorted(set(cutoffs)) or cutoffs[-1] >= classes:
        raise ConfigError(
            f"softmax.cutoffs is {cutoffs}; they must rise and stay below the {classes:,} words "
            "of the vocabulary (line end included)"
        )
    if len(cutoffs) > most:
        raise ConfigError(
            f"softmax.cutoffs has {len(cutoffs)} values; rows of {width} dimensions allow {most}, "
            f"since each tail has {DIVISOR} times fewer; give fewer, or a larger hidden size"
        )
    return cutoffs
