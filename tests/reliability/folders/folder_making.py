"""Small folders and files for the tests of hostile input, written byte by byte."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Entry = Mapping[str, Any]


def safetensors_bytes(
    header: object, data: bytes = b"", *, length: int | None = None, padding: bytes = b""
) -> bytes:
    """A safetensors file with any header; `length` lies about its size."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += padding
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(shape: list[Any], begin: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def tiny_config(**changes: object) -> dict[str, object]:
    """A BERT of 2 layers and 16 columns."""
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": 12,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 24,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
        **changes,
    }


VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdef", "字"]


def tiny_shapes(layers: int = 2) -> dict[str, list[int]]:
    """Published names and shapes of `tiny_config`."""
    hidden, wide = 16, 32
    shapes = {
        "embeddings.word_embeddings.weight": [12, hidden],
        "embeddings.position_embeddings.weight": [24, hidden],
        "embeddings.token_type_embeddings.weight": [2, hidden],
        "embeddings.LayerNorm.weight": [hidden],
        "embeddings.LayerNorm.bias": [hidden],
        "pooler.dense.weight": [hidden, hidden],
        "pooler.dense.bias": [hidden],
    }
    square, column = [hidden, hidden], [hidden]
    parts = {
        "attention.self.query": (square, column),
        "attention.self.key": (square, column),
        "attention.self.value": (square, column),
        "attention.output.dense": (square, column),
        "attention.output.LayerNorm": (column, column),
        "intermediate.dense": ([wide, hidden], [wide]),
        "output.dense": ([hidden, wide], column),
        "output.LayerNorm": (column, column),
    }
    for layer in range(layers):
        for part, (weight, bias) in parts.items():
            shapes[f"encoder.layer.{layer}.{part}.weight"] = weight
            shapes[f"encoder.layer.{layer}.{part}.bias"] = bias
    return shapes


def tiny_weights(shapes: Mapping[str, list[int]] | None = None) -> bytes:
    """A whole safetensors file for these shapes, with small values that differ."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = bytearray()
    for number, (name, shape) in enumerate((shapes or tiny_shapes()).items()):
        count = 1
        for size in shape:
            count *= size
        values = [((number * 31 + place * 7) % 97 - 48) / 500 for place in range(count)]
        header[name] = entry(list(shape), len(data), len(data) + 4 * count)
        data += struct.pack(f"<{count}f", *values)
    return safetensors_bytes(header, bytes(data))


def tiny_folder(path: Path, **config: object) -> Path:
    """A complete folder of the old schema: config.json, vocab.txt, model.safetensors."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(tiny_config(**config)), encoding="utf-8")
    (path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    (path / "tokenizer_config.json").write_text('{"do_lower_case": true}', encoding="utf-8")
    (path / "model.safetensors").write_bytes(tiny_weights())
    return path
