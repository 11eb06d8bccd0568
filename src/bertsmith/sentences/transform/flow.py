"""Flow: an invertible map of vectors to a Gaussian, learned without labels (arXiv:2011.05864).

As in BERT-flow, each step normalizes the columns (actnorm), rotates them, and shifts one half of
them by a small network of the other half (additive coupling, one hidden layer of tanh). All of it
can be stored as dense layers of sentence-transformers: a tanh layer with a residual appends the
hidden units to the columns, the linear layer after it adds them where they belong.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import torch
from torch import Tensor, nn

from bertsmith.errors import ConfigError
from bertsmith.metrics.arrays import Floats
from bertsmith.models.sentence_spec import DenseLayer
from bertsmith.sentences.transform.moments import AnyVectors, Moments, Reservoir
from bertsmith.sentences.transform.whitening import (
    Principal,
    Whitening,
    check_keep,
    linear_layer,
    principal,
    whitening,
)

log = logging.getLogger(__name__)

Start = Literal["rotated", "whitened"]
EpochProgress = Callable[[int, int, float], None]
MOST_VECTORS = 65_536  # that a flow learns from: a uniform sample of longer inputs
MOST_HELD_OUT = 8_192
SMALLEST_SCALE = 1e-6  # actnorm never divides by less than this share of the largest deviation


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSettings:
    """How a flow is built and learned: Adam, the rate falls to 0.

    "whitened" begins with the principal directions: normalized, they are the whitened vectors.
    "rotated" begins with a random rotation, as BERT-flow does with the columns as they are.
    """

    steps: int = 4
    hidden: int = 32
    start: Start = "rotated"
    epochs: int = 12
    rate: float = 1e-3
    batch: int = 256
    held_out: float = 0.1
    keep: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "hidden", "epochs", "batch"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not 0 < self.held_out < 1 or not 0 < self.rate < 1:
            raise ConfigError(
                f"held_out and rate must be between 0 and 1, not {self.held_out} and {self.rate}"
            )


class FlowStep(nn.Module):
    """y = R (s * (x + b)), then y2 += C tanh(A y1 + a) + c, where y1 are the first columns."""

    rotation: Tensor

    def __init__(self, rotation: Tensor, hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        width, kind = len(rotation), rotation.dtype
        self.first = width // 2  # columns that stay as they are
        self.register_buffer("rotation", rotation)
        self.shift = nn.Parameter(torch.zeros(width, dtype=kind))
        self.log_scale = nn.Parameter(torch.zeros(width, dtype=kind))
        self.inner = nn.Linear(self.first, hidden, dtype=kind)
        self.outer = nn.Linear(hidden, width - self.first, dtype=kind)
        nn.init.normal_(self.inner.weight, std=self.first**-0.5, generator=generator)
        for zero in (self.inner.bias, self.outer.weight, self.outer.bias):
            nn.init.zeros_(zero)

    def forward(self, x: Tensor) -> Tensor:
        """(n, r) -> (n, r)."""
        y = ((x + self.shift) * self.log_scale.exp()) @ self.rotation.T
        return torch.cat([y[:, : self.first], y[:, self.first :] + self._added(y)], dim=1)

    def inverse(self, y: Tensor) -> Tensor:
        """(n, r) -> (n, r), exactly."""
        y = torch.cat([y[:, : self.first], y[:, self.first :] - self._added(y)], dim=1)
        return (y @ self.rotation) * (-self.log_scale).exp() - self.shift

    def _added(self, y: Tensor) -> Tensor:
        added: Tensor = self.outer(torch.tanh(self.inner(y[:, : self.first])))
        return added

    @torch.no_grad()
    def start(self, x: Tensor) -> None:
        """Set shift and scale so that the columns of x have mean 0 and deviation 1."""
        deviation = x.std(dim=0)
        self.shift.copy_(-x.mean(dim=0))
        self.log_scale.copy_(-deviation.clamp(min=SMALLEST_SCALE * deviation.max()).log())

    def expanding_layer(self) -> DenseLayer:
        """(n, r) -> (n, r + h): the columns as they are, then the hidden units."""
        width, hidden = len(self.shift), len(self.inner.bias)
        weight, bias = torch.zeros(width + hidden, width), torch.zeros(width + hidden)
        weight[width:, : self.first] = self.inner.weight.float()
        bias[width:] = self.inner.bias.float()
        return DenseLayer(
            inputs=width,
            outputs=width + hidden,
            activation="tanh",
            residual=True,
            weight=weight,
            bias=bias,
            residual_weight=torch.eye(width + hidden, width),
        )

    def adding(self) -> tuple[Tensor, Tensor]:
        """What adds the hidden units again, as a linear map: (r, r + h) and (r,)."""
        width, hidden = len(self.shift), len(self.inner.bias)
        weight = torch.eye(width, width + hidden, dtype=torch.float64)
        weight[self.first :, width:] = self.outer.weight.double()
        bias = torch.zeros(width, dtype=torch.float64)
        bias[self.first :] = self.outer.bias.double()
        return weight, bias


class Flow(nn.Module):
    """Directions with variance, then steps: (n, D) -> (n, r); invertible within those directions.

    `mean` (D,) and `directions` (D, r), which are orthonormal, are fixed.
    """

    mean: Tensor
    directions: Tensor

    def __init__(self, found: Principal, settings: FlowSettings, *, kept: int) -> None:
        super().__init__()
        random = np.random.default_rng(settings.seed)
        directions = found.directions[:, :kept]
        if settings.start == "rotated":
            directions = directions @ _rotation(kept, random)
        self.register_buffer("mean", torch.from_numpy(found.mean.copy()))
        self.register_buffer("directions", torch.from_numpy(directions.copy()))
        generator = torch.Generator().manual_seed(settings.seed)
        self.steps = nn.ModuleList(
            FlowStep(torch.from_numpy(_rotation(kept, random)), settings.hidden, generator)
            for _ in range(settings.steps)
        )

    @property
    def kept(self) -> int:
        """r, the dimensions of the result."""
        return self.directions.shape[1]

    def coordinates(self, vectors: Tensor) -> Tensor:
        """Along the directions: (n, D) -> (n, r)."""
        return (vectors - self.mean) @ self.directions

    def forward(self, vectors: Tensor) -> Tensor:
        """(n, D) -> (n, r)."""
        return self.of_coordinates(self.coordinates(vectors))

    def of_coordinates(self, x: Tensor) -> Tensor:
        """(n, r) -> (n, r)."""
        for step in self._steps():
            x = step(x)
        return x

    def inverse(self, z: Tensor) -> Tensor:
        """(n, r) -> (n, D), the vector in the span of the directions."""
        for step in reversed(self._steps()):
            z = step.inverse(z)
        return z @ self.directions.T + self.mean

    @torch.no_grad()
    def start(self, x: Tensor) -> None:
        """Normalize the columns in every step, given coordinates (n, r)."""
        for step in self._steps():
            step.start(x)
            x = step(x)

    def nll(self, x: Tensor) -> Tensor:
        """Mean negative log likelihood per dimension of coordinates (n, r), in nats.

        Rotations and couplings keep volumes: the determinant is that of the scales.
        """
        z = self.of_coordinates(x)
        gaussian = 0.5 * (z.square().sum(dim=1).mean() + self.kept * math.log(2 * math.pi))
        scales = torch.stack([step.log_scale.sum() for step in self._steps()]).sum()
        return (gaussian - scales) / self.kept

    @torch.no_grad()
    def layers(self) -> tuple[DenseLayer, ...]:
        """The same as dense layers in float32: two per step, and one that adds the last units."""
        layers: list[DenseLayer] = []
        weight = self.directions.double().T
        bias = -(weight @ self.mean.double())
        for step in self._steps():
            scaled = step.rotation.double() * step.log_scale.double().exp()
            linear = scaled @ weight, scaled @ (bias + step.shift.double())
            layers += [linear_layer(linear[0].numpy(), linear[1].numpy()), step.expanding_layer()]
            weight, bias = step.adding()
        return (*layers, linear_layer(weight.numpy(), bias.numpy()))

    def _steps(self) -> list[FlowStep]:
        return cast("list[FlowStep]", list(self.steps))


def _rotation(width: int, random: np.random.Generator) -> Floats:
    """A random orthogonal matrix (r, r): Q of a Gaussian one, with signs that make it uniform."""
    q, r = np.linalg.qr(random.standard_normal((width, width)))
    rotation: Floats = q * np.sign(np.diag(r))
    return rotation


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFit:
    """A flow, the whitening of the same texts, and how likely each finds texts held out.

    `nll` and `whitening_nll` are nats per dimension of `held_out` texts, lower is better.
    """

    flow: Flow
    whitening: Whitening
    texts: int
    learned_from: int
    held_out: int
    nll: float
    whitening_nll: float


class FlowTexts:
    """The vectors of a stream: moments and a sample to learn from, and a sample held out."""

    def __init__(self, width: int, settings: FlowSettings) -> None:
        self.moments = Moments(width)
        self.learned = Reservoir(MOST_VECTORS, width, settings.seed)
        self.held_out = Reservoir(MOST_HELD_OUT, width, settings.seed + 1)
        self.texts = 0
        self._share = settings.held_out
        self._random = np.random.default_rng(settings.seed + 2)

    def add(self, vectors: AnyVectors) -> None:
        """Further vectors (n, D)."""
        out = self._random.random(len(vectors)) < self._share
        self.moments.add(vectors[~out])
        self.learned.add(vectors[~out])
        self.held_out.add(vectors[out])
        self.texts += len(vectors)


def fit_flow(
    blocks: Iterable[AnyVectors],
    width: int,
    settings: FlowSettings,
    *,
    progress: EpochProgress = lambda epoch, epochs, nll: None,
) -> FlowFit:
    """Learn a flow from blocks (n, D) of vectors; `progress` gets each epoch and its likelihood."""
    texts = FlowTexts(width, settings)
    for block in blocks:
        texts.add(block)
    found = principal(texts.moments, what="a flow")
    kept = check_keep(found, settings.keep, what="a flow")
    if kept < 2:
        raise ConfigError("a flow needs at least 2 dimensions; keep more")
    sample, held = texts.learned.vectors, texts.held_out.vectors
    if not len(held):
        raise ConfigError(f"{texts.texts} texts are too few to hold any out; give more")
    flow = Flow(found, settings, kept=kept)
    x = flow.coordinates(torch.from_numpy(sample).double())
    flow.start(x)
    _learn(flow, x.float(), settings, progress)
    with torch.no_grad():
        nll = float(flow.nll(flow.coordinates(torch.from_numpy(held).double())))
    plain = whitening(texts.moments, kept)
    return FlowFit(
        flow=flow.eval().requires_grad_(False),
        whitening=plain,
        texts=texts.texts,
        learned_from=len(sample),
        held_out=len(held),
        nll=nll,
        whitening_nll=plain.nll(held),
    )


def _learn(flow: Flow, x: Tensor, settings: FlowSettings, progress: EpochProgress) -> None:
    """Learn in float32; the fixed rotations stay as exact as they were in float64."""
    learner = copy.deepcopy(flow).float()
    generator = torch.Generator().manual_seed(settings.seed)
    optimizer = torch.optim.Adam(learner.parameters(), lr=settings.rate)
    total, done = settings.epochs * math.ceil(len(x) / settings.batch), 0
    for epoch in range(settings.epochs):
        nlls = 0.0
        order = torch.randperm(len(x), generator=generator)
        for start in range(0, len(x), settings.batch):
            rows = order[start : start + settings.batch]
            for group in optimizer.param_groups:
                group["lr"] = settings.rate * (1 - done / total)
            loss = learner.nll(x[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            nlls += float(loss.detach()) * len(rows)
            done += 1
        log.debug("flow, epoch %d: %.4f nats per dimension", epoch + 1, nlls / len(x))
        progress(epoch + 1, settings.epochs, nlls / len(x))
    learned = dict(learner.named_parameters())
    with torch.no_grad():
        for name, parameter in flow.named_parameters():
            parameter.copy_(learned[name])
