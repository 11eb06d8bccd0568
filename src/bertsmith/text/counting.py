"""Counts the words of a corpus in bounded memory, split as by the tokenizer to be learned."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from bertsmith.errors import TextError
from bertsmith.text.safe_tokenizer import SURROGATE, build_rust, rust_errors
from bertsmith.text.segment import CHINESE

Progress = Callable[[str, int, int | None], None]  # stage, done, total if known

_IDEOGRAPHS = "".join(f"{chr(first)}-{chr(last)}" for first, last in CHINESE)
# Runs that are counted before Rust splits them into words. Every run is bounded, so that one
# endless line or word costs no more memory than many short ones.
RUNS = {
    "wordpiece": re.compile(rf"[{_IDEOGRAPHS}]|[^\s{_IDEOGRAPHS}]{{1,400}}"),
    "byte-bpe": re.compile(r"\s{0,16}\w{1,256}(?:['’]\w{1,16})?|\s{0,16}[^\w\s]{1,256}|\s{1,16}"),
    "unigram": re.compile(r"\S{1,256}"),
    "xlnet": re.compile(r"\S{1,256}"),
}
MAX_WORDS = 5_000_000  # about 1 GB
REPORT_EVERY = 20_000


def count_words(
    lines: Iterable[str], kind: str, state: dict[str, Any], progress: Progress | None
) -> dict[str, int]:
    """How often each word occurs in the corpus, sorted by word.

    A word is what the normalizer and pre-tokenizer of `state` make; the order of lines and their
    spread over files change nothing.
    """
    runs: Counter[str] = Counter()
    pattern = RUNS[kind]
    done = 0
    for done, line in enumerate(lines, 1):
        if not isinstance(line, str):
            raise TextError(f"line {done} is of type {type(line).__name__}; lines must be str")
        _count_runs(runs, pattern, line)
        if done % REPORT_EVERY == 0:
            _check_size(runs)
            if progress is not None:
                progress("reading", done, None)
    _check_size(runs)
    if progress is not None:
        progress("reading", done, done)
    return _split(runs, state, progress)


def _count_runs(runs: Counter[str], pattern: re.Pattern[str], line: str) -> None:
    if len(line) < 1 << 20:
        runs.update(pattern.findall(line))
    else:
        for match in pattern.finditer(line):
            runs[match.group()] += 1


def _check_size(runs: Counter[str]) -> None:
    if len(runs) > MAX_WORDS:
        raise TextError(
            f"the corpus has more than {MAX_WORDS:,} different words, too many to count in "
            "memory; learn from a sample of it"
        )


def _split(runs: Counter[str], state: dict[str, Any], progress: Progress | None) -> dict[str, int]:
    """The words inside the counted runs."""
    rust = build_rust(state)
    normalizer, splitter = rust.normalizer, rust.pre_tokenizer
    words: Counter[str] = Counter()
    with rust_errors("the words could not be split"):
        for done, (run, count) in enumerate(runs.items(), 1):
            if not run.isascii():
                run = SURROGATE.sub("\ufffd", run)
            plain = normalizer.normalize_str(run) if normalizer is not None else run
            for word, _ in splitter.pre_tokenize_str(plain):
                words[word] += count
            if progress is not None and done % REPORT_EVERY == 0:
                progress("splitting", done, len(runs))
    return dict(sorted(words.items()))
