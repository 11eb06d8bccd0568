"""The native engine: an encoder's weights packed for the C++ kernel, one stream per core."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertsmith.errors import HardwareError, TextError
from bertsmith.models.spec import Spec
from bertsmith.nn.block import Block
from bertsmith.nn.encoder import Encoder
from bertsmith.nn.inputs import SEGMENTS
from bertsmith.runtime.engines.batches import Ids, RowBatch
from bertsmith.runtime.engines.native.build import library

_POINTER = ctypes.c_void_p
_WHOLE = ctypes.c_int32


def load_kernel(path: Path) -> ctypes.CDLL:
    """Open the library; calls release Python's lock while they run."""
    kernel = ctypes.CDLL(str(path))
    kernel.bertsmith_permitted.argtypes = []
    kernel.bertsmith_permitted.restype = _WHOLE
    kernel.bertsmith_create.argtypes = [_POINTER, ctypes.c_float, *[_POINTER] * 7]
    kernel.bertsmith_create.restype = _POINTER
    kernel.bertsmith_fill.argtypes = [_POINTER, _WHOLE, ctypes.POINTER(_POINTER)]
    kernel.bertsmith_fill.restype = None
    kernel.bertsmith_free.argtypes = [_POINTER]
    kernel.bertsmith_free.restype = None
    kernel.bertsmith_scratch.argtypes = [_POINTER, _WHOLE, _WHOLE]
    kernel.bertsmith_scratch.restype = ctypes.c_size_t
    kernel.bertsmith_encode.argtypes = [*[_POINTER] * 4, _WHOLE, _POINTER, _POINTER]
    kernel.bertsmith_encode.restype = None
    return kernel


def aligned_bytes(size: int) -> NDArray[np.uint8]:
    """Memory that begins on a 64-byte line."""
    memory = np.empty(size + 64, dtype=np.uint8)
    first = -memory.ctypes.data % 64
    return memory[first : first + size]


_ACTIVATIONS = {"gelu": 0, "gelu_tanh": 1, "relu": 2, "silu": 3}
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
    if spec.activation not in _ACTIVATIONS:
        return f"the kernel has no {spec.activation} activation"
    widths = {
        "hidden size": spec.hidden,
        "embedding size": spec.embedding,
        "feed-forward size": spec.feed_forward,
        "head width": spec.hidden // spec.heads,
    }
    odd = [f"{name} {width}" for name, width in widths.items() if width % _STEP]
    return f"{', '.join(odd)}: not a multiple of {_STEP}" if odd else ""


