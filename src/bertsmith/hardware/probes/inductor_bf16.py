"""bf16 compiled by torch: Inductor's own C++ GEMM template over frozen weights.

On CPUs whose AMX works only when its palette is set by hand this is the fast path of torch, since
the template does so and oneDNN does not; elsewhere it is often slower than fp32.
"""

from __future__ import annotations

import time

import torch
from torch import nn
from torch._dynamo.utils import counters
from torch._inductor import config

from bertsmith.hardware.probes.job import Measurement, ProbeJob
from bertsmith.hardware.probes.measuring import (
    SHAPES,
    race,
    relative_error,
    shape_name,
    worse,
)


def measure(job: ProbeJob) -> Measurement:
    """Rates of linear, GELU, linear (384, 1536, 384), compiled; the wait is in the facts."""
    torch.set_num_threads(job.threads)
    rows, width, inner = SHAPES[0]
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width)).eval()
    narrow = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width)).eval()
    narrow.load_state_dict(plain.state_dict())
    narrow = narrow.to(torch.bfloat16)
    x = torch.randn(rows, width)
    x16 = x.to(torch.bfloat16)
    # CPP alone: any other back end in the list would run oneDNN, which may be fatal.
    settings = {"freezing": True, "max_autotune": True, "max_autotune_gemm_backends": "CPP"}
    with torch.no_grad(), config.patch(settings):  # freezing wants no_grad, not inference_mode
        reference = nn.Sequential(*plain).double()(x.double())
        plain.float()
        start = time.perf_counter()
        compiled = torch.compile(narrow)
        error = relative_error(compiled(x16), reference)
        waited = time.perf_counter() - start
        seconds, plain_seconds = race(lambda: compiled(x16), lambda: plain(x))
        error = worse(error, relative_error(compiled(x16), reference))
    flops = 2 * 2.0 * rows * width * inner
    name = shape_name(rows, width, inner)
    kernels = int(counters["inductor"]["cpp_templated_kernel_counter"])
    return Measurement(
        gflops={name: flops / seconds / 1e9},
        fp32_gflops={name: flops / plain_seconds / 1e9},
        error=error,
        detail=f"compiled in {waited:.0f} s",
        facts={"compile_seconds": waited, "template_kernels": kernels},
    )
