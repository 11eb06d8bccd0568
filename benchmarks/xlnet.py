"""Training steps of XLNet, side by side: bertsmith against transformers.

One folder with random weights of equal shape, which both sides load; the same random ids in words
of one to three pieces; forward pass, loss over the vocabulary, backward pass, torch's fused AdamW
on both sides, dropout 0. The peer runs in two ways: with its own collator
(DataCollatorForPermutationLanguageModeling, whose mapping is the identity: every row goes through
the query stream and the vocabulary), and with the orders and the predicted tokens of bertsmith,
where losses must be equal. Sides take turns in one process, step after step; the median step
counts, in CPU seconds. Making batches is not counted on any side.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from machine import machine_facts

VOCABULARY = 8_192


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench_out/xlnet.json"))
    options = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "BERTSMITH_THREADS"):
        os.environ[variable] = str(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    from bertsmith.training.execution.execution import keep_freed_memory

    keep_freed_memory()  # for all sides: they share the process
    with tempfile.TemporaryDirectory(prefix="bertsmith-bench-") as work:
        sides = {"ours": Ours(options, work), "mapped": Mapped(work), "collator": Collated(work)}
        found = compare(sides, options)
    tokens = options.texts * options.length
    report: dict[str, Any] = {"machine": machine_facts(options.threads), **found}
    for name in sides:
        print(f"{name}: {found[name]:.3f} CPU s per step, {tokens / found[name]:.0f} tokens per s")
    print(
        f"ratio {found['collator'] / found['ours']:.2f} to transformers with its collator, "
        f"{found['mapped'] / found['ours']:.2f} with a mapping of predicted tokens only; largest "
        f"difference of a loss to the latter {found['difference']:.1e}"
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    return 0


def compare(sides: dict[str, Any], options: argparse.Namespace) -> dict[str, float]:
    """All sides take turns over the same batches; the first step of each warms up."""
    spent: dict[str, list[float]] = {name: [] for name in sides}
    difference = 0.0
    for number in range(options.steps):
        rows = make_rows(options, number)
        batch = sides["ours"].program.prepare(rows)
        losses = {}
        for name, side in sides.items():
            ready = side.ready(rows, batch)  # batches are made in another thread when training
            start = time.process_time()
            losses[name] = side.step(ready)
            if number:
                spent[name].append(time.process_time() - start)
        difference = max(difference, abs(losses["ours"] - losses["mapped"]))
    return {name: statistics.median(one) for name, one in spent.items()} | {
        "difference": difference
    }


def make_rows(options: argparse.Namespace, number: int) -> Any:
    """Random words of one to three pieces with <sep> <cls> at the end."""
    import numpy as np

    from bertsmith.corpus.rows import RowsBatch
    from bertsmith.random_keys import hashes, key_of

    draw = random.Random(number)
    total = options.texts * options.length
    words = np.cumsum([draw.random() < 0.75 for _ in range(total)]).astype(np.int32)
    ids = np.array([draw.randrange(10, VOCABULARY) for _ in range(total)], dtype=np.int32)
    segments = np.zeros(total, np.int32)
    ends = np.arange(1, options.texts + 1) * options.length
    ids[ends - 2], ids[ends - 1] = 4, 3
    words[ends - 2] = words[ends - 1] = -1
    segments[ends - 1] = 2
    return RowsBatch(
        ids=ids,
        segments=segments,
        words=words,
        lengths=(options.length,) * options.texts,
        keys=hashes(key_of(number, "text"), np.arange(options.texts)),
    )


class Side:
    """One way to train, with an optimizer of its own."""

    def optimize(self, model: Any) -> None:
        import torch

        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def finish(self, loss: Any) -> float:
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())


class Ours(Side):
    """bertsmith; makes the folder that all sides load."""

    def __init__(self, options: argparse.Namespace, work: str) -> None:
        from dataclasses import replace

        from bertsmith.folders.write import save_model
        from bertsmith.models.build import build
        from bertsmith.models.variant import sized
        from bertsmith.models.variants.xlnet import SPEC
        from bertsmith.objectives.permuted_lm import PermutationProgram, PermutationSettings
        from bertsmith.objectives.program import PretrainModule

        spec = replace(sized(SPEC, options.layers, options.hidden), vocab_size=VOCABULARY)
        spec = replace(spec, dropout=0.0, attention_dropout=0.0)
        model = build("xlnet", spec, heads=["language_model"]).train()
        save_model(model, None, Path(work) / "model")
        self.program = PermutationProgram(PermutationSettings(block=options.length))
        self.module = PretrainModule(self.program, model)
        self.optimize(self.module)

    def ready(self, rows: Any, batch: Any) -> Any:
        return batch

    def step(self, batch: Any) -> float:
        losses, _ = self.module(batch)
        loss = losses["permuted"]
        return self.finish(loss.sum / loss.count)


class Mapped(Side):
    """transformers, with the orders and predicted tokens of bertsmith."""

    def __init__(self, work: str) -> None:
        from transformers import XLNetLMHeadModel
        from transformers.utils import logging

        logging.disable_progress_bar()
        self.model = XLNetLMHeadModel.from_pretrained(Path(work) / "model").train()
        self.optimize(self.model)

    def ready(self, rows: Any, batch: Any) -> dict[str, Any]:
        import torch

        texts, length = len(rows.lengths), rows.lengths[0]
        ranks = batch.inputs.layout.sees.ranks
        hidden = ~((ranks[:, None, :] < ranks[:, :, None]) | (ranks[:, None, :] < 0))
        special = torch.from_numpy(~rows.real).view(texts, length)
        hidden &= ~(torch.eye(length, dtype=torch.bool) & special[:, :, None])
        at = batch.targets.at
        each = [at[at // length == text] % length for text in range(texts)]
        most = max(len(one) for one in each)
        mapping = torch.zeros(texts, most, length)
        labels = torch.full((texts, most), -100)
        ids = batch.inputs.ids.view(texts, length)
        for text, places in enumerate(each):
            mapping[text, torch.arange(len(places)), places] = 1.0
            labels[text, : len(places)] = ids[text, places]
        return {
            "input_ids": ids,
            "token_type_ids": torch.from_numpy(rows.segments).long().view(texts, length),
            "perm_mask": hidden.float(),
            "target_mapping": mapping,
            "labels": labels,
        }

    def step(self, batch: dict[str, Any]) -> float:
        return self.finish(self.model(**batch, use_mems=False).loss)


class Collated(Mapped):
    """transformers with its own collator."""

    def ready(self, rows: Any, batch: Any) -> dict[str, Any]:
        import torch
        from transformers import DataCollatorForPermutationLanguageModeling

        texts, length = len(rows.lengths), rows.lengths[0]
        collate = DataCollatorForPermutationLanguageModeling(tokenizer=_Ids())
        made = collate.torch_mask_tokens(batch.inputs.ids.view(texts, length).clone())
        segments = torch.from_numpy(rows.segments).long().view(texts, length)
        names = ("input_ids", "perm_mask", "target_mapping", "labels")
        return {**dict(zip(names, made, strict=True)), "token_type_ids": segments}


class _Ids:
    """What the collator asks of a tokenizer."""

    mask_token, mask_token_id, pad_token_id = "<mask>", 6, 5
    pad_token = "<pad>"

    def get_special_tokens_mask(self, ids: list[int], **_: Any) -> list[int]:
        return [int(one in (3, 4)) for one in ids]


if __name__ == "__main__":
    raise SystemExit(main())
