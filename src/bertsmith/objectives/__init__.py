"""What pre-training asks: what is hidden, by what, and which questions follow."""

from bertsmith.objectives.masked_lm import MaskedLM
from bertsmith.objectives.objective import Objective
from bertsmith.objectives.replaced_token import ReplacedToken
from bertsmith.objectives.sentence_pair import NEXT_SENTENCE, SENTENCE_ORDER
from bertsmith.objectives.span_boundary import SpanBoundary

OBJECTIVES: dict[str, Objective] = {
    "mlm": MaskedLM(),
    "sbo": SpanBoundary(),
    "nsp": NEXT_SENTENCE,
    "sop": SENTENCE_ORDER,
    "rtd": ReplacedToken(),
}

__all__ = ["OBJECTIVES", "Objective"]
