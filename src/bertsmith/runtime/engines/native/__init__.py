"""An encoder in C++ with float32 sums: compiled once per machine, probed before it is used.

Which models it runs, and what it is compiled from; nothing here imports torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bertsmith.hardware.kernels.compiled import NativeKernel
from bertsmith.hardware.kernels.tiers import TIERS

if TYPE_CHECKING:
    from bertsmith.models.spec import Spec

ACTIVATIONS = {"gelu": 0, "gelu_tanh": 1, "relu": 2, "silu": 3}
_STEP = 32  # every width must be a multiple: an AMX tile is 32 deep


def why_not(spec: Spec) -> str:
    """Why the kernel cannot run a model of this shape; empty if it can."""
    if not spec.positions.table[0]:
        return "it has relative positions"
    parts = {
        "norms before its parts": spec.norm != "after",
        "more channels": bool(spec.channels),
        "layers of different shapes": bool(spec.shapes),
        "causal attention": spec.sees != "all",
        "no norm over its embeddings": not spec.embedding_norm,
        "scaled embeddings": spec.embedding_scale,
    }
    for part, there in parts.items():
        if there:
            return f"it has {part}"
    if spec.activation not in ACTIVATIONS:
        return f"the kernel has no {spec.activation} activation"
    widths = {
        "hidden size": spec.hidden,
        "embedding size": spec.embedding,
        "feed-forward size": spec.feed_forward,
        "head width": spec.hidden // spec.heads,
    }
    odd = [f"{name} {width}" for name, width in widths.items() if width % _STEP]
    return f"{', '.join(odd)}: not a multiple of {_STEP}" if odd else ""


def encoder_kernel(tier: str) -> NativeKernel:
    """The kernel of a tier, compiled or not."""
    return NativeKernel(
        name="encoder",
        sources=Path(__file__).parent / "kernel",
        main="encoder.cpp",
        tier=TIERS[tier],
    )
