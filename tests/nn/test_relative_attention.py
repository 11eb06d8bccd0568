"""Relative attention: a shift and a gather agree, and scores are those of a plain loop."""

from __future__ import annotations

import math

import torch

from bertsmith.nn import Layout
from bertsmith.nn.attention_plan import attention_plan
from bertsmith.nn.layout import Causal
from bertsmith.nn.relative import attention as relative
from bertsmith.nn.relative.attention import RelativeAttention, RelativePositions


def layer() -> RelativeAttention:
    torch.manual_seed(0)
    made = RelativeAttention(8, 2)
    for parameter in made.parameters():
        parameter.data.normal_(0.0, 0.5)
    return made.eval()


def plan_of(layout: Layout, keys: Layout | None = None, clamp: int = 0) -> object:
    terms = RelativePositions(clamp).of_batch(4, device=torch.device("cpu"), dtype=torch.float32)
    return attention_plan(layout, keys, terms=terms)


@torch.no_grad()
def test_a_shift_and_a_gather_agree(monkeypatch) -> None:
    made, hidden = layer(), torch.randn(5 + 5 + 3, 8)
    layout = Layout.of((5, 5, 3), sees=Causal())
    shifted = made(hidden, None, plan_of(layout))
    never = lambda first, second: False  # noqa: E731
    monkeypatch.setattr(relative.torch, "equal", never)
    plan = plan_of(layout)
    assert all(group.terms.near is not None for group in plan.groups)
    gathered = made(hidden, None, plan)
    torch.testing.assert_close(gathered, shifted, rtol=0, atol=1e-6)


@torch.no_grad()
def test_scores_equal_a_loop_over_pairs() -> None:
    made, hidden = layer(), torch.randn(6, 8)
    segments = torch.tensor([0, 0, 1, 1, 2, 2])
    for clamp in (0, 2):
        layout = Layout((6,), torch.stack([torch.arange(6), segments], dim=1))
        found = made(hidden, None, plan_of(layout, clamp=clamp))
        query, key, value = (one(hidden) for one in (made.query, made.key, made.value))
        context = torch.zeros(6, 8)
        rates = torch.exp(torch.arange(0, 8, 2) * (-math.log(10_000.0) / 8))
        for head in range(2):
            own = slice(4 * head, 4 * head + 4)
            scores = torch.zeros(6, 6)
            for i in range(6):
                for j in range(6):
                    far = max(-clamp, min(clamp, i - j)) if clamp else i - j
                    table = torch.cat([(far * rates).sin(), (far * rates).cos()])
                    other = int(segments[i] != segments[j])
                    scores[i, j] = (
                        (query[i, own] + made.content_bias[head]) @ key[j, own]
                        + (query[i, own] + made.position_bias[head]) @ made.relative(table)[own]
                        + (query[i, own] + made.segment_bias[head]) @ made.segments[other, head]
                    ) / 2
            context[:, own] = scores.softmax(-1) @ value[:, own]
        torch.testing.assert_close(found, made.output(context), rtol=0, atol=1e-5)
