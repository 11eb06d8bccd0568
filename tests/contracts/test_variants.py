"""What every variant promises, over every entry of the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from variant_cases import LENGTHS, batch, part_of, random_model, tiny

import bertsmith.models
from bertsmith.errors import ConfigError, TextError
from bertsmith.models import VARIANTS, Head, config_from_spec, spec_from_config
from bertsmith.models.build import build
from bertsmith.models.config.keys import expressible
from bertsmith.models.names import (
    form_of,
    from_published,
    ours_state,
    published_state,
    tensor_names,
)
from bertsmith.models.tensor_forms import PLAIN, Joined
from bertsmith.nn import (
    Causal,
    Dense,
    Full,
    Inputs,
    Layout,
    Prefix,
    Sees,
    Want,
    attention_plan,
    real,
    visibility,
)
from bertsmith.nn.relative.encoder import RelativeEncoder

CLOSE = {"rtol": 0.0, "atol": 1e-5}
ALL = pytest.mark.parametrize("variant", VARIANTS)
SEES = (
    Full(),
    Causal(),
    Prefix((2, 9, 0, 1, 4)),
    Dense(torch.rand(5, 9, 9, generator=torch.Generator().manual_seed(7)) < 0.6),
)
VOCABULARY = ("masked_lm", "language_model")  # a variant has one of them
PRETRAINED = ("masked_lm", "next_sentence", "sentence_order", "replaced_token", "sequence")
SHARINGS = ("none", "all", "attention", "feed_forward")


@pytest.fixture(params=[0, 24], ids=["runs", "rectangles"])
def padding(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Both ways of regrouping: only equal lengths together, or padded rectangles."""
    monkeypatch.setitem(attention_plan.SPARE, "cpu", request.param)
    return request.param


@ALL
@torch.no_grad()
def test_neighbors_in_a_batch_change_nothing(variant: str, padding: int) -> None:
    model = random_model(variant)
    inputs = batch(model)
    together = model(inputs).hidden
    assert together.shape == (sum(LENGTHS), model.spec.hidden)
    for text, start in enumerate(inputs.layout.starts):
        alone = model(part_of(inputs, text)).hidden
        torch.testing.assert_close(together[start : start + len(alone)], alone, **CLOSE)


@ALL
def test_every_weight_gets_a_finite_gradient(variant: str, padding: int) -> None:
    kinds = tuple(VARIANTS[variant].heads)
    model = random_model(variant, heads=kinds).train()
    inputs = batch(model)
    inputs.ids[: model.spec.vocab_size] = torch.arange(len(inputs.ids))
    torch.manual_seed(0)
    total = torch.zeros(())
    for kind in kinds:
        by_rows = model.reads(kind) == "rows"
        rows = model(inputs).hidden if by_rows else model.text_rows(kind, inputs)
        logits = model.logits(kind, rows)
        total = total + (logits * torch.randn_like(logits)).sum()
    if model.decoder is not None:
        rows = model.decode(inputs, model(inputs).hidden, inputs.layout)
        total = total + (rows * torch.randn_like(rows)).sum()
    if isinstance(model.encoder, RelativeEncoder):
        rows = model.encoder(inputs, queries=torch.tensor([2, 5, 20])).queried
        total = total + (rows * torch.randn_like(rows)).sum()
    total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@ALL
@torch.no_grad()
def test_fast_and_plain_attention_agree(variant: str, padding: int) -> None:
    model = random_model(variant)
    inputs = batch(model)
    fast = model(inputs).hidden
    plain = model(inputs, want=Want(attention=True))
    ones = torch.ones(model.spec.layers, model.spec.heads)
    masked = model(inputs, head_mask=ones).hidden
    torch.testing.assert_close(fast, plain.hidden, **CLOSE)
    torch.testing.assert_close(fast, masked, **CLOSE)
    for square in plain.attention:
        inside = real(LENGTHS)[:, None, :].expand(-1, model.spec.heads, -1)
        torch.testing.assert_close(square.sum(-1), inside.float(), **CLOSE)


