"""The device that a name means, if this machine has it."""

from __future__ import annotations

import torch

from bertsmith.errors import HardwareError, check_type


def torch_device(name: str) -> torch.device:
    """The device of a name such as cpu or cuda:1; raises HardwareError if it is not here."""
    check_type("device", name, str)
    try:
        device = torch.device(name)
    except (RuntimeError, ValueError) as error:
        raise HardwareError(f"{name!r} is not a device; try cpu, cuda or cuda:1") from error
    backends = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "xpu": hasattr(torch, "xpu") and torch.xpu.is_available(),
    }
    if not backends.get(device.type, False):
        there = ", ".join(kind for kind, available in backends.items() if available)
        raise HardwareError(f"there is no {device.type} device here; there is: {there}")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as fault:
        reason = str(fault).partition("\n")[0]
        raise HardwareError(f"{name!r} cannot be used here: {reason}; try {device.type}") from fault
    return device
