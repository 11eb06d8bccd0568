"""The model that learns to write: one head over the vocabulary, with the dropout of training."""

from __future__ import annotations

from dataclasses import replace

from bertsmith.errors import ConfigError
from bertsmith.folders.read import LoadedFolder
from bertsmith.models.build import Model, build
from bertsmith.models.surgery import copy_weights
from bertsmith.sentences.train.model import USUAL_DROPOUT
from bertsmith.seq2seq.recipe import WriteRecipe

KINDS = ("masked_lm", "language_model")


def build_writing_model(recipe: WriteRecipe, loaded: LoadedFolder, *, device: str = "cpu") -> Model:
    """The module to train, on the CPU still."""
    source = loaded.model
    heads = [head for head in source.head_specs if head.kind in KINDS]
    if not heads:
        own = ", ".join(head.kind for head in source.head_specs) or "none"
        raise ConfigError(
            f"{loaded.folder.path} has no head over the vocabulary (its heads: {own}), so it "
            "cannot learn to write; give the folder of a pre-trained model, or pre-train one with "
            "`bertsmith pretrain`"
        )
    wanted = recipe.encoder
    attention = wanted.attention_dropout
    if attention is None:
        attention = 0.0 if device == "cpu" else source.spec.attention_dropout
    dropout = wanted.dropout if wanted.dropout is not None else source.spec.dropout or USUAL_DROPOUT
    spec = replace(source.spec, dropout=dropout, attention_dropout=attention)
    model = build(source.variant, spec, heads=heads[:1], empty=True)
    copied = copy_weights(source, model)
    missing = [name for name, _ in model.named_parameters() if name not in copied]
    if missing:
        raise ConfigError(f"the model has no {missing[0]}; it cannot be trained")
    return model
