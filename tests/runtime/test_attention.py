"""The attention of texts through the public door, against the equations and transformers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import randomized, shrunk
from tiny_tasks import SPECIAL, TASK_WORDS, word_tokenizer

import bertsmith
from bertsmith.errors import TextError
from bertsmith.folders.write import save_model
from bertsmith.models.build import build
from bertsmith.models.spec import LayerShape, Spec
from bertsmith.runtime.attention import TextAttention

TEXTS = ["red stone", "large green bird tree house", "river"]


def _saved(path: Path, variant: str, **changes: object) -> Path:
    words = len(SPECIAL) + len(TASK_WORDS)
    spec: Spec = shrunk(variant, vocab_size=words, hidden=32, heads=2, rows=64)
    spec = replace(spec, pad_id=0, **changes)  # type: ignore[arg-type]
    head = "language_model" if variant in ("xlnet", "gpt2") else "masked_lm"
    save_model(randomized(build(variant, spec, heads=[head])), word_tokenizer(), path)
    return path


def _softmax(found: TextAttention, *, causal: bool = False) -> np.ndarray:
    """The weights again, from queries, keys and what positions added."""
    assert found.queries is not None
    assert found.keys is not None
    scores = found.queries @ found.keys.swapaxes(-1, -2)
    if found.added is not None:
        scores = scores + found.added
    tensor = torch.from_numpy(scores * found.queries.shape[-1] ** -0.5)
    if causal:
        size = tensor.shape[-1]
        tensor = tensor.masked_fill(~torch.ones(size, size).tril().bool(), float("-inf"))
    return tensor.softmax(-1).numpy()


@pytest.mark.parametrize("variant", ["bert", "nezha", "xlnet", "albert", "gpt2"])
def test_the_weights_are_the_softmax_of_queries_and_keys(variant: str, tmp_path: Path) -> None:
    with bertsmith.load(_saved(tmp_path / "m", variant), precision="fp32") as model:
        found = model.attention(TEXTS, projections=True)
    for one, text in zip(found, TEXTS, strict=True):
        size = len(text.split()) + 2
        assert len(one.tokens) == size
        assert one.weights.shape == (2, 2, size, size)
        assert one.queries is not None
        assert one.queries.shape == (2, 2, size, 16)
        assert one.values is not None
        np.testing.assert_allclose(one.weights.sum(-1), 1.0, atol=1e-5)
        again = _softmax(one, causal=variant == "gpt2")
        np.testing.assert_allclose(one.weights, again, atol=2e-5)
    has_positions = variant in ("nezha", "xlnet")
    assert [one.added is not None for one in found] == [has_positions] * 3
    assert found[1].tokens[1:3] == ["large", "green"]


def test_weights_of_a_saved_bert_equal_eager_attention_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    path = _saved(tmp_path / "m", "bert")
    theirs = transformers.AutoModel.from_pretrained(path, attn_implementation="eager").eval()
    pairs = [("red stone", "small bird"), *TEXTS]
    with bertsmith.load(path, precision="fp32") as model:
        found = model.attention(pairs)
    for one in found:
        ids = torch.from_numpy(one.encoding.ids.astype(np.int64))[None]
        segments = torch.from_numpy(one.encoding.segments.astype(np.int64))[None]
        with torch.no_grad():
            expected = theirs(ids, token_type_ids=segments, output_attentions=True).attentions
        np.testing.assert_allclose(one.weights, torch.cat(expected).numpy(), atol=2e-5)
    assert found[0].encoding.segments.tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_layers_and_heads_are_chosen_by_number(tmp_path: Path) -> None:
    with bertsmith.load(_saved(tmp_path / "m", "bert"), precision="fp32") as model:
        (whole,) = model.attention(TEXTS[:1])
        (part,) = model.attention(TEXTS[:1], layers=[1], heads=[1, 0])
        assert (part.layers, part.heads) == ((1,), (1, 0))
        np.testing.assert_array_equal(part.weights, whole.weights[1:, ::-1])
        assert part.queries is None
        for wanted, message in (
            ({"layers": [2]}, "layer 2 is not one of 0 to 1"),
            ({"heads": [-1]}, "head -1 is not one of 0 to 1"),
            ({"layers": []}, "at least one layer"),
        ):
            with pytest.raises(TextError, match=message):
                model.attention(TEXTS, **wanted)
        with pytest.raises(TextError, match="give \\[text\\]"):
            model.attention("red stone")


def test_layers_of_different_heads_are_asked_for_one_by_one(tmp_path: Path) -> None:
    shapes = tuple(LayerShape(heads=n, head_width=16, feed_forward=32) for n in (2, 1))
    path = _saved(tmp_path / "m", "bert", shapes=shapes)
    with bertsmith.load(path, precision="fp32") as model:
        with pytest.raises(TextError, match="1 or 2 heads"):
            model.attention(TEXTS)
        assert model.attention(TEXTS, layers=[1])[0].weights.shape == (1, 1, 4, 4)
        assert model.attention(TEXTS, heads=[0])[0].weights.shape == (2, 1, 4, 4)
