"""A recipe with what it leaves to the encoder filled in, and what the encoder cannot do refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bertsmith.errors import ConfigError
from bertsmith.folders.kinds import abilities_at
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe

WORDS = "an encoder of words (ELMo, word vectors)"
REFUSED: dict[str, Callable[[FinetuneRecipe], Any]] = {
    "encoder.special_tokens": lambda recipe: recipe.encoder.special_tokens,
    "encoder.dropout": lambda recipe: recipe.encoder.dropout,
    "encoder.attention_dropout": lambda recipe: recipe.encoder.attention_dropout,
    "regularization.token_dropout": lambda recipe: recipe.regularization.token_dropout,
    "regularization.r_drop": lambda recipe: recipe.regularization.r_drop,
    "head.wide": lambda recipe: recipe.head.wide,
    "knowledge": lambda recipe: recipe.knowledge,
    "channel": lambda recipe: recipe.channel,
    "optimizer.layer_decay": lambda recipe: recipe.optimizer.layer_decay != 1.0,
}
"""Settings that an encoder of words has no use for."""


def fit_recipe(recipe: FinetuneRecipe, model: str) -> FinetuneRecipe:
    """The recipe for an encoder, given by path or name; done twice it is the same."""
    words = "words" in abilities_at(model)
    if words:
        _check_words(recipe)
    vector, encoder = recipe.vector, recipe.encoder
    if vector.layers == "auto":
        vector = vector.model_copy(update={"layers": "mix" if words else "last"})
    if words and vector.pooling == "auto":
        vector = vector.model_copy(update={"pooling": "mean"})
    if encoder.frozen is None:
        encoder = encoder.model_copy(update={"frozen": words})
    return recipe.model_copy(update={"vector": vector, "encoder": encoder})


def _check_words(recipe: FinetuneRecipe) -> None:
    if recipe.encoder.frozen is False:
        raise ConfigError(
            f"encoder.frozen = false: {WORDS} stays as it is, and only the mix of its layers and "
            "the head learn; leave the setting out, or train the encoder itself with "
            "`bertsmith lm train --kind elmo`"
        )
    for name, read in REFUSED.items():
        if read(recipe):
            raise ConfigError(f"{name} is not for {WORDS}; leave it out")
    if recipe.vector.pooling == "published":
        raise ConfigError(
            f"vector.pooling = published: {WORDS} has no published head; set it to mean, max, "
            "attention, first or last"
        )
