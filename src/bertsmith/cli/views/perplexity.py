"""The score of a text under a language model as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertsmith.api.language_models import MixtureScore
    from bertsmith.classic.language_model import LmScore


def score_text(found: LmScore) -> list[str]:
    """Perplexity with and without unknown words, bits per character, and what was counted."""
    lines = [
        f"perplexity {found.perplexity():.4f} per word, line ends included",
        f"           {found.perplexity_known():.4f} without unknown words",
    ]
    bits = found.bits_per_character()
    if bits is not None:
        lines.append(f"{bits:.4f} bits per character")
    share = found.unknown / max(1, found.words)
    counted = f"{found.words:,} words in {found.lines:,} lines"
    return [*lines, f"{counted}; {found.unknown:,} unknown ({share:.2%})"]


def mixture_text(found: MixtureScore) -> list[str]:
    """What was mixed by which weights, what it reaches, and what each model reaches alone."""
    weights = " and ".join(f"{weight:.4f}" for weight in found.weights)
    origin = "found on the validation text" if found.fitted else "equal: no --validation was given"
    lines = [f"{found.name}; weights {weights} ({origin})", *score_text(found.score)]
    return [
        *lines,
        *(f"{name} alone: perplexity {score.perplexity():.4f}" for name, score in found.alone),
    ]