@ALL
@pytest.mark.parametrize("rows", [[0, 4, 13, 22, 23], [28, 3, 3, 13, 5], [22], []])
@pytest.mark.parametrize("sees", SEES, ids=lambda sees: type(sees).__name__)
@torch.no_grad()
def test_some_rows_equal_those_rows_of_all(
    variant: str, rows: list[int], sees: Sees, padding: int
) -> None:
    model = random_model(variant)
    inputs = batch(model, sees=sees)
    wanted = torch.tensor(rows, dtype=torch.long)
    full = model(inputs).hidden[wanted]
    some = model(inputs, rows=wanted).hidden
    torch.testing.assert_close(some, full, **CLOSE)
    kept = model(inputs, rows=wanted, want=Want(layers=True))
    torch.testing.assert_close(kept.hidden, full, **CLOSE)
    assert kept.layers[-1].shape[0] == sum(LENGTHS)


@ALL
@torch.no_grad()
def test_head_masking_equals_zeroed_columns_of_the_output(variant: str) -> None:
    spec = replace(tiny(variant), sharing="none")
    model = random_model(variant, spec)
    inputs = batch(model)
    mask = torch.ones(3, 4)
    mask[1, 2] = 0.0
    masked = model(inputs, head_mask=mask).hidden
    untouched = model(inputs).hidden
    width = spec.hidden // spec.heads
    model.encoder.blocks[1].attention.output.weight[:, 2 * width : 3 * width] = 0.0
    torch.testing.assert_close(masked, model(inputs).hidden, **CLOSE)
    assert (masked - untouched).abs().max() > 1e-3


@ALL
@pytest.mark.parametrize("sees", SEES, ids=lambda sees: type(sees).__name__)
@torch.no_grad()
def test_visibility_is_the_same_as_a_matrix_fast_and_plain_together_and_alone(
    variant: str, sees: Sees, padding: int
) -> None:
    model = random_model(variant)
    inputs = batch(model, sees=sees)
    hidden = model(inputs).hidden
    torch.testing.assert_close(hidden, model(inputs, want=Want(attention=True)).hidden, **CLOSE)
    meant = Causal() if sees == Full() and model.spec.sees == "before" else sees
    matrix = batch(model, sees=Dense(visibility(meant, LENGTHS)))
    torch.testing.assert_close(hidden, model(matrix).hidden, **CLOSE)
    for text, start in enumerate(inputs.layout.starts):
        alone = model(part_of(inputs, text)).hidden
        torch.testing.assert_close(hidden[start : start + len(alone)], alone, **CLOSE)


@ALL
@torch.no_grad()
def test_causal_rows_do_not_see_what_comes_after(variant: str, padding: int) -> None:
    model = random_model(variant)
    inputs = batch(model, sees=Causal())
    ids = inputs.ids.clone()
    ids[8] = (ids[8] + 1) % model.spec.vocab_size  # the fifth token of the second text
    other = model(replace(inputs, ids=ids)).hidden
    changed = (other - model(inputs).hidden).abs().amax(1) > 1e-4
    assert changed.nonzero().flatten().tolist() == [8, 9, 10, 11, 12]


@ALL
def test_rows_that_see_nothing_stay_finite_with_finite_gradients(
    variant: str, padding: int
) -> None:
    model = random_model(variant)
    visible = visibility(Causal(), LENGTHS)
    visible[1, 3] = False
    visible[4] = False
    inputs = batch(model, sees=Dense(visible))
    fast = model(inputs)
    plain = model(inputs, want=Want(attention=True))
    assert fast.hidden.isfinite().all()
    torch.testing.assert_close(fast.hidden, plain.hidden, **CLOSE)
    assert plain.attention[0][1, :, 3].abs().sum() == 0
    for hidden in (fast.hidden, plain.hidden):
        model.zero_grad()
        hidden.square().sum().backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@ALL
