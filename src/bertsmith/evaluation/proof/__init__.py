"""The proof of a fine-tuned model: metrics, errors and baselines on labeled rows, as JSON."""

from bertsmith.evaluation.proof.baseline_figures import baselines
from bertsmith.evaluation.proof.proof import Proof, prove

__all__ = ["Proof", "baselines", "prove"]
