"""An engine of the tests' own: torch by another name, and the probe that proves or refuses it."""

import torch

from bertsmith.errors import HardwareError
from bertsmith.hardware.probes import Measurement, Probe, ProbeJob
from bertsmith.runtime.engines.engine import EagerEngine
from bertsmith.runtime.engines.kinds import EngineKind


class ToyEngine(EagerEngine):
    """Torch, called toy-fp32."""

    def __init__(self, encoder, *, streams):
        super().__init__(encoder, device=torch.device("cpu"), dtype=torch.float32)
        self.name, self.streams = "toy-fp32", streams


def measure(job: ProbeJob) -> Measurement:
    """What `job.option` says: a rate, or a reason against it."""
    if not job.option.isdigit():
        raise HardwareError(job.option)
    rate = float(job.option)
    return Measurement(gflops={"toy": rate}, fp32_gflops={"toy": 100.0}, error=1e-7)


def toy_kind(option: str, numbers: str = "fp32") -> EngineKind:
    """The kind, whose probe runs `measure` of this file in a child process."""
    return EngineKind(
        name="toy-fp32",
        numbers=numbers,
        probe=Probe(module="toy_engine", about="a toy", tolerance=1e-5, option=option),
        why_not=lambda spec: "it is too deep" if spec.layers > 12 else "",
        build=lambda model, streams: ToyEngine(model.encoder, streams=streams),
    )