@pytest.mark.parametrize("lengths", [(), (0,), (1,), (0, 3, 0), (1, 1, 1)])
@torch.no_grad()
def test_empty_and_tiny_batches_work(variant: str, lengths: tuple[int, ...], padding: int) -> None:
    model = random_model(variant)
    inputs = batch(model, lengths)
    fast = model(inputs).hidden
    plain = model(inputs, want=Want(attention=True)).hidden
    assert fast.shape == (sum(lengths), model.spec.hidden)
    torch.testing.assert_close(fast, plain, **CLOSE)


@ALL
def test_double_precision_works_and_agrees(variant: str) -> None:
    model = random_model(variant)
    inputs = batch(model)
    single = model(inputs).hidden
    double = model.double()(inputs).hidden
    assert double.dtype == torch.float64
    torch.testing.assert_close(single.double(), double, rtol=0, atol=1e-4)


@ALL
def test_dropout_is_random_in_training_and_absent_in_evaluation(variant: str) -> None:
    model = random_model(variant).train()
    inputs = batch(model)
    first, second = (model(inputs).hidden for _ in range(2))
    assert not torch.equal(first, second)
    model.eval()
    first, second = (model(inputs).hidden for _ in range(2))
    assert torch.equal(first, second)


@ALL
@pytest.mark.parametrize("attention", [True, False])
def test_attention_dropout_alone_is_random_on_both_paths(variant: str, attention: bool) -> None:
    spec = replace(tiny(variant), dropout=0.0, attention_dropout=0.5)
    model = random_model(variant, spec).train()
    inputs = batch(model)
    want = Want(attention=attention)
    first, second = (model(inputs, want=want) for _ in range(2))
    assert not torch.equal(first.hidden, second.hidden)
    if attention:  # what is shown is the softmax, not what dropout left of it
        torch.testing.assert_close(first.attention[0], second.attention[0], **CLOSE)


@ALL
@pytest.mark.parametrize("kinds", [(), VOCABULARY, ("sequence",), ("token",), PRETRAINED])
@pytest.mark.parametrize("sharing", SHARINGS)
def test_names_go_there_and_back(variant: str, kinds: tuple[str, ...], sharing: str) -> None:
    spec = replace(tiny(variant), sharing=sharing)
    kinds = tuple(kind for kind in kinds if kind in VARIANTS[variant].heads)
    model = random_model(variant, spec, heads=kinds)
    state = published_state(model)
    ours = [name for name, _ in model.named_parameters()]
    published = expressible(variant, spec)
    forms = {name: form_of(variant, name) if published else PLAIN for name in ours}
    later = [form for form in forms.values() if isinstance(form, Joined) and form.index > 0]
    assert len(state) == len(ours) - len(later)
    match = ours_state(variant, spec, state, heads=kinds)
    assert (match.missing, match.leftovers, match.unused, match.tied) == ((), (), (), {})
    for name, parameter in model.named_parameters():
        assert torch.equal(forms[name].to_ours(state[match.names[name]]), parameter)
    if published:
        for name, stored in tensor_names(variant, spec, kinds).items():
            back = from_published(variant, stored, heads=kinds)
            assert back == name or forms[name] in later


@ALL
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("kinds", [(), VOCABULARY, ("token",), (*VOCABULARY, "sequence")])
def test_configs_go_there_and_back(variant: str, sharing: str, kinds: tuple[str, ...]) -> None:
    spec = replace(tiny(variant), sharing=sharing)
    heads = tuple(Head(kind=kind) for kind in kinds if kind in VARIANTS[variant].heads)
    reading = spec_from_config(config_from_spec(variant, spec, heads=heads))
    assert reading.variant.name == variant
    assert replace(reading.spec, pooler=spec.pooler) == spec
    assert reading.heads == heads
    assert reading.unknown_keys == ()


