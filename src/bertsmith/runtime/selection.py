"""Engine selection: the fastest engine that was probed on this machine, if the work pays for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Literal, Protocol

import torch

from bertsmith.errors import HardwareError
from bertsmith.hardware.choice import choose_path, is_right
from bertsmith.hardware.environment import thread_count
from bertsmith.hardware.machine import compiler, this_machine
from bertsmith.hardware.report import MachineReport, cached, examine
from bertsmith.models.build import Model
from bertsmith.models.spec import Spec
from bertsmith.runtime.engines.engine import EagerEngine, Engine
from bertsmith.runtime.engines.kinds import (
    ENGINE_KINDS,
    EngineKind,
    engine_paths,
    engine_probes,
)

log = logging.getLogger(__name__)

Precision = Literal["auto", "fp32", "bf16", "fp16"]
PRECISIONS: tuple[Precision, ...] = ("auto", "fp32", "bf16", "fp16")
Notice = Callable[[str], None]

# Building and probing takes about half a minute, once per machine. Eager torch does some
# 60 GFLOP/s on two cores, so work beyond this pays for it with what it saves.
WORTH_PROBING = 60e9 * 30
PROBING_SECONDS = 180.0  # on a busy machine


def encode_flops(spec: Spec, tokens: int, mean_length: float) -> float:
    """Multiplications and additions to encode `tokens` tokens in texts of about that length."""
    attended = sum(shape.attended for shape in spec.layer_shapes)
    return tokens * (2 * sum(spec.products) + 4 * attended * mean_length)


def weights_dtype(device: torch.device, precision: Precision) -> torch.dtype:
    """The dtype of the weights; on a CPU they stay fp32 and the engine does its own rounding."""
    if device.type == "cpu":
        if precision == "fp16":
            raise HardwareError("fp16 is for GPUs; on a CPU use auto, bf16 or fp32")
        return torch.float32
    if precision == "auto":
        half = device.type == "cuda" and torch.cuda.is_bf16_supported()
        return torch.bfloat16 if half else torch.float32
    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]


class Engines(Protocol):
    """The engine of a model: the one in use, and the one for a piece of work."""

    @property
    def engine(self) -> Engine:
        """The engine in use now."""

    def flops(self, tokens: int, texts: int) -> float:
        """Floating-point operations to encode so many tokens of so many texts."""

    def prepare(self, flops: float) -> Engine:
        """The engine for that much work; a large piece may build and probe a faster one first."""

    def settle(self, flops: float) -> Engine:
        """Select the engine for that much work for good.

        What is computed by one engine in the same batches is equal to the last bit.
        """


class OneEngine:
    """An engine that was given, for any work."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def flops(self, tokens: int, texts: int) -> float:
        """Nothing depends on it."""
        return 0.0

    def prepare(self, flops: float) -> Engine:
        """The engine that was given."""
        return self.engine

    settle = prepare


