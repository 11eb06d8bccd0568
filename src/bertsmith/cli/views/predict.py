"""The prediction for one text as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertsmith.tasks.prediction import Prediction


def prediction_lines(
    prediction: Prediction, *, most: int, choices: Sequence[str] = ()
) -> list[str]:
    """The answer first, then what else was likely; `choices` are the texts to choose from."""
    from bertsmith.tasks.prediction import PredictedAnswer, PredictedSpan

    value = prediction.value
    if isinstance(value, PredictedAnswer):
        lines = _answer(prediction, value, most)
    elif isinstance(value, tuple) and (
        prediction.tags or any(isinstance(one, PredictedSpan) for one in value)
    ):
        lines = [
            f"{one.label}\t{one.text}\t{one.start}-{one.end}" + _sure(one.confidence)
            for one in value
            if isinstance(one, PredictedSpan)
        ] or ["no spans"]
    elif isinstance(value, tuple):
        lines = [
            ", ".join(str(one) for one in value) or "no label",
            *_probabilities(prediction, most),
        ]
    elif isinstance(value, float):
        lines = [f"{value:.4f}"]
    elif choices:
        lines = [choices[int(str(value))]]
        for probability, text in zip(prediction.probabilities.values(), choices, strict=True):
            lines.append(f"  {probability:.4f}  {text}")
    else:
        lines = [str(value), *_probabilities(prediction, most)]
    if prediction.cut:
        lines.append(f"note: the text is too long; {prediction.cut:,} tokens were truncated")
    return lines


def _probabilities(prediction: Prediction, most: int) -> list[str]:
    ranked = sorted(prediction.probabilities.items(), key=lambda item: -item[1])
    width = max((len(name) for name, _ in ranked[:most]), default=0)
    lines = [
        f"  {probability:.4f}  {name:<{width}}".rstrip() for name, probability in ranked[:most]
    ]
    more = len(ranked) - most
    return [*lines, f"  and {more:,} more"] if more > 0 else lines


def _answer(prediction: Prediction, value: object, most: int) -> list[str]:
    from bertsmith.tasks.prediction import PredictedAnswer

    if not isinstance(value, PredictedAnswer):
        raise TypeError(f"not an answer: {value!r}")
    lines = [f"{value.text or 'no answer'}{_sure(prediction.confidence)}"]
    lines += [f"  or: {one.text or 'no answer'}" for one in prediction.others[: most - 1]]
    return lines


def _sure(confidence: float | None) -> str:
    return "" if confidence is None else f" ({confidence:.4f})"