class NativeEngine:
    """Runs post-norm encoders with learned positions in bf16 with float32 sums."""

    budget = 1024

    def __init__(self, encoder: Encoder, spec: Spec, *, tier: str, streams: int) -> None:
        refusal = why_not(spec)
        if refusal:
            raise HardwareError(f"the native kernel cannot run this model: {refusal}")
        self.name = f"native-{tier}-bf16"
        self.streams = streams
        self._vocabulary = spec.vocab_size
        self._segments = spec.segments
        self._longest = spec.longest or 0
        self._hidden = spec.hidden
        self._kernel = load_kernel(library(tier))
        if not self._kernel.bertsmith_permitted():
            raise HardwareError("this processor has no AMX, or the system does not permit it")
        self._local = threading.local()
        self._tables = [_plain(table) for table in _tables(encoder)]  # the kernel reads them
        self._handle = self._create(encoder, spec)
        weakref.finalize(self, self._kernel.bertsmith_free, self._handle)

    def hidden(self, batch: RowBatch, rows: Sequence[int] | None = None) -> Tensor:
        """(T, D), or (P, D) of `rows`: the kernel computes all rows, and the rest is dropped."""
        ids = np.ascontiguousarray(batch.ids, dtype=np.int32)
        starts = np.ascontiguousarray(batch.starts, dtype=np.int32)
        segments = batch.channels.get(SEGMENTS)
        further = [name for name in batch.channels if name != SEGMENTS]
        if further or batch.positions is not None or batch.sees is not None:
            raise HardwareError(
                "the native kernel reads ids and segments only, but this batch has further "
                "channels, positions or visibility; use precision fp32"
            )
        if segments is not None:
            segments = np.ascontiguousarray(segments, dtype=np.int32)
        longest = int(np.diff(starts).max(initial=0))
        self._check(ids, segments, longest)
        hidden = np.empty((len(ids), self._hidden), dtype=np.float32)
        self._kernel.bertsmith_encode(
            *(self._handle, ids.ctypes.data),
            *(None if segments is None else segments.ctypes.data, starts.ctypes.data),
            *(len(starts) - 1, hidden.ctypes.data, self._scratch(len(ids), longest)),
        )
        return torch.from_numpy(hidden if rows is None else hidden[list(rows)])

    def _check(self, ids: Ids, segments: Ids | None, longest: int) -> None:
        """The kernel trusts its input, so nothing out of range may reach it."""
        if not _within(ids, self._vocabulary):
            raise TextError(f"a token id is outside of the vocabulary of {self._vocabulary}")
        if segments is not None:
            if segments.shape != ids.shape:
                raise TextError(f"segments must be {ids.shape} like the ids, not {segments.shape}")
            if not _within(segments, self._segments):
                raise TextError(f"a segment is outside of the {self._segments} of this model")
        if longest > self._longest:
            raise TextError(f"a text of {longest} tokens does not fit {self._longest} positions")

    def _scratch(self, rows: int, longest: int) -> int:
        """The address of this thread's working memory, grown when a batch needs more."""
        size = self._kernel.bertsmith_scratch(self._handle, rows, longest)
        held = getattr(self._local, "scratch", None)
        if held is None or len(held) < size:
            held = self._local.scratch = aligned_bytes(size)
        address: int = held.ctypes.data
        return address

    def _create(self, encoder: Encoder, spec: Spec) -> int:
        shared = spec.sharing == "all"
        sizes = np.array(
            [
                *(spec.layers, 1 if shared else spec.layers, spec.hidden, spec.heads),
                *(spec.feed_forward, spec.embedding, _ACTIVATIONS[spec.activation]),
                encoder.embeddings.first,
            ],
            dtype=np.int32,
        )
        pointers = [_address(table) for table in self._tables]
        handle: int | None = self._kernel.bertsmith_create(
            sizes.ctypes.data, spec.norm_eps, *pointers
        )
        if not handle:
            raise HardwareError("there is not enough memory for the native kernel's weights")
        for number, block in enumerate(encoder.blocks[:1] if shared else encoder.blocks):
            parts = [_plain(part) for part in _parts(block)]
            table = (ctypes.c_void_p * len(parts))(*map(_address, parts))
            self._kernel.bertsmith_fill(handle, number, table)
        return handle


def _within(numbers: Ids, limit: int) -> bool:
    return not len(numbers) or 0 <= int(numbers.min()) <= int(numbers.max()) < limit


def _tables(encoder: Encoder) -> list[Tensor | None]:
    """Token, position and segment tables, norm and projection, in the kernel's order.

    The task of texts without one, the same for all rows, is added to the positions.
    """
    parts = encoder.embeddings
    segments = parts.segments.weight if parts.segments is not None else None
    positions = parts.positions.weight if parts.positions is not None else None
    if positions is not None:  # `why_not` refuses models without
        for name, table in parts.channels.items():
            positions = positions + table.get_parameter("weight")[parts.absent.get(name, 0)]
    return [
        *(parts.tokens.weight, positions, segments),
        *_weight_and_bias(parts.norm),
        *_weight_and_bias(parts.project),
    ]


def _weight_and_bias(module: nn.LayerNorm | nn.Linear | None) -> tuple[Tensor | None, ...]:
    return (None, None) if module is None else (module.weight, module.bias)


def _parts(block: nn.Module) -> list[Tensor]:
    """Weights and biases of a block in the kernel's order."""
    if not isinstance(block, Block):
        raise HardwareError(f"the native kernel cannot run a {type(block).__name__}")
    attention, feed_forward = block.attention, block.feed_forward
    modules = (
        *(attention.query, attention.key, attention.value, attention.output),
        *(block.attention_norm, feed_forward.up, feed_forward.down, block.feed_forward_norm),
    )
    return [tensor for module in modules for tensor in (module.weight, module.bias)]


def _plain(tensor: Tensor | None) -> Tensor | None:
    """Contiguous float32 on the CPU, the same memory when it already is."""
    if tensor is None:
        return None
    return tensor.detach().to("cpu", torch.float32).contiguous()


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
