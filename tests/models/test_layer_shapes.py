"""Layers of different shapes: built, trained, stored, generated from, and refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_tasks import SPECIAL, TASK_WORDS, word_tokenizer

from bertsmith.errors import BertsmithError, ConfigError
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models.build import Model, build
from bertsmith.models.config.keys import config_from_spec, expressible, spec_from_config
from bertsmith.models.names import ours_state, published_state
from bertsmith.models.positions import FunctionalRelative
from bertsmith.models.spec import LayerShape, Spec
from bertsmith.models.variants import find
from bertsmith.nn.encoder import Want
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import Causal, Layout
from bertsmith.runtime.engines.native.engine import why_not

SHAPES = (
    LayerShape(heads=2, head_width=16, feed_forward=64),
    LayerShape(heads=1, head_width=16, feed_forward=32),
)
SPEC = Spec(
    vocab_size=40,
    hidden=32,
    embedding=32,
    layers=2,
    heads=2,
    feed_forward=64,
    dropout=0.0,
    attention_dropout=0.0,
    shapes=SHAPES,
)
IDS = np.array([2, 7, 8, 9, 3, 2, 11, 3])


def _inputs() -> Inputs:
    return Inputs.of(IDS, [5, 3])


def _model(spec: Spec = SPEC, variant: str = "bert", head: str = "masked_lm") -> Model:
    return build(variant, spec, heads=[head], generator=torch.Generator().manual_seed(3)).eval()


def test_a_block_is_as_wide_as_its_shape_says() -> None:
    model = _model()
    state = {name: tuple(one.shape) for name, one in model.named_parameters()}

    assert state["encoder.blocks.0.attention.query.weight"] == (32, 32)
    assert state["encoder.blocks.1.attention.query.weight"] == (16, 32)
    assert state["encoder.blocks.1.attention.output.weight"] == (32, 16)
    assert state["encoder.blocks.0.feed_forward.up.weight"] == (64, 32)
    assert state["encoder.blocks.1.feed_forward.down.weight"] == (32, 32)
    count = sum(model.encoder.blocks[1].get_parameter(name).numel() for name in _MATRICES)
    assert SPEC.products[1] == count


_MATRICES = (
    *(f"attention.{name}.weight" for name in ("query", "key", "value", "output")),
    *(f"feed_forward.{name}.weight" for name in ("up", "down")),
)


def test_shapes_that_are_uniform_are_kept_as_the_numbers_of_all_blocks() -> None:
    one = LayerShape(heads=4, head_width=8, feed_forward=48)
    spec = replace(SPEC, shapes=(one, one))

    assert spec == replace(SPEC, heads=4, feed_forward=48, shapes=())
    assert "shapes" not in spec.to_json()
    assert expressible("bert", spec)


def test_narrower_heads_in_all_blocks_are_not_a_uniform_model() -> None:
    one = LayerShape(heads=1, head_width=16, feed_forward=64)
    spec = replace(SPEC, shapes=(one, one))

    assert spec.shapes == (one, one)
    assert _model(spec)(_inputs()).hidden.shape == (8, 32)


def test_the_config_says_the_shapes_and_they_are_read_back() -> None:
    config = config_from_spec("bert", SPEC)
    reading = spec_from_config(config)

    assert config["model_type"] == "bertsmith"  # no published config can say it
    assert reading.spec == SPEC
    section = config["bertsmith"]
    assert isinstance(section, dict)
    section["spec"]["shapes"][0]["width"] = 3
    with pytest.raises(ConfigError, match="exactly heads, head_width, feed_forward"):
        spec_from_config(config)


def test_a_model_trains_a_step_and_comes_back_from_its_folder(tmp_path: Path) -> None:
    model = _model(replace(SPEC, vocab_size=len(SPECIAL) + len(TASK_WORDS))).train()
    before = model.encoder.blocks[1].get_parameter("attention.query.weight").detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    logits = model.logits("masked_lm", model(_inputs()).hidden)
    torch.nn.functional.cross_entropy(logits, torch.from_numpy(IDS)).backward()
    optimizer.step()
    assert not torch.equal(before, model.encoder.blocks[1].get_parameter("attention.query.weight"))
    model.eval()
    save_model(model, word_tokenizer(), tmp_path / "m")
    loaded = load_model(tmp_path / "m").model

    assert loaded.spec.shapes == SHAPES
    with torch.no_grad():
        own, again = model(_inputs()).hidden, loaded(_inputs()).hidden
        assert torch.equal(own, again)
        assert torch.equal(model.logits("masked_lm", own), loaded.logits("masked_lm", again))


def test_transformers_refuses_the_folder_by_its_type(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    (tmp_path / "config.json").write_text(json.dumps(config_from_spec("bert", SPEC)))
    with pytest.raises(ValueError, match="bertsmith"):
        transformers.AutoConfig.from_pretrained(tmp_path)


def test_the_native_kernel_says_why_it_cannot() -> None:
    wide = (
        LayerShape(heads=2, head_width=32, feed_forward=64),
        LayerShape(heads=1, head_width=32, feed_forward=32),
    )
    spec = replace(SPEC, hidden=64, embedding=64, shapes=wide)

    assert why_not(replace(spec, shapes=())) == ""
    assert why_not(spec) == "it has layers of different shapes"


def test_a_head_mask_has_the_columns_of_the_block_with_the_most_heads() -> None:
    model = _model()
    with torch.no_grad():
        whole = model(_inputs()).hidden
        kept = model(_inputs(), head_mask=torch.tensor([[1.0, 1.0], [1.0, 0.0]])).hidden
        hidden = model(_inputs(), head_mask=torch.tensor([[1.0, 1.0], [0.0, 1.0]])).hidden
    assert torch.allclose(whole, kept, atol=1e-6)  # the second block has no second head
    assert not torch.allclose(whole, hidden, atol=1e-3)
    with pytest.raises(BertsmithError, match=r"\(2, 2\)"):
        model(_inputs(), head_mask=torch.ones(2, 1))


def test_attention_has_as_many_squares_as_a_block_has_heads() -> None:
    attention = _model()(_inputs(), want=Want(attention=True)).attention
    assert attention is not None
    assert [tuple(square.shape) for square in attention] == [(2, 2, 5, 5), (2, 1, 5, 5)]


@pytest.mark.parametrize("variant", ["gpt2", "nezha"])
def test_a_cache_continues_texts_of_a_model_with_shapes(variant: str) -> None:
    own = find(variant).spec
    spec = replace(
        own,
        vocab_size=40,
        hidden=32,
        embedding=32,
        layers=2,
        heads=2,
        feed_forward=64,
        sees="before",
        pooler=False,
        dropout=0.0,
        attention_dropout=0.0,
        shapes=SHAPES,
    )
    head = "language_model" if variant == "gpt2" else "masked_lm"
    model = _model(spec, variant, head)
    texts = [[5, 6, 7, 8, 9], [3, 4, 5]]
    flat = torch.tensor([token for text in texts for token in text])
    with torch.no_grad():
        whole = model(Inputs(flat, Layout.of([5, 3], sees=Causal()))).hidden
        cache = model.encoder.cache()
        heads = [text[:-2] for text in texts]
        first = torch.tensor([token for text in heads for token in text])
        model(Inputs(first, Layout.of([3, 1], sees=Causal())), cache=cache)
        for step in (-2, -1):
            new = torch.tensor([text[step] for text in texts])
            rows = model(Inputs(new, cache.next_layout()), cache=cache).hidden
            cache.advance()
    assert torch.allclose(rows, whole[[4, 7]], atol=1e-5)


def test_positions_inside_attention_need_heads_of_one_width() -> None:
    mixed = (SHAPES[0], LayerShape(heads=2, head_width=8, feed_forward=64))
    spec = replace(SPEC, positions=FunctionalRelative(), shapes=mixed)
    with pytest.raises(ConfigError, match="heads of one width in all layers, not 8, 16"):
        build("nezha", spec)


def test_relative_attention_has_shapes_as_well() -> None:
    spec = replace(
        find("xlnet").spec,
        vocab_size=40,
        hidden=32,
        embedding=32,
        layers=2,
        heads=2,
        feed_forward=64,
        shapes=SHAPES,
    )
    model = _model(spec, "xlnet", "language_model")

    assert model.encoder.blocks[1].get_parameter("attention.content_bias").shape == (1, 16)
    state = published_state(model)
    assert ours_state("xlnet", spec, state, heads=model.head_specs).missing == ()
    assert model(_inputs()).hidden.shape == (8, 32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": 3}, "2 shapes for 3 layers"),
        ({"sharing": "all"}, "cannot share weights"),
    ],
)
def test_shapes_that_fit_no_model_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(SPEC, **change)  # type: ignore[arg-type]


def test_a_shape_has_at_least_one_head() -> None:
    with pytest.raises(ConfigError, match="layer's heads must be at least 1"):
        LayerShape(heads=0, head_width=16, feed_forward=4)
