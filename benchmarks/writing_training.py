"""Training steps of models that write, side by side: bertsmith against transformers.

One folder with random weights of equal shape, which both sides load; the same token ids; forward
pass, loss over the vocabulary, backward pass, torch's fused AdamW on both sides. Dropout is 0, so
that the losses can be compared. Blocks of equal length; lines of mixed length as they come, which
the peer pads to the longest; the same in batches of similar length, which is its best. Both take
turns in one process, step after step; the median step counts, in CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from machine import machine_facts
from material import cut_texts
from writing import KINDS, make_folder

BLOCK, TEXTS = 128, 32
Batch = list[list[int]]
Step = Callable[[Batch], float]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench_out/writing_training.json"))
    options = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "BERTSMITH_THREADS"):
        os.environ[variable] = str(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    from bertsmith.training.execution.execution import keep_freed_memory

    keep_freed_memory()  # for both sides: they share the process
    report: dict[str, Any] = {"machine": machine_facts(options.threads)}
    with tempfile.TemporaryDirectory(prefix="bertsmith-bench-") as work:
        for kind in options.kinds:
            folder = Path(work) / kind
            make_folder(kind, folder)
            report[kind] = {
                "blocks": compare(kind, folder, blocks(options.steps)),
                "lines as they come": compare(kind, folder, lines(folder, options.steps)),
                "lines sorted": compare(kind, folder, lines(folder, options.steps, similar=True)),
            }
            for name, found in report[kind].items():
                print(
                    f"{kind} {name}: bertsmith {found['ours']:.3f}, transformers "
                    f"{found['theirs']:.3f} CPU s per step, ratio {found['ratio']:.2f}, largest "
                    f"difference of a loss {found['difference']:.1e}",
                    flush=True,
                )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to {options.out}")
    return 0


def blocks(steps: int) -> list[Batch]:
    """Batches of texts of equal length."""
    draw = random.Random(0)
    return [
        [[draw.randrange(10, 8_000) for _ in range(BLOCK)] for _ in range(TEXTS)]
        for _ in range(steps)
    ]


def lines(folder: Path, steps: int, *, similar: bool = False) -> list[Batch]:
    """Batches of real lines, as they come or those of similar length together."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = cut_texts("mixed", steps * TEXTS)
    ids = [one[:500] for one in tokenizer(texts)["input_ids"]]
    if similar:
        ids.sort(key=len)
    batches = [ids[start : start + TEXTS] for start in range(0, len(ids), TEXTS)]
    random.Random(0).shuffle(batches)
    return batches


def compare(kind: str, folder: Path, batches: Sequence[Batch]) -> dict[str, float]:
    """Both sides take turns over the same batches; the first step of each warms up."""
    sides = {"ours": ours(kind, folder), "theirs": theirs(kind, folder)}
    spent: dict[str, list[float]] = {name: [] for name in sides}
    difference = 0.0
    for number, batch in enumerate(batches):
        losses = []
        for name, step in sides.items():
            start = time.process_time()
            losses.append(step(batch))
            if number:
                spent[name].append(time.process_time() - start)
        difference = max(difference, abs(losses[0] - losses[1]))
    found = {name: statistics.median(times) for name, times in spent.items()}
    return {**found, "ratio": found["theirs"] / found["ours"], "difference": difference}


def ours(kind: str, folder: Path) -> Step:
    import numpy as np
    import torch

    from bertsmith.nn.inputs import Inputs
    from bertsmith.objectives.masked_lm import token_loss
    from bertsmith.runtime.loading import load_model

    model, _ = load_model(folder)
    _without_dropout(model.train())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    start = model.spec.decoder.start if model.spec.decoder else 0

    def step(batch: Batch) -> float:
        inputs = Inputs.of(np.concatenate(batch), [len(one) for one in batch])
        if kind == "bart":
            shifted = Inputs.of(
                np.concatenate([[start, *one[:-1]] for one in batch]), [len(one) for one in batch]
            )
            memory = model(inputs).hidden
            hidden = model.decode(shifted, memory, inputs.layout)
            targets = inputs.ids
        else:
            ends = np.cumsum([len(one) for one in batch]) - 1
            at = torch.from_numpy(np.setdiff1d(np.arange(ends[-1] + 1), ends))
            hidden = model(inputs).hidden[at]
            targets = inputs.ids[at + 1]
        loss, _ = token_loss(model, hidden, targets)
        mean = loss.sum / loss.count
        mean.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(mean.detach())

    return step


def theirs(kind: str, folder: Path) -> Step:
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM
    from transformers.utils import logging

    logging.set_verbosity_error()
    family: Any = AutoModelForSeq2SeqLM if kind == "bart" else AutoModelForCausalLM
    model = family.from_pretrained(folder)
    _without_dropout(model.train())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step(batch: Batch) -> float:
        width = max(map(len, batch))
        ids = torch.tensor([one + [1] * (width - len(one)) for one in batch])
        mask = torch.tensor([[1] * len(one) + [0] * (width - len(one)) for one in batch])
        labels = ids.masked_fill(mask == 0, -100)
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


def _without_dropout(model: Any) -> None:
    """Dropout of 0 in every module, whatever a family calls it."""
    import torch

    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


if __name__ == "__main__":
    raise SystemExit(main())
