"""The score of a text under a language model as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
