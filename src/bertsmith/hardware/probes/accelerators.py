"""Accelerators (CUDA, ROCm, MPS, XPU): name, memory and the rate of a matrix product."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from bertsmith.errors import HardwareError
from bertsmith.hardware.probes import Measurement, ProbeJob
from bertsmith.hardware.probes.measuring import Product, measure_linear


def measure(job: ProbeJob) -> Measurement:
    """Rates of the first device in its best 16-bit format; every device is in the facts."""
    if not torch.accelerator.is_available():
        raise HardwareError("torch has no accelerator here")
    current = torch.accelerator.current_accelerator()
    if current is None:
        raise HardwareError("torch has no accelerator here")
    kind = current.type
    devices = [_describe(kind, index) for index in range(torch.accelerator.device_count())]
    dtype = torch.bfloat16 if devices[0]["bf16"] else torch.float16

    def prepare(x: Tensor, w: Tensor) -> Product:
        x16, w16 = x.to(kind, dtype), w.to(kind, dtype)

        def product() -> Tensor:
            result = linear(x16, w16)
            torch.accelerator.synchronize()
            return result

        return product

    result = measure_linear(prepare, job)
    names = ", ".join(device["name"] for device in devices)
    return replace(
        result,
        detail=f"{names} ({str(dtype).removeprefix('torch.')})",
        facts={"devices": devices},
    )


def _describe(kind: str, index: int) -> dict[str, Any]:
    if kind == "mps":  # one device, memory shared with the CPU
        memory = int(torch.mps.recommended_max_memory())
        return {"device": "mps", "name": "Apple GPU", "memory": memory, "bf16": False}
    module = torch.get_device_module(kind)
    properties = module.get_device_properties(index)
    # Older CUDA cards emulate bf16 slowly, which is_bf16_supported() calls support.
    bf16 = properties.major >= 8 if kind == "cuda" and not torch.version.hip else True
    return {
        "device": f"{kind}:{index}",
        "name": str(properties.name),
        "memory": int(properties.total_memory),
        "bf16": bf16,
    }
