"""Rows and rectangles: nothing is lost, nothing is mixed."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.errors import TextError
from bertsmith.models import Spec
from bertsmith.models.build import build
from bertsmith.nn import Dense, Inputs, Layout, Prefix
from bertsmith.nn.attention_plan import attention_plan, bundles, pad_all

LENGTHS = st.lists(st.integers(0, 12), max_size=12)
TINY = Spec(vocab_size=9, hidden=8, layers=1, heads=2, feed_forward=8, embedding=8)


@given(LENGTHS)
def test_positions_count_from_zero_in_each_text(lengths: list[int]) -> None:
    layout = Layout.of(lengths)
    assert layout.positions.tolist() == [place for length in lengths for place in range(length)]
    assert layout.rows == sum(lengths)
    assert list(layout.starts) == [sum(lengths[:text]) for text in range(len(lengths))]


@given(LENGTHS, st.integers(0, 30))
def test_bundles_hold_every_text_with_tokens_once_and_in_order(
    lengths: list[int], padding: int
) -> None:
    held = [text for first, last in bundles(lengths, padding) for text in range(first, last)]
    assert held == [text for text, length in enumerate(lengths) if length]
    if padding == 0:
        assert all(len(set(lengths[a:b])) == 1 for a, b in bundles(lengths, padding))


@settings(max_examples=60, deadline=None)
@given(LENGTHS, st.data())
def test_spreading_and_gathering_gives_the_same_rows(
    lengths: list[int], data: st.DataObject
) -> None:
    layout = Layout.of(lengths)
    rows = torch.arange(layout.rows)
    wanted = None
    if layout.rows and data.draw(st.booleans()):
        choice = st.lists(st.integers(0, layout.rows - 1), max_size=8)
        wanted = torch.tensor(data.draw(choice), dtype=torch.long)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            __import__("bertsmith.nn.attention_plan", fromlist=["SPARE"]).SPARE, "cpu", 24
        )
        plan = attention_plan(layout, rows=wanted)
    asked = rows if plan.rows is None else plan.rows
    got = [group.queries.pack(group.queries.pad(asked)) for group in plan.groups]
    flat = torch.cat(got) if got else torch.empty(0, dtype=torch.long)
    assert torch.equal(flat, asked)
    if wanted is not None:
        assert torch.equal(flat[plan.restore], wanted)
    for group in plan.groups:
        assert torch.equal(
            group.keys.pack(group.keys.pad(rows)),
            rows[group.keys.start : group.keys.start + group.keys.count],
        )
    for side, of in (("queries", asked), ("keys", rows)):
        sides = [getattr(group, side) for group in plan.groups]
        alone = [one.pad(of) for one in sides]
        assert all(map(torch.equal, pad_all(of, sides), alone)), side


def test_rows_of_texts_that_nobody_asks_about_get_a_gradient_of_zero() -> None:
    plan = attention_plan(
        Layout.of([2, 1, 3]), rows=torch.tensor([0, 4])
    )  # none of the second text
    rows = torch.arange(6.0).requires_grad_()
    parts = pad_all(rows, [group.keys for group in plan.groups])
    sum((part * part).sum() for part in parts).backward()
    assert rows.grad.tolist() == [0.0, 2.0, 0.0, 6.0, 8.0, 10.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": torch.zeros(4, dtype=torch.long)}, "must both be"),
        ({"channels": {"segments": torch.zeros(2, dtype=torch.long)}}, "segments must be"),
        ({"head_mask": torch.ones(2, 2)}, "head_mask must be"),
        ({"layout": Layout.of([2, 1], sees=Dense(torch.ones(2, 2, 2)))}, "visible must be boolean"),
        ({"layout": Layout.of([2, 1], sees=Prefix((1, 2)))}, "a source length per text"),
        ({"layout": Layout.of([2, 1], sees=Prefix((1,)))}, "a source length per text"),
        ({"channels": {"tasks": torch.zeros(3, dtype=torch.long)}}, "no embedding for tasks"),
        ({"vectors": torch.zeros(1, 8)}, "vectors and vector_rows belong together"),
        ({"vectors": torch.zeros(1, 8), "vector_rows": torch.arange(2)}, "one vector per row"),
    ],
)
def test_what_does_not_fit_together_is_said(change: dict[str, object], message: str) -> None:
    model = build("bert", TINY)
    call = {"ids": torch.zeros(3, dtype=torch.long), "layout": Layout.of([2, 1])} | change
    head_mask = call.pop("head_mask", None)
    with pytest.raises(TextError, match=message):
        model(Inputs(**call), head_mask=head_mask)


def test_segments_of_a_model_without_them_are_refused_unless_zero() -> None:
    spec = Spec(
        vocab_size=9,
        hidden=8,
        layers=1,
        heads=2,
        feed_forward=8,
        embedding=8,
        segments=0,
        pooler=False,
    )
    model = build("distilbert", spec)
    ids, layout = torch.zeros(3, dtype=torch.long), Layout.of([3])
    zeros = Inputs(ids, layout, {"segments": torch.zeros(3, dtype=torch.long)})
    assert model.encoder(zeros).hidden.shape == (3, 8)
    ones = Inputs(ids, layout, {"segments": torch.ones(3, dtype=torch.long)})
    with pytest.raises(TextError, match="no segment embedding"):
        model.encoder(ones)
    assert torch.equal(model.eval()(ones).hidden, model(zeros).hidden)  # pairs of a tokenizer
    with pytest.raises(TextError, match="no pooler"):
        model.encoder.pool(torch.zeros(1, 8))


def test_evaluation_does_not_change_its_input() -> None:
    model = build("bert", TINY).eval()
    rows = torch.randn(3, 8)
    kept = rows.clone()
    with torch.inference_mode():
        model.encoder.blocks[0](rows, attention_plan(Layout.of([3])))
    assert torch.equal(rows, kept)
