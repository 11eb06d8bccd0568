"""fp32 on 1, 2, 4, ... threads: whether the promised processors are really available."""

from __future__ import annotations

import torch
from torch.nn.functional import linear

from bertsmith.hardware.probes import Measurement, ProbeJob
from bertsmith.hardware.probes.measuring import (
    SHAPES,
    exact,
    operands,
    race,
    relative_error,
    shape_name,
    worse,
)


def measure(job: ProbeJob) -> Measurement:
    """Rates by number of threads, in the facts; the rate of one thread is the reference."""
    rows, width, out = SHAPES[0]
    x, w = operands(rows, width, out)
    reference = exact(x, w)
    flops = 2.0 * rows * width * out
    rates: dict[str, float] = {}
    error = 0.0
    with torch.inference_mode():
        for count in counts(job.threads):
            torch.set_num_threads(count)
            error = worse(error, relative_error(linear(x, w), reference))
            seconds = min(race(lambda: linear(x, w), lambda: linear(x, w)))
            rates[str(count)] = flops / seconds / 1e9
    name = shape_name(rows, width, out)
    best = max(rates, key=lambda count: rates[count])
    return Measurement(
        gflops={name: rates[best]},
        fp32_gflops={name: rates["1"]},
        error=error,
        detail="GFLOP/s by threads: " + ", ".join(f"{n}: {rate:.0f}" for n, rate in rates.items()),
        facts={"gflops_by_threads": rates, "best_threads": int(best)},
    )


def counts(most: int) -> list[int]:
    """1, 2, 4, ... and the number itself."""
    doubled = [2**power for power in range(most.bit_length()) if 2**power < most]
    return [*doubled, most]
