"""How the answer for one text is shown to people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertsmith.tasks.prediction import Prediction


def prediction_lines(said: Prediction, *, most: int, choices: Sequence[str] = ()) -> list[str]:
    """The answer first, then what else was likely; `choices` are the texts to choose from."""
    from bertsmith.tasks.prediction import PredictedAnswer, PredictedSpan

    value = said.value
    if isinstance(value, PredictedAnswer):
        lines = _answer(said, value, most)
    elif isinstance(value, tuple) and (
        said.tags or any(isinstance(one, PredictedSpan) for one in value)
    ):
        lines = [
            f"{one.label}\t{one.text}\t{one.start}-{one.end}" + _sure(one.confidence)
            for one in value
            if isinstance(one, PredictedSpan)
        ] or ["no span was found"]
    elif isinstance(value, tuple):
        lines = [", ".join(str(one) for one in value) or "no label", *_odds(said, most)]
    elif isinstance(value, float):
        lines = [f"{value:.4f}"]
    elif choices:
        lines = [choices[int(str(value))]]
        for odds, text in zip(said.probabilities.values(), choices, strict=True):
            lines.append(f"  {odds:.4f}  {text}")
    else:
        lines = [str(value), *_odds(said, most)]
    if said.cut:
        lines.append(f"note: {said.cut:,} tokens of the text were not read; it is too long")
    return lines


def _odds(said: Prediction, most: int) -> list[str]:
    ranked = sorted(said.probabilities.items(), key=lambda item: -item[1])
    width = max((len(name) for name, _ in ranked[:most]), default=0)
    lines = [f"  {odds:.4f}  {name:<{width}}".rstrip() for name, odds in ranked[:most]]
    more = len(ranked) - most
    return [*lines, f"  and {more:,} more"] if more > 0 else lines


def _answer(said: Prediction, value: object, most: int) -> list[str]:
    from bertsmith.tasks.prediction import PredictedAnswer

    if not isinstance(value, PredictedAnswer):
        raise TypeError(f"not an answer: {value!r}")
    lines = [f"{value.text or 'no answer'}{_sure(said.confidence)}"]
    lines += [f"  or: {one.text or 'no answer'}" for one in said.others[: most - 1]]
    return lines


def _sure(confidence: float | None) -> str:
    return "" if confidence is None else f" ({confidence:.4f})"
