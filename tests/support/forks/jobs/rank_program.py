"""A small BERT trained as one of several ranks, by hand and without the loop.

An order has out, mode ("ddp" or "fsdp"), steps, and saved, a state to go on from (or None).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from disk_points import Points
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bertsmith.models.build import build
from bertsmith.models.variant import sized
from bertsmith.models.variants import bert
from bertsmith.nn import Inputs, Layout
from bertsmith.nn.block import Block
from bertsmith.nn.vocabulary_loss import vocabulary_loss
from bertsmith.training.execution.ranks import Ranks, RankSettings, join

TEXTS, WORDS = 8, 120


class Toy(nn.Module):
    """A model and its masked-LM loss, as one module."""

    def __init__(self) -> None:
        super().__init__()
        shape = replace(bert.SPEC, vocab_size=WORDS, dropout=0.0, attention_dropout=0.0)
        spec = sized(shape, 2, 64, heads=2)
        generator = torch.Generator().manual_seed(5)
        self.model = build("bert", spec, heads=["masked_lm"], generator=generator)
        self.unused = nn.Linear(4, 4)

    def forward(self, batch: tuple[Tensor, tuple[int, ...], Tensor, Tensor]) -> Tensor:
        ids, lengths, rows, targets = batch
        hidden = self.model(Inputs(ids, Layout.of(lengths)), rows=rows).hidden
        head = self.model.heads["masked_lm"]
        hidden = head.norm(head.activation(head.dense(hidden)))
        weight = self.model.encoder.embeddings.tokens.weight
        return vocabulary_loss(hidden, weight, head.bias, targets)[0].sum


def micro_batches(step: int, rank: int, world: int) -> list:
    """This rank's neighbors among the texts of a step, one micro-batch each two texts."""
    rng = torch.Generator().manual_seed(1000 + step)
    texts = [
        torch.randint(0, WORDS, (int(torch.randint(5, 12, (), generator=rng)),), generator=rng)
        for _ in range(TEXTS)
    ]
    mine = texts[rank * TEXTS // world : (rank + 1) * TEXTS // world]
    found = []
    for pair in (mine[i : i + 2] for i in range(0, len(mine), 2)):
        ids = torch.cat(pair)
        rows = torch.arange(0, len(ids), 3)
        found.append((ids // 2, tuple(map(len, pair)), rows, ids[rows]))
    return found


def train(ranks: Ranks, model: Toy, optimizer: torch.optim.Optimizer, steps: range) -> list:
    curve = []
    for step in steps:
        batches = micro_batches(step, ranks.rank, ranks.world)
        count = ranks.sum_counts({"n": sum(len(b[3]) for b in batches)})["n"]
        optimizer.zero_grad()
        total = 0.0
        for number in range(ranks.passes(len(batches))):
            own = number < len(batches)
            loss = model(batches[number if own else -1]) / count
            (loss if own else 0.0 * loss).backward()
            total += loss.item() if own else 0.0
        ranks.sum_gradients(model)
        optimizer.step()
        curve.append(ranks.sum_counts({"loss": total})["loss"])
    return curve


def whole(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: (t.full_tensor() if hasattr(t, "full_tensor") else t).detach().clone()
        for name, t in tensors.items()
    }


def run(order: dict[str, Any], points: Points) -> None:
    out, mode, steps = Path(order["out"]), order["mode"], order["steps"]
    torch.manual_seed(0)
    settings = RankSettings(sharding="fsdp" if mode == "fsdp" else "ddp", timeout=30)
    ranks = join(settings, device=torch.device("cpu"), sharded=[Block])
    model = Toy()
    if ranks.rank:
        with torch.no_grad():
            model.model.encoder.embeddings.tokens.weight.zero_()  # must come from rank 0
    first = 0
    if order["saved"] is not None:
        tensors = load_file(order["saved"])
        first = int(tensors.pop("step"))
        moments = {n: tensors.pop(n) for n in list(tensors) if n.startswith("exp_")}
        model.load_state_dict(tensors)
    ranks.prepare(model)
    # As in BERT, eps is 1e-6. Attention does not depend on the keys' bias, so its gradient is
    # rounding noise of about 1e-11, in another order of summation another one. torch's eps of 1e-8
    # lets Adam divide that noise by itself: ranks then differ by 3e-6 there after 20 steps, and by
    # 7e-7 elsewhere. With 1e-6, or with SGD, all weights agree within 1.2e-7.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-6, fused=True)
    if order["saved"] is not None:
        for name, parameter in model.named_parameters():
            if f"exp_avg:{name}" in moments:
                optimizer.state[parameter] = {
                    "step": torch.tensor(float(first)),
                    "exp_avg": moments[f"exp_avg:{name}"],
                    "exp_avg_sq": moments[f"exp_avg_sq:{name}"],
                }
    curve = train(ranks, model, optimizer, range(first, first + steps))
    with ranks.whole(model), torch.no_grad():
        held_out = [float(model(batch)) for batch in micro_batches(99, 0, 1)[: 1 + ranks.rank]]
    state = whole(dict(model.named_parameters()))
    names = {parameter: name for name, parameter in model.named_parameters()}
    for parameter, entry in optimizer.state.items():
        for key in ("exp_avg", "exp_avg_sq"):
            state |= whole({f"{key}:{names[parameter]}": entry[key]})
    state["step"] = torch.tensor(first + steps)
    if ranks.is_first:
        save_file(state, out.with_suffix(".safetensors"))
        out.write_text(json.dumps({"curve": curve, "held_out": held_out, "world": ranks.world}))
    ranks.barrier()
    ranks.close()
