"""Tiny models of the reference library with every weight random, and the same weights in ours."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import transformers
from torch import Tensor

from bertsmith.models import spec_from_config
from bertsmith.models.build import Model, build
from bertsmith.models.names import form_of, ours_state, with_stored_pooler
from bertsmith.nn import Inputs, Layout

LENGTHS = (7, 1, 12, 12, 5)
SHAPE = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 52,
    "max_position_embeddings": 40,
}
DISTIL = {
    "vocab_size": 99,
    "dim": 32,
    "n_layers": 3,
    "n_heads": 4,
    "hidden_dim": 52,
    "max_position_embeddings": 40,
}
CONFIGS = {
    "bert": SHAPE,
    "roberta": SHAPE | {"type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "albert": SHAPE | {"embedding_size": 16},
    "electra": SHAPE | {"embedding_size": 16},
    "distilbert": DISTIL,
    "ernie": SHAPE | {"use_task_id": True, "task_type_vocab_size": 4},
}
GPT = {"vocab_size": 99, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 40}
WRITING = {
    "openai-gpt": GPT,
    "gpt2": GPT,
    "bart": {
        "vocab_size": 99,
        "d_model": 32,
        "encoder_layers": 3,
        "encoder_attention_heads": 4,
        "encoder_ffn_dim": 52,
        "decoder_layers": 2,
        "decoder_attention_heads": 4,
        "decoder_ffn_dim": 36,
        "max_position_embeddings": 40,
    },
}


def reference(family: str, ending: str, **changes: object) -> transformers.PreTrainedModel:
    """A random model such as BertForMaskedLM: biases and norms random too, or a term could hide."""
    config = transformers.AutoConfig.for_model(family, **{**(CONFIGS | WRITING)[family], **changes})
    stem = type(config).__name__.removesuffix("Config")
    torch.manual_seed(7)
    model = getattr(transformers, stem + ending)._from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            norm = "norm" in name.lower() or "ln_" in name
            parameter.normal_(1.0 if norm and "weight" in name else 0.0, 0.2)
    config.architectures = [stem + ending]
    return model.eval()


def ours(theirs: transformers.PreTrainedModel) -> Model:
    """The same model here, by way of its config and its tensor names."""
    stored = theirs.state_dict()
    reading = spec_from_config(theirs.config.to_dict())
    spec = with_stored_pooler(reading.variant, reading.spec, stored)
    match = ours_state(reading.variant, spec, stored, heads=reading.heads)
    assert not match.missing
    assert not match.leftovers
    assert not match.unused
    model = build(reading.variant, spec, heads=reading.heads, empty=True)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            form = form_of(reading.variant, name)
            parameter.copy_(form.to_ours(stored[match.names[name]]))
        for copy, target in match.tied.items():
            assert torch.equal(stored[copy], model.get_parameter(target))
    return model.eval()


def texts(model: Model, lengths: Sequence[int] = LENGTHS) -> tuple[Tensor, Tensor | None, Layout]:
    """Random ids (T,), random segments (T,) where the model knows them, and the layout."""
    random = torch.Generator().manual_seed(11)
    rows = sum(lengths)
    ids = torch.randint(3, model.spec.vocab_size, (rows,), generator=random)
    segments = None
    if model.spec.segments:
        segments = torch.randint(0, model.spec.segments, (rows,), generator=random)
    return ids, segments, Layout.of(lengths)


def inputs_of(ids: Tensor, segments: Tensor | None, layout: Layout) -> Inputs:
    """What `texts` gives as the model reads it."""
    return Inputs(ids, layout, {} if segments is None else {"segments": segments})


def padded(model: Model, ids: Tensor, segments: Tensor | None, layout: Layout) -> dict[str, Tensor]:
    """The same batch as the reference wants it: rectangles and an attention mask."""
    width = max(layout.lengths)
    batch = {
        "input_ids": torch.full((len(layout.lengths), width), model.spec.pad_id),
        "attention_mask": torch.zeros(len(layout.lengths), width, dtype=torch.long),
    }
    if segments is not None:
        batch["token_type_ids"] = torch.zeros(len(layout.lengths), width, dtype=torch.long)
    for text, (start, length) in enumerate(zip(layout.starts, layout.lengths, strict=True)):
        batch["input_ids"][text, :length] = ids[start : start + length]
        batch["attention_mask"][text, :length] = 1
        if segments is not None:
            batch["token_type_ids"][text, :length] = segments[start : start + length]
    return batch


def packed(rectangle: Tensor, layout: Layout) -> Tensor:
    """(B, M, ...) -> (T, ...), the padding dropped."""
    return torch.cat([text[:n] for text, n in zip(rectangle, layout.lengths, strict=True)])
