"""Which engine trains: the kernel of the best instruction set that its probe found right, or torch.

Every kernel is first run in a child process, where a crash is a finding; findings are cached.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.word2vec.native import WORD_TIERS, NativeWordEngine, word2vec_kernel
from bertsmith.classic.word2vec.settings import Word2VecSettings
from bertsmith.classic.word2vec.tables import Tables, WordWeights
from bertsmith.errors import HardwareError, unknown
from bertsmith.hardware.probes import Probe
from bertsmith.hardware.report import cached, examine

log = logging.getLogger(__name__)

EngineName = Literal["auto", "avx512", "avx2", "torch"]
ENGINES: tuple[str, ...] = get_args(EngineName)
TORCH_LANES = 1

WORD_PROBES: dict[str, Probe] = {
    f"word2vec_{name}": replace(
        tier.probe(f"{__package__}.probe", about=f"word2vec on {name.upper()}", tolerance=1e-4),
        option=name,
    )
    for name, tier in WORD_TIERS.items()
}


class WordEngine(Protocol):
    """What trains: `seen` (1,) are the words so far, over all epochs and threads."""

    name: str
    seen: NDArray[np.int64]

    def run(self, first: int, last: int, seed: int) -> tuple[float, float]:
        """Train on pieces first to last; the sum of losses and the number of predictions."""


def choose_engine(name: EngineName = "auto") -> str:
    """The engine of that name, or the best that works here: a tier of the kernel, or torch."""
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    if name == "torch":
        return name
    for tier in WORD_TIERS if name == "auto" else (name,):
        probe = f"word2vec_{tier}"
        finding = cached(probe, probes=WORD_PROBES)
        # A finding whose library is gone (a cleared cache, a new kernel) is out of date.
        stale = finding is not None and finding.works and not word2vec_kernel(tier).is_built
        if finding is None or stale:
            report = examine([probe], fresh=stale, probes=WORD_PROBES)
            finding = report.findings[0]
        if finding.works:
            return tier
        log.info("%s: %s (%s)", probe, finding.status, finding.detail)
        if name != "auto":
            raise HardwareError(
                f"the word2vec kernel for {tier} cannot be used here: {finding.status} "
                f"({finding.detail}); choose another engine"
            )
    return "torch"


def lanes_of(engine: str) -> int:
    """Numbers that a row of weights is padded to a multiple of."""
    return WORD_TIERS[engine].lanes if engine in WORD_TIERS else TORCH_LANES


def make_engine(
    engine: str,
    tables: Tables,
    weights: WordWeights,
    settings: Word2VecSettings,
    *,
    threads: int = 1,
) -> WordEngine:
    """The engine, for so many threads; torch is imported only if it trains."""
    if engine == "torch":
        from bertsmith.classic.word2vec.torch_engine import TorchWordEngine

        return TorchWordEngine(tables, weights, settings)
    return NativeWordEngine(tables, weights, settings, tier=engine, threads=threads)
