"""Every writer with a cache gives the logits of the whole text, read again at every step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_models import randomized, shrunk

from bertsmith.errors import TextError
from bertsmith.models.build import Model, build
from bertsmith.models.spec import DecoderSpec, Spec
from bertsmith.models.variants import VARIANTS
from bertsmith.nn.cache import layer as cache_layer
from bertsmith.nn.cache import rows as cache_rows
from bertsmith.runtime.generation.cached import writer_of
from bertsmith.runtime.generation.forms import CausalForm, CrossForm, Form, PrefixForm, QueryForm
from bertsmith.runtime.generation.plain import PlainWriter
from bertsmith.runtime.generation.writer import Writer

VOCAB, ROWS, MASK = 40, 24, 3
CLOSE = {"rtol": 0.0, "atol": 1e-5}
LENGTHS = (9, 2, 17, 2, 1, 11)
ENCODERS = sorted(
    name for name, one in VARIANTS.items() if "masked_lm" in one.heads and not one.spec.decoder
)
FORMS: dict[str, Form] = {
    "causal": CausalForm(),
    "query": QueryForm(),
    "mask": PrefixForm("mask", 1, 0, MASK),
    "shift": PrefixForm("shift", 0, 1),
    "cross": CrossForm(2),
    "span": CrossForm(5, first_position=3),
}


def model_of(variant: str, form: Form) -> Model:
    spec: Spec = shrunk(variant, vocab_size=VOCAB, hidden=32, heads=4, rows=ROWS)
    if isinstance(form, CrossForm) and spec.decoder is None:
        spec = replace(spec, decoder=DecoderSpec(layers=2, heads=2, feed_forward=24))
    head = "masked_lm" if "masked_lm" in VARIANTS[variant].heads else "language_model"
    return randomized(build(variant, spec, heads=[head]))


CASES = [(variant, name) for variant in ENCODERS for name in ("causal", "mask", "shift")]
CASES += [("bert", "cross"), ("bert", "span"), ("xlnet", "query")]
CASES += [
    (name, "cross" if one.spec.decoder else "causal")
    for name, one in sorted(VARIANTS.items())
    if "language_model" in one.heads
]
EACH = pytest.mark.parametrize(("variant", "name"), CASES, ids=["-".join(one) for one in CASES])


def sources_of(lengths: tuple[int, ...] = LENGTHS) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [random.integers(4, VOCAB, length) for length in lengths]


@EACH
@pytest.mark.parametrize(("spare", "fused"), [(0, 10_000), (256, 0)], ids=["fused", "products"])
def test_logits_equal_those_of_the_whole_text(
    variant: str, name: str, spare: int, fused: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_rows, "SPARE_PLACES", spare)
    monkeypatch.setattr(cache_layer, "FUSED", fused)
    monkeypatch.setattr(cache_layer, "GROWTH", 3)
    model = model_of(variant, FORMS[name])
    writers: tuple[Writer, Writer] = (
        PlainWriter(model, FORMS[name]),
        writer_of(model, FORMS[name]),
    )
    plain, cached = (writer.begin(sources_of()) for writer in writers)
    torch.testing.assert_close(cached.logits, plain.logits, **CLOSE)
    random = np.random.default_rng(2)
    # One row of each, three of each, beams that change places, texts and single beams that leave.
    orders = (
        None,
        np.repeat(np.arange(6), 3),
        random.permutation(18),
        random.integers(0, 18, 18),
        random.permutation(18)[:11],
        random.integers(0, 11, 9),
    )
    for order in orders:
        for writer, state in zip(writers, (plain, cached), strict=True):
            if order is not None:
                writer.keep(state, torch.from_numpy(order))
        assert cached.texts.tolist() == plain.texts.tolist()
        new = torch.from_numpy(random.integers(4, VOCAB, len(plain.texts)))
        expected, found = (
            writer.step(state, new) for writer, state in zip(writers, (plain, cached), strict=True)
        )
        torch.testing.assert_close(found, expected, **CLOSE)
    writers[1].keep(cached, torch.empty(0, dtype=torch.long))
    assert writers[1].step(cached, torch.empty(0, dtype=torch.long)).shape == (0, VOCAB)


@EACH
def test_a_text_can_be_written_to_the_last_position(variant: str, name: str) -> None:
    model = model_of(variant, FORMS[name])
    writers: tuple[Writer, Writer] = (
        PlainWriter(model, FORMS[name]),
        writer_of(model, FORMS[name]),
    )
    sources = sources_of((9, 5))
    left = writers[1].positions_left(sources[0])
    steps = 18 if left is None else left  # no limit: further than the cache grows at once
    states = [writer.begin(sources) for writer in writers]
    for step in range(steps):
        new = torch.tensor([4 + step % 30, 5 + step % 30])
        logits = [writer.step(one, new) for writer, one in zip(writers, states, strict=True)]
    torch.testing.assert_close(logits[1], logits[0], **CLOSE)
    if left is not None:
        with pytest.raises(TextError, match=f"does not fit the {ROWS} positions"):
            writers[1].step(states[1], new)


@EACH
def test_a_text_alone_equals_the_same_in_a_batch(variant: str, name: str) -> None:
    writer = writer_of(model_of(variant, FORMS[name]), FORMS[name])
    sources = sources_of()
    together = writer.begin(sources)
    alone = [writer.begin([source]) for source in sources]
    for _ in range(4):
        for row, state in enumerate(alone):
            torch.testing.assert_close(state.logits[0], together.logits[row], **CLOSE)
        new = together.logits.argmax(-1)
        writer.step(together, new)
        for row, state in enumerate(alone):
            writer.step(state, new[row : row + 1])
