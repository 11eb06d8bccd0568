"""The proof of a fine-tuned model: what it gets right, where it fails, and what less would get.

`prove(task, examples, predictions)` looks at labeled rows and what was said of them; `baselines`
says what the commonest answer and a bag of words score on the same rows. Both become JSON that a
report is drawn from; nothing here knows how it will look.
"""

from bertsmith.evaluation.proof.baseline_figures import baselines
from bertsmith.evaluation.proof.proof import Proof, prove

__all__ = ["Proof", "baselines", "prove"]
