"""Settings of word2vec."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertsmith.config import Settings
from bertsmith.setting import MODEL, TRAINING, Setting

WordModel = Literal["skipgram", "cbow"]
WordLoss = Literal["negative", "hierarchical", "nce"]
LEAST_SHARE = 1e-4  # of the starting rate, below which it does not fall
_RATES = {"skipgram": 0.025, "cbow": 0.05}
_NEGATIVES = 5


class Word2VecSettings(Settings):
    """What is learned, and how.

    skipgram: the vector of each neighbor predicts the word in the middle; cbow: the mean of the
    neighbors' vectors does. The loss is negative sampling, hierarchical softmax over a Huffman
    tree, or NCE, which is negative sampling with scores shifted by -log(k p(word)).
    """

    model: Annotated[
        WordModel,
        Setting(
            "Kind of model: skipgram, each neighbor predicts the middle word, better for rare "
            "words; cbow, the mean of the neighbors does, faster.",
            MODEL,
            flag="--kind",
        ),
    ] = "skipgram"
    loss: Annotated[
        WordLoss,
        Setting(
            "negative: against random words; hierarchical: along a Huffman tree; nce: negative "
            "with scores that estimate probabilities.",
            MODEL,
        ),
    ] = "negative"
    dim: Annotated[int, Field(ge=1, le=4_096), Setting("Dimensions of the vectors.", MODEL)] = 100
    window: Annotated[
        int,
        Field(ge=1, le=100),
        Setting("Neighbors on each side, at most; each word draws its own reach.", TRAINING),
    ] = 5
    epochs: Annotated[int, Field(ge=1), Setting("Number of training epochs.", TRAINING)] = 5
    rate: Annotated[
        float | None,
        Field(gt=0, le=1),
        Setting(
            "Learning rate; 0.025 for skipgram, 0.05 for cbow if unset.", TRAINING, flag="--lr"
        ),
    ] = None
    """It falls linearly to a ten-thousandth of that."""
    negatives: Annotated[
        int | None,
        Field(ge=1, le=100),
        Setting("Random words per window; 5 if unset. Not with hierarchical.", TRAINING),
    ] = None
    noise_power: Annotated[float | None, Field(ge=0, le=1)] = None
    """Noise words are drawn by count to this power, 0.75 if unset; not with hierarchical."""
    sample: Annotated[
        float,
        Field(ge=0),
        Setting("Drop words with a larger share at random; 0: none.", TRAINING, flag="--subsample"),
    ] = 1e-3
    combine: Annotated[
        Literal["mean", "sum"] | None,
        Setting("How cbow joins its neighbors; mean if unset.", TRAINING),
    ] = None
    seed: Annotated[int, Field(ge=0), Setting("Random seed.", TRAINING)] = 1

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.loss == "hierarchical":
            for name in ("negatives", "noise_power"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} has no meaning with loss hierarchical; leave it out")
        if self.combine is not None and self.model != "cbow":
            raise ValueError("combine has no meaning with model skipgram; leave it out")
        return self

    @property
    def start_rate(self) -> float:
        """The learning rate at the start."""
        return _RATES[self.model] if self.rate is None else self.rate

    @property
    def noise_words(self) -> int:
        """Noise words per window; 0 for hierarchical softmax."""
        if self.loss == "hierarchical":
            return 0
        return _NEGATIVES if self.negatives is None else self.negatives

    @property
    def power(self) -> float:
        """The power of counts that noise words are drawn by."""
        return 0.75 if self.noise_power is None else self.noise_power
