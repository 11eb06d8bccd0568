"""The bytes of a safetensors file: a header, then the tensors, one after another without a hole."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from bertsmith.errors import ConfigError

STORED = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
TYPES = {name: dtype for dtype, name in STORED.items()}


def file_blocks(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> Iterator[bytes | memoryview]:
    """A whole file in pieces; the widest types come first, so that every tensor is aligned."""
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    place = 0
    for name in order:
        tensor = tensors[name]
        end = place + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": STORED[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, end],
        }
        place = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for name in order:
        if tensors[name].numel():
            yield byte_view(tensors[name].detach().cpu().contiguous())


def data_size(tensors: Mapping[str, Tensor]) -> int:
    """How many bytes the tensors take without the header."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def byte_view(tensor: Tensor) -> memoryview:
    """The memory of a contiguous tensor as bytes, to write from or to read into."""
    if sys.byteorder != "little":
        raise ConfigError("tensors are stored in little-endian order; this machine is not")
    return tensor.view(-1).view(torch.uint8).numpy().data
