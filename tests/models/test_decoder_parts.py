"""Parts of models that write: causal rows, decoders, heads over the vocabulary."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from bertsmith.errors import ConfigError
from bertsmith.folders.vocabulary_growth import grow_model, grow_tokenizer
from bertsmith.models import VARIANTS, Spec, config_from_spec, spec_from_config
from bertsmith.models.build import Model, build
from bertsmith.models.spec import DecoderSpec
from bertsmith.nn import Causal, Inputs, Layout
from bertsmith.nn.heads import LanguageModelHead
from bertsmith.nn.vocabulary_loss import vocabulary_loss
from bertsmith.objectives.masked_lm import token_loss
from bertsmith.runtime.engines.native import why_not
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.optimizers.optimizers import depths

TINY = replace(
    VARIANTS["bert"].spec,
    vocab_size=40,
    hidden=32,
    embedding=32,
    layers=2,
    heads=2,
    feed_forward=64,
)
WRITER = replace(TINY, decoder=DecoderSpec(layers=3, heads=4, feed_forward=48, start=5))
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"]
CLOSE = {"rtol": 0.0, "atol": 1e-5}


def _model(spec: Spec) -> Model:
    random = torch.Generator().manual_seed(0)
    model = build("bert", spec, heads=["masked_lm"], generator=random).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.3, generator=random)
    return model


def _inputs(*lengths: int) -> Inputs:
    ids = torch.randint(0, 40, (sum(lengths),), generator=torch.Generator().manual_seed(1))
    return Inputs(ids, Layout.of(lengths))


@torch.no_grad()
def test_a_spec_that_sees_before_reads_any_full_layout_as_causal() -> None:
    causal, full = _model(replace(TINY, sees="before")), _model(TINY)
    inputs = _inputs(6, 3)
    told = replace(inputs, layout=replace(inputs.layout, sees=Causal()))
    assert torch.equal(causal(inputs).hidden, full(told).hidden)
    assert torch.equal(causal.encoder(inputs).hidden, full(told).hidden)  # as engines call it
    assert not torch.allclose(causal(inputs).hidden, full(inputs).hidden)


@torch.no_grad()
def test_a_decoder_shares_the_token_table_and_reads_its_memory() -> None:
    model = _model(WRITER)
    assert model.decoder is not None
    assert model.decoder.embeddings.tokens is model.encoder.embeddings.tokens
    assert model.decoder.embeddings.positions is not model.encoder.embeddings.positions
    source, target = _inputs(7, 4), _inputs(3, 5)
    memory = model(source).hidden
    rows = model.decode(target, memory, source.layout)
    assert rows.shape == (8, 32)
    some = model.decode(target, memory, source.layout, rows=torch.tensor([2, 7]))
    torch.testing.assert_close(some, rows[[2, 7]], **CLOSE)
    memory[8] += 1.0  # of the second text
    changed = (model.decode(target, memory, source.layout) - rows).abs().amax(1) > 1e-4
    assert changed.tolist() == [False] * 3 + [True] * 5


def test_a_model_without_a_decoder_says_so() -> None:
    with pytest.raises(ConfigError, match="has no decoder"):
        _model(TINY).decode(_inputs(2), None, None)


@torch.no_grad()
def test_scaled_embeddings_without_a_norm_are_the_sums_written_out() -> None:
    model = _model(replace(TINY, embedding_norm=False, embedding_scale=True))
    parts, inputs = model.encoder.embeddings, _inputs(4)
    expected = parts.tokens(inputs.ids) * 32**0.5 + parts.positions.weight[:4]
    torch.testing.assert_close(parts(inputs), expected + parts.segments.weight[0], **CLOSE)


def test_one_loss_serves_both_heads_over_the_vocabulary() -> None:
    model = _model(TINY)
    rows, targets = torch.randn(5, 32), torch.arange(5)
    loss, score = token_loss(model, rows, targets)
    expected = F.cross_entropy(model.logits("masked_lm", rows), targets, reduction="sum")
    torch.testing.assert_close(loss.sum, expected)
    assert score.count == 5
    del model.heads["masked_lm"]
    with pytest.raises(ConfigError, match=r"no head over the vocabulary .* none at all"):
        _ = model.vocabulary_head


def test_a_head_without_a_bias_has_the_loss_of_a_bias_of_zeros() -> None:
    head = LanguageModelHead(40, bias=False)
    assert head.bias is None
    assert not list(head.parameters())
    tokens = torch.randn(40, 32, requires_grad=True)
    rows = torch.randn(6, 32, requires_grad=True)
    targets = torch.arange(6)
    loss, _ = vocabulary_loss(head.project(rows), tokens, head.bias, targets)
    loss.sum.backward()
    plain = F.cross_entropy(head(rows, tokens), targets, reduction="sum")
    expected = torch.autograd.grad(plain, [rows, tokens])
    torch.testing.assert_close(loss.sum, plain)
    torch.testing.assert_close(rows.grad, expected[0])
    torch.testing.assert_close(tokens.grad, expected[1])


@pytest.mark.parametrize(
    "spec",
    [
        WRITER,
        replace(WRITER, embedding_scale=True),
        replace(TINY, embedding_norm=False, norm="before", sees="before"),
    ],
)
def test_our_own_config_holds_every_field(spec: Spec) -> None:
    reading = spec_from_config(config_from_spec("albert", spec))
    assert reading.model_type == "bertsmith"
    assert reading.spec == spec


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sees": "before"}, "causal attention"),
        ({"norm": "before"}, "norms before its parts"),
        ({"embedding_norm": False}, "no norm over its embeddings"),
        ({"embedding_scale": True}, "scaled embeddings"),
    ],
)
def test_the_native_kernel_refuses_what_it_cannot_run(
    change: dict[str, object], reason: str
) -> None:
    assert why_not(replace(TINY, heads=1)) == ""
    assert reason in why_not(replace(TINY, heads=1, **change))


@pytest.mark.parametrize(
    ("change", "message"),
    [({"layers": 0}, "decoder layers must be at least 1"), ({"heads": 5}, "5 decoder heads")],
)
def test_impossible_decoders_are_refused(change: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(WRITER, decoder=replace(WRITER.decoder, **change))


def test_decoders_of_hostile_sizes_are_refused() -> None:
    config = config_from_spec("albert", WRITER)
    config["bertsmith"]["spec"]["decoder"] |= {"layers": 2**30}
    with pytest.raises(ConfigError, match="parameters; at most"):
        spec_from_config(config)
    config["bertsmith"]["spec"]["decoder"] = {"layers": 3}
    with pytest.raises(ConfigError, match="a decoder needs exactly"):
        spec_from_config(config)


def test_a_start_token_outside_of_the_vocabulary_is_refused() -> None:
    with pytest.raises(ConfigError, match="start token 40 is outside of the vocabulary of 40"):
        replace(WRITER, decoder=replace(WRITER.decoder, start=40))


def test_new_words_get_a_row_and_a_bias_of_their_pieces() -> None:
    spec = replace(
        VARIANTS["bart"].sizes["tiny"],
        vocab_size=len(TOKENS),
        decoder=DecoderSpec(layers=1, heads=2, feed_forward=8),
    )
    model = build("bart", spec, heads=["language_model"])
    torch.nn.init.normal_(model.vocabulary_head.bias)
    old = Tokenizer.from_files({"vocab.txt": "\n".join(TOKENS).encode()})
    new = grow_tokenizer(old, ["ab"])
    grown = grow_model(model, old, new)
    assert grown.decoder.embeddings.tokens is grown.encoder.embeddings.tokens
    for after, before in (
        (grown.encoder.embeddings.tokens.weight, model.encoder.embeddings.tokens.weight),
        (grown.vocabulary_head.bias, model.vocabulary_head.bias),
    ):
        assert torch.equal(after[: len(TOKENS)], before)
        torch.testing.assert_close(after[len(TOKENS)], before[[5, 6]].mean(0))


@pytest.mark.parametrize("variant", ["gpt2", "bart"])
def test_depths_of_layer_decay_count_the_decoder_above_the_encoder(variant: str) -> None:
    spec = VARIANTS[variant].sizes["tiny"]
    model = build(variant, spec, heads=["language_model"], device="meta")
    depth = depths(name for name, _ in model.named_parameters())
    top = 2 if spec.decoder else 0
    assert depth["encoder.blocks.1.attention.query.weight"] == top + 1
    assert depth["encoder.embeddings.tokens.weight"] == top + 3
    if spec.decoder is not None:
        assert depth["decoder.blocks.1.cross_attention.query.weight"] == 1
        assert depth["decoder.blocks.0.block.attention.query.weight"] == 2