@ALL
def test_published_sizes_go_there_and_back(variant: str) -> None:
    for spec in VARIANTS[variant].sizes.values():
        assert expressible(variant, spec)
        reading = spec_from_config(config_from_spec(variant, spec))
        assert (reading.variant.name, reading.spec) == (variant, spec)
    assert VARIANTS[variant].spec in VARIANTS[variant].sizes.values()


@ALL
def test_texts_beyond_the_positions_are_refused_or_work(variant: str) -> None:
    model = random_model(variant)
    ids = torch.zeros(31, dtype=torch.long)
    if model.spec.longest is None:
        assert model(Inputs(ids, Layout.of([31]))).hidden.isfinite().all()
    else:
        with pytest.raises(TextError, match="31 tokens does not fit the 30 positions"):
            model(Inputs(ids, Layout.of([31])))


@ALL
def test_the_same_seed_builds_the_same_weights(variant: str) -> None:
    first, second = (
        build(variant, tiny(variant), generator=torch.Generator().manual_seed(1)) for _ in range(2)
    )
    for (name, one), two in zip(first.named_parameters(), second.parameters(), strict=True):
        assert torch.equal(one, two)
        if name.endswith(".bias"):
            assert not one.any()
        elif name.endswith("norm.weight"):
            assert (one == 1).all()
        else:
            assert 0.012 < float(one.detach().std()) < 0.028


WITH_DECODER = [name for name, variant in VARIANTS.items() if variant.spec.decoder is not None]
DECODED = pytest.mark.parametrize("variant", WITH_DECODER)


@DECODED
@torch.no_grad()
def test_neighbors_and_chosen_rows_change_nothing_in_a_decoder(variant: str, padding: int) -> None:
    model = random_model(variant)
    source, target = batch(model), batch(model, (2, 5, 7, 3, 4))
    memory = model(source).hidden
    together = model.decode(target, memory, source.layout)
    for text, start in enumerate(target.layout.starts):
        mine, alone = part_of(source, text), part_of(target, text)
        rows = model.decode(alone, model(mine).hidden, mine.layout)
        torch.testing.assert_close(together[start : start + len(rows)], rows, **CLOSE)
    wanted = torch.tensor([20, 3, 3, 0])
    some = model.decode(target, memory, source.layout, rows=wanted)
    torch.testing.assert_close(some, together[wanted], **CLOSE)


@DECODED
@torch.no_grad()
def test_decoders_see_what_stands_before_and_the_memory_they_may_see(variant: str) -> None:
    model = random_model(variant)
    source, target = batch(model, (6, 9)), batch(model, (5, 4))
    memory = model(source).hidden
    before = model.decode(target, memory, source.layout)
    ids = target.ids.clone()
    ids[2] = (ids[2] + 1) % model.spec.vocab_size
    changed = model.decode(replace(target, ids=ids), memory, source.layout) - before
    assert (changed.abs().amax(1) > 1e-4).tolist() == [False, False, *[True] * 3, *[False] * 4]
    visible = torch.ones(2, 5, 9, dtype=torch.bool)
    visible[0, :, 3] = False
    hidden = model.decode(target, memory, source.layout, sees_memory=Dense(visible))
    memory[3] += 1.0
    again = model.decode(target, memory, source.layout, sees_memory=Dense(visible))
    torch.testing.assert_close(hidden, again, **CLOSE)
    assert (before - hidden).abs().max() > 1e-4


def test_every_variant_file_is_in_the_table() -> None:
    folder = Path(bertsmith.models.__file__).parent / "variants"
    files = {path.stem for path in folder.glob("*.py") if "\nVARIANT = " in path.read_text("utf-8")}
    assert files == set(VARIANTS)
    assert all(name == data.name for name, data in VARIANTS.items())


def test_two_heads_with_one_published_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="both published as classifier"):
        tensor_names("bert", tiny("bert"), ("sequence", "token"))


def test_a_pooled_head_without_a_pooler_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a pooler"):
        build("bert", replace(tiny("bert"), pooler=False), heads=["next_sentence"])
