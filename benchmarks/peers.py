"""The libraries to compare with, each at its best: sorted batches, best graph and batch size."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]
Batched = Callable[[Sequence[str], int], Vectors]
BATCH_SIZES = (16, 32, 64)


@dataclass
class Contestant:
    """A library, and the settings among which its best is looked for on each kind of text."""

    name: str
    variants: dict[str, Encode]
    facts: dict[str, object] = field(default_factory=dict)


def batch_sizes(encode: Batched, label: str = "batch") -> dict[str, Encode]:
    return {f"{label} {size}": partial(encode, batch_size=size) for size in BATCH_SIZES}


class Forward(Protocol):
    """Hidden states of one padded batch: ids (B, L) and mask (B, L) -> (B, L, D)."""

    def __call__(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Vectors: ...


def sentence_transformers(folder: Path) -> Contestant:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")

    def encode(texts: Sequence[str], batch_size: int) -> Vectors:
        return np.asarray(model.encode(list(texts), batch_size=batch_size, show_progress_bar=False))

    return Contestant("sentence-transformers", batch_sizes(encode))


def transformers(folder: Path) -> Contestant:
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder).eval()

    def forward(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Vectors:
        with torch.inference_mode():
            out = model(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask))
        return np.asarray(out.last_hidden_state.numpy())

    return Contestant("transformers", batch_sizes(sorted_batches(folder, forward)))


def onnx_runtime(folder: Path, threads: int, work: Path) -> list[Contestant]:
    """fp32 and int8, each with the exported graph and with ONNX Runtime's fused BERT operators."""
    from onnxruntime import InferenceSession, SessionOptions
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers.optimizer import optimize_model

    plain, fused = work / "plain.onnx", work / "fused.onnx"
    config = json.loads((folder / "config.json").read_text())
    export_onnx(folder, plain)
    optimize_model(
        str(plain),
        model_type="bert",
        num_heads=config["num_attention_heads"],
        hidden_size=config["hidden_size"],
    ).save_model_to_file(str(fused))

    def variants(path: Path) -> dict[str, Encode]:
        options = SessionOptions()
        options.intra_op_num_threads = threads
        session = InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

        def forward(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Vectors:
            return np.asarray(session.run(None, {"ids": ids, "mask": mask})[0])

        return batch_sizes(sorted_batches(folder, forward), f"{path.stem}, batch")

    def quantized(path: Path) -> Path:
        target = path.with_name(f"{path.stem}-int8.onnx")
        quantize_dynamic(
            path,
            target,
            weight_type=QuantType.QInt8,
            per_channel=True,
            extra_options={"DefaultTensorType": 1},  # float, where a fused operator hides it
        )
        return target

    small = variants(quantized(plain)) | variants(quantized(fused))
    return [
        Contestant("ONNX Runtime fp32", variants(plain) | variants(fused)),
        Contestant("ONNX Runtime int8", small),
    ]


def export_onnx(folder: Path, target: Path) -> None:
    import torch
    from transformers import AutoModel

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            # The eager form of attention is the one that ONNX Runtime's fusion recognizes.
            self.model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=ids, attention_mask=mask).last_hidden_state

    example = torch.ones(2, 8, dtype=torch.long)
    axes = {0: "texts", 1: "tokens"}
    torch.onnx.export(
        Hidden().eval(),
        (example, example),
        str(target),
        input_names=["ids", "mask"],
        output_names=["hidden"],
        dynamic_axes={"ids": axes, "mask": axes, "hidden": axes},
        opset_version=17,
        dynamo=False,
    )


def ctranslate2(folder: Path, threads: int, work: Path) -> list[Contestant]:
    import ctranslate2
    from ctranslate2.converters import TransformersConverter

    converted = work / "ctranslate2"
    TransformersConverter(str(folder)).convert(str(converted), force=True)

    def contestant(kind: str) -> Contestant:
        encoder = ctranslate2.Encoder(
            str(converted), device="cpu", compute_type=kind, intra_threads=threads, inter_threads=1
        )

        def forward(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Vectors:
            rows = [row[:length].tolist() for row, length in zip(ids, mask.sum(1), strict=True)]
            return np.array(encoder.forward_batch(rows).last_hidden_state)

        return Contestant(f"CTranslate2 {kind}", batch_sizes(sorted_batches(folder, forward)))

    return [contestant("float32"), contestant("int8")]


def sorted_batches(folder: Path, forward: Forward) -> Batched:
    """The usual loop around a padded model, written well: tokens once, sorted, mean pooled."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(max_length(folder))
    tokenizer.no_padding()

    def encode(texts: Sequence[str], batch_size: int) -> Vectors:
        rows = [e.ids for e in tokenizer.encode_batch_fast(list(texts))]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]), reverse=True)
        result: Vectors | None = None
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            ids = np.zeros((len(chosen), len(rows[chosen[0]])), np.int64)
            mask = np.zeros_like(ids)
            for i, number in enumerate(chosen):
                ids[i, : len(rows[number])] = rows[number]
                mask[i, : len(rows[number])] = 1
            hidden = forward(ids, mask)
            summed = np.einsum("bld,bl->bd", hidden, mask.astype(np.float32))
            if result is None:
                result = np.empty((len(rows), hidden.shape[-1]), np.float32)
            result[chosen] = summed / np.linalg.norm(summed, axis=1, keepdims=True)
        if result is None:
            raise ValueError("no texts")
        return result

    return encode


def max_length(folder: Path) -> int:
    return int(json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"])


def all_peers(folder: Path, threads: int, work: Path) -> Iterator[Contestant | tuple[str, str]]:
    """Every peer that is installed and runs; the others as (name, reason). `work` holds exports."""
    makers: dict[str, Callable[[], Contestant | list[Contestant]]] = {
        "sentence-transformers": lambda: sentence_transformers(folder),
        "transformers": lambda: transformers(folder),
        "ONNX Runtime": lambda: onnx_runtime(folder, threads, work),
        "CTranslate2": lambda: ctranslate2(folder, threads, work),
    }
    for name, make in makers.items():
        try:
            made = make()
        except Exception as error:  # a peer that cannot run is a line in the table
            yield name, f"{type(error).__name__}: {error}"
            continue
        yield from made if isinstance(made, list) else [made]
