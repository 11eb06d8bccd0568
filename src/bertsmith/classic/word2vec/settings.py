"""Settings of word2vec."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from bertsmith.config import Settings

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

    model: WordModel = "skipgram"
    loss: WordLoss = "negative"
    dim: int = Field(default=100, ge=1, le=4_096)
    """Numbers per vector."""
    window: int = Field(default=5, ge=1, le=100)
    """Neighbors on each side, at most; for each word the reach is drawn from 1 to this."""
    epochs: int = Field(default=5, ge=1)
    rate: float | None = Field(default=None, gt=0, le=1)
    """Learning rate at the start: 0.025 for skipgram and 0.05 for cbow if unset; it falls
    linearly to a ten-thousandth of that."""
    negatives: int | None = Field(default=None, ge=1, le=100)
    """Noise words per window, 5 if unset; only with the losses negative and nce."""
    noise_power: float | None = Field(default=None, ge=0, le=1)
    """Noise words are drawn by count to this power, 0.75 if unset; not with hierarchical."""
    sample: float = Field(default=1e-3, ge=0)
    """Words with a larger share of the text than about this are dropped at random; 0: none."""
    combine: Literal["mean", "sum"] | None = None
    """How cbow joins neighbors, mean if unset; only with cbow."""
    seed: int = Field(default=1, ge=0)

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
