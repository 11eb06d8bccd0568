"""The model that learns to write: one head over the vocabulary, with the dropout of training."""

from __future__ import annotations

from bertsmith.errors import ConfigError
from bertsmith.folders.read import LoadedFolder
from bertsmith.models.build import Model
from bertsmith.seq2seq.recipe import WriteRecipe
from bertsmith.training.trainable import trainable

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
    return trainable(source, heads[:1], recipe.encoder, device=device)
