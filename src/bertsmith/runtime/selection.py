"""Engine selection: the fastest engine that was probed on this machine, if the work pays for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Literal

import torch

from bertsmith.errors import HardwareError
from bertsmith.hardware.choice import INFERENCE, choose_path, is_right
from bertsmith.hardware.environment import thread_count
from bertsmith.hardware.machine import compiler, this_machine
from bertsmith.hardware.report import MachineReport, cached, examine
from bertsmith.models.build import Model
from bertsmith.models.spec import Spec
from bertsmith.runtime.engines.engine import EagerEngine, Engine
from bertsmith.runtime.engines.native import ALL_PROBES, NATIVE_PROBES
from bertsmith.runtime.engines.native.build import is_built
from bertsmith.runtime.engines.native.engine import NativeEngine, why_not

log = logging.getLogger(__name__)

Precision = Literal["auto", "fp32", "bf16", "fp16"]
PRECISIONS: tuple[Precision, ...] = ("auto", "fp32", "bf16", "fp16")
Notice = Callable[[str], None]

# Probe -> tier of the kernel, best first.
NATIVE = {name: probe.option for name, probe in NATIVE_PROBES.items()}

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


class Selection:
    """The engine of one model; starts with what is known and may move to a faster one once."""

    def __init__(
        self,
        model: Model,
        *,
        device: torch.device,
        precision: Precision,
        threads: int | None,
        notice: Notice = log.info,
    ) -> None:
        self._model = model
        self._threads = threads or thread_count()
        self._notice = notice
        self._settled = True
        self._lock = threading.Lock()  # of threads that share a model one probes, others wait
        self.engine: Engine = EagerEngine(
            model.encoder, device=device, dtype=next(model.parameters()).dtype
        )
        if device.type != "cpu" or precision in ("fp32", "fp16"):
            return
        refusal = why_not(model.spec)
        if precision == "bf16":
            if refusal:
                raise HardwareError(f"no bf16 path on this CPU runs this model: {refusal}")
            self._probe(required=True)
        elif not refusal:
            self._settled = self._use_known()

    def prepare(self, flops: float) -> Engine:
        """The engine for that much work; the first large piece may build and prove a faster one."""
        with self._lock:
            if not self._settled and flops >= WORTH_PROBING:
                self._probe(required=False)
            return self.engine

    def _use_known(self) -> bool:
        """Take what earlier probes chose; False while this machine has not been probed."""
        known = [
            finding for name in NATIVE if (finding := cached(name, probes=ALL_PROBES)) is not None
        ]
        if len(known) < len(NATIVE):
            return False
        report = MachineReport(
            machine=this_machine(), compiler=None, load=0.0, findings=tuple(known)
        )
        return self._take(report, report_to=log.info)  # nothing changes: no notice to the user

    def _probe(self, *, required: bool) -> None:
        self._settled = True
        known = [(finding := cached(name, probes=ALL_PROBES)) and finding.works for name in NATIVE]
        # A finding whose library is gone (a cleared cache, a new kernel) is out of date.
        stale = any(
            works and not is_built(tier) for works, tier in zip(known, NATIVE.values(), strict=True)
        )
        if stale or None in known:
            self._notice(
                "looking for a faster path on this machine "
                "(once; half a minute, on a busy machine up to three minutes) ..."
            )
        report = examine(NATIVE, fresh=stale, budget=PROBING_SECONDS, probes=ALL_PROBES)
        self._take(report, report_to=self._notice, required=required)
        if required and isinstance(self.engine, EagerEngine):
            statuses = "; ".join(f"{one.name}: {one.status}" for one in report.findings)
            hint = "" if compiler() else "; a C++ compiler (g++ or clang++) would help"
            raise HardwareError(f"no bf16 path works on this CPU ({statuses}){hint}")

    def _take(self, report: MachineReport, *, report_to: Notice, required: bool = False) -> bool:
        """Move to the native engine if the probes choose it and its library is built.

        `required`: exact enough suffices, faster or not.
        """
        choice = choose_path(report, INFERENCE)
        tier, reason = NATIVE.get(choice.probe), choice.reason
        if tier is None and required:
            tier = next((NATIVE[name] for name in NATIVE if is_right(report.get(name))), None)
            reason = "set by the user; no faster than fp32 here"
        if tier is None:
            return True  # settled: eager it stays
        if not is_built(tier):
            return False  # probed once, but the cache was cleared since
        self.engine = NativeEngine(
            self._model.encoder, self._model.spec, tier=tier, streams=self._threads
        )
        report_to(f"using {self.engine.name}: {reason}")
        return True
