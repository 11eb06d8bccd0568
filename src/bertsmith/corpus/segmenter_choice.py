"""The word segmenter of a corpus: chosen by name, or by a look at the text."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Literal, get_args

from bertsmith.corpus.sources import CorpusSource, sample_text
from bertsmith.errors import MissingExtraError, unknown
from bertsmith.text.segment import is_chinese

SegmenterChoice = Literal["auto", "character", "jieba"]
NOTABLE = 0.1  # share of ideographs among the characters of the samples
SAMPLES = 20


def choose_segmenter(
    name: SegmenterChoice, sources: Sequence[CorpusSource], notice: Callable[[str], None]
) -> str:
    """The segmenter in use; "auto" takes jieba for Chinese text where it is installed."""
    if name not in get_args(SegmenterChoice):
        raise unknown("segmenter", name, get_args(SegmenterChoice))
    if name == "jieba" and importlib.util.find_spec("rjieba") is None:
        raise MissingExtraError("rjieba", "zh")  # before the work, not in a worker
    if name != "auto":
        return name
    share = chinese_share(sources)
    if share < NOTABLE:
        return "character"
    if importlib.util.find_spec("rjieba") is None:
        notice(
            f"{share:.0%} Chinese, but rjieba is not installed: every character counts as a word; "
            "for whole words run: pip install 'bertsmith[zh]'"
        )
        return "character"
    notice(
        f"{share:.0%} Chinese: words are segmented by jieba "
        "(--segmenter character is faster, for schemes that hide single characters)"
    )
    return "jieba"


def chinese_share(sources: Sequence[CorpusSource]) -> float:
    """The part of the visible characters, at the start of up to 20 files, that is Chinese."""
    chinese = visible = 0
    for source in sources[:: max(1, len(sources) // SAMPLES)][:SAMPLES]:
        text = sample_text(source)[:50_000]
        chinese += sum(map(is_chinese, text))
        visible += sum(not character.isspace() for character in text)
    return chinese / max(1, visible)
