"""The table of engines that a CPU may have besides torch: each probed, selected or refused alike.

A further engine is a further entry: what it computes with, the probe that proves it in a child
process, the models it cannot run, and how it is built. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertsmith.hardware.choice import PLAIN
from bertsmith.hardware.kernels.tiers import TIERS, Numbers, Tier
from bertsmith.hardware.probes import Probe
from bertsmith.runtime.engines.native import encoder_kernel, why_not

if TYPE_CHECKING:
    from bertsmith.models.build import Model
    from bertsmith.models.spec import Spec
    from bertsmith.runtime.engines.engine import Engine

EAGER = "eager-fp32"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKind:
    """One kind of engine for the encoders of a CPU.

    `numbers` are those of its products: with "fp32" it is exact, and precision fp32 may take it.
    """

    name: str  # of the engine, as shown to the user
    numbers: Numbers
    probe: Probe  # run in a child process before the engine is ever built in this one
    why_not: Callable[[Spec], str]  # the reason against a model; empty if it can run
    build: Callable[[Model, int], Engine]  # for so many streams
    is_built: Callable[[], bool] = lambda: True  # whether `build` need not compile anything

    @property
    def probe_name(self) -> str:
        """The name of its finding."""
        return self.name.replace("-", "_")


def _native(tier: Tier, about: str) -> EngineKind:
    """The kernel in C++ on one tier."""

    def build(model: Model, streams: int) -> Engine:
        from bertsmith.runtime.engines.native.engine import NativeEngine

        return NativeEngine(model.encoder, model.spec, tier=tier.name, streams=streams)

    return EngineKind(
        name=f"native-{tier.name}",
        numbers=tier.numbers,
        probe=tier.probe(
            "bertsmith.runtime.engines.native.probe", about=f"own kernel, {about}", tolerance=2e-2
        ),
        why_not=why_not,
        build=build,
        is_built=lambda: encoder_kernel(tier.name).is_built,
    )


ENGINE_KINDS: dict[str, EngineKind] = {  # best first
    kind.name: kind
    for kind in (
        _native(TIERS["amx-bf16"], "bf16 on AMX"),
        _native(TIERS["avx512-bf16"], "bf16 on AVX-512"),
    )
}


def engine_probes(kinds: Mapping[str, EngineKind] = ENGINE_KINDS) -> dict[str, Probe]:
    """The probe of each kind, by the name of its finding."""
    return {kind.probe_name: kind.probe for kind in kinds.values()}


def engine_refusals(spec: Spec, kinds: Mapping[str, EngineKind] = ENGINE_KINDS) -> dict[str, str]:
    """Why each kind cannot run a model of this shape, by name; empty if it can."""
    return {kind.name: kind.why_not(spec) for kind in kinds.values()}


def engine_paths(kinds: Mapping[str, EngineKind] = ENGINE_KINDS) -> dict[str, str]:
    """Finding -> engine, plain fp32 first: what `choose_path` chooses among for encoding."""
    return {PLAIN: EAGER} | {kind.probe_name: kind.name for kind in kinds.values()}