class Selection:
    """Selects among torch and the kinds of engines; may move to a faster one once.

    What earlier probes found is looked up with the first use. `check` runs before any work.
    """

    def __init__(
        self,
        model: Model,
        *,
        device: torch.device,
        precision: Precision,
        threads: int | None,
        notice: Notice = log.info,
        check: Callable[[], None] = lambda: None,
        kinds: Mapping[str, EngineKind] = ENGINE_KINDS,
    ) -> None:
        self._model = model
        self._device = device
        self._precision = precision
        self._threads = threads or thread_count()
        self._notice = notice
        self._check = check
        self._table = kinds
        self._kinds: dict[str, EngineKind] = {}  # by finding: those that can run the model
        self._engine: Engine | None = None
        self._settled = True
        self._lock = threading.Lock()  # of threads that share a model one probes, others wait

    @property
    def engine(self) -> Engine:
        """The engine in use now."""
        self._check()
        if self._engine is not None:  # nobody who asks for it waits for a probe
            return self._engine
        with self._lock:
            return self._started()

    def flops(self, tokens: int, texts: int) -> float:
        """Floating-point operations to encode so many tokens of so many texts."""
        return encode_flops(self._model.spec, tokens, tokens / max(1, texts))

    def prepare(self, flops: float) -> Engine:
        """The engine for that much work; the first large piece may build and prove a faster one."""
        self._check()
        with self._lock:
            engine = self._started()
            if not self._settled and flops >= WORTH_PROBING:
                engine = self._engine = self._probe() or engine
            return engine

    def settle(self, flops: float) -> Engine:
        """Select the engine for that much work for good."""
        self.prepare(flops)
        with self._lock:
            self._settled = True
            return self._started()

    def _started(self) -> Engine:
        """The engine in use; at first torch, or what earlier probes chose."""
        if self._engine is None:
            self._engine = self._first() or EagerEngine(
                self._model.encoder, device=self._device, dtype=next(self._model.parameters()).dtype
            )
        return self._engine

    def _first(self) -> Engine | None:
        """The engine to begin with; None: torch."""
        if self._device.type != "cpu" or self._precision == "fp16":
            return None
        kinds = [k for k in self._table.values() if self._precision in ("auto", k.numbers)]
        refusals = {kind.name: kind.why_not(self._model.spec) for kind in kinds}
        self._kinds = {kind.probe_name: kind for kind in kinds if not refusals[kind.name]}
        if self._precision == "bf16":
            if not self._kinds:
                reasons = "; ".join(dict.fromkeys(refusals.values()))
                raise HardwareError(f"no bf16 path on this CPU runs this model: {reasons}")
            return self._probe(required=True)
        return self._known() if self._kinds else None

    def _known(self) -> Engine | None:
        """What earlier probes chose; open while this machine has not been probed."""
        probes = engine_probes(self._table)
        known = [
            finding for name in self._kinds if (finding := cached(name, probes=probes)) is not None
        ]
        if len(known) < len(self._kinds):
            self._settled = False
            return None
        report = MachineReport(
            machine=this_machine(), compiler=None, load=0.0, findings=tuple(known)
        )
        return self._chosen(report, report_to=log.info)  # nothing changes: no notice to the user

    def _probe(self, *, required: bool = False) -> Engine | None:
        """What probes choose now; None: torch. `required` makes that an error."""
        probes = engine_probes(self._table)
        known = {name: cached(name, probes=probes) for name in self._kinds}
        # A finding whose library is gone (a cleared cache, a new kernel) is out of date.
        stale = any(
            finding is not None and finding.works and not self._kinds[name].is_built()
            for name, finding in known.items()
        )
        if stale or None in known.values():
            self._notice(
                "looking for a faster path on this machine "
                "(once; half a minute, on a busy machine up to three minutes) ..."
            )
        report = examine(self._kinds, fresh=stale, budget=PROBING_SECONDS, probes=probes)
        engine = self._chosen(report, report_to=self._notice, required=required)
        if required and engine is None:
            statuses = "; ".join(f"{one.name}: {one.status}" for one in report.findings)
            hint = "" if compiler() else "; a C++ compiler (g++ or clang++) would help"
            raise HardwareError(f"no bf16 path works on this CPU ({statuses}){hint}")
        return engine

    def _chosen(
        self, report: MachineReport, *, report_to: Notice, required: bool = False
    ) -> Engine | None:
        """The engine that findings choose, if nothing needs to be compiled for it; None: torch.

        `required`: exact enough suffices, faster or not.
        """
        self._settled = True
        choice = choose_path(report, engine_paths(self._table))
        kind, reason = self._kinds.get(choice.probe), choice.reason
        if kind is None and required:
            kind = next((k for name, k in self._kinds.items() if is_right(report.get(name))), None)
            reason = "set by the user; no faster than fp32 here"
        if kind is None:
            return None
        if not kind.is_built():
            self._settled = False  # probed once, but the cache was cleared since
            return None
        engine = kind.build(self._model, self._threads)
        report_to(f"using {engine.name}: {reason}")
        return engine
