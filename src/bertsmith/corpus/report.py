"""What a corpus holds: its manifest, and a report of sizes, lengths, unknown words, speed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from bertsmith import __version__
from bertsmith.corpus.journal import CorpusTally
from bertsmith.corpus.shards import FORMAT, TOKEN_TYPES, VERSION
from bertsmith.corpus.sources import CorpusSource
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.wording import counted

SHARES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
TOP_UNKNOWN = 20
STEP = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusReport:
    """The account of a build; `seconds` and `resumed_blocks` are of this run, the rest of all."""

    files: int
    documents: int
    sentences: int
    tokens: int
    characters: int
    text_bytes: int
    lengths: dict[str, int]
    unknown_tokens: int
    unknown: list[tuple[str, int]]
    empty_sentences: int
    skipped_lines: int
    surrogates: int
    segmenter: str
    forms: dict[str, str]
    skipped_examples: list[str]
    seconds: float = 0.0
    new_bytes: int = 0
    resumed_blocks: int = 0

    @property
    def unknown_share(self) -> float:
        """The part of the tokens that is the unknown token."""
        return self.unknown_tokens / max(1, self.tokens)

    @property
    def characters_per_token(self) -> float:
        """How much text a token holds."""
        return self.characters / max(1, self.tokens)

    @property
    def megabytes_per_second(self) -> float:
        """Text read in this run over its time."""
        return self.new_bytes / 1e6 / self.seconds if self.seconds else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return asdict(self) | {
            "unknown_share": self.unknown_share,
            "characters_per_token": self.characters_per_token,
            "megabytes_per_second": self.megabytes_per_second,
        }

    def lines(self) -> list[str]:
        """The report in plain lines."""
        lengths = self.lengths
        shown = [
            f"{counted(self.files, 'file')}, {counted(self.documents, 'document')}, "
            f"{counted(self.sentences, 'sentence')}, {counted(self.tokens, 'token')} "
            f"({self.characters_per_token:.2f} characters per token)",
            f"tokens per sentence: half up to {lengths['p50']}, 95 % up to {lengths['p95']}, "
            f"99 % up to {lengths['p99']}, longest {lengths['longest']:,}",
            f"unknown tokens: {self.unknown_tokens:,} ({self.unknown_share:.3%})",
        ]
        if self.unknown:
            words = ", ".join(f"{word} {count:,}" for word, count in self.unknown[:10])
            shown.append(f"  most frequent unknown: {words}")
        if self.empty_sentences:
            shown.append(f"left out: {counted(self.empty_sentences, 'sentence')} without a token")
        if self.surrogates:
            shown.append(f"replaced by U+FFFD: {counted(self.surrogates, 'lone surrogate')}")
        if self.skipped_lines:
            shown.append(f"left out: {counted(self.skipped_lines, 'faulty line')}, such as")
            shown += [f"  {example}" for example in self.skipped_examples]
        if self.seconds:
            shown.append(
                f"{self.new_bytes / 1e6:,.3g} MB of text in {self.seconds:.1f} s, "
                f"{self.megabytes_per_second:.1f} MB/s"
            )
        return shown


def sentence_lengths(path: Path) -> dict[str, int]:
    """The usual and the largest numbers of tokens of a sentence, from the file of borders."""
    borders = np.memmap(path, dtype="<i8", mode="r")
    counts = np.zeros(1, dtype=np.int64)
    for start in range(0, len(borders) - 1, STEP):
        lengths = np.bincount(np.diff(borders[start : start + STEP + 1]))
        if len(lengths) > len(counts):
            counts = np.pad(counts, (0, len(lengths) - len(counts)))
        counts[: len(lengths)] += lengths
    ends = np.cumsum(counts)
    figures = {name: int(np.searchsorted(ends, share * ends[-1])) for name, share in SHARES.items()}
    return figures | {"longest": len(counts) - 1}


def count_unknown(path: Path, kind: str, unknown: int | None) -> int:
    """How many tokens of a file are the unknown one."""
    if unknown is None:
        return 0
    tokens = np.memmap(path, dtype=kind, mode="r")
    steps = range(0, len(tokens), 8 * STEP)
    return sum(int(np.count_nonzero(tokens[at : at + 8 * STEP] == unknown)) for at in steps)


COUNTS = (
    *("documents", "sentences", "tokens", "characters", "text_bytes"),
    *("empty_sentences", "skipped_lines", "surrogates"),
)


def source_entry(source: CorpusSource, digest: str, on_error: str) -> dict[str, Any]:
    """How one file was read; `digest` is of its text, unpacked."""
    return {
        "name": source.path.name,
        "format": source.spec.format,
        "form": source.form,
        "text": None if source.spec.format == "lines" else list(source.spec.text or ()),
        "encoding": source.encoding,
        "on_error": on_error,
        "sha256": digest,
    }


def make_manifest(
    folder: Path,
    *,
    tokenizer: Tokenizer,
    vocabulary: str,
    segmenter: str,
    sources: list[dict[str, Any]],
    tally: CorpusTally,
    files: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    """Everything a reader needs; no time and no place, so that equal input gives equal bytes."""
    kind = "uint16" if tokenizer.vocab_size <= 1 << 16 else "uint32"
    unknown = sorted(tally.unknown.items(), key=lambda item: (-item[1], item[0]))
    return {
        "format": FORMAT,
        "version": VERSION,
        "made_by": {"bertsmith": __version__, "tokenizers": tokenizers.__version__},
        "vocabulary": vocabulary,
        "vocab_size": tokenizer.vocab_size,
        "special": asdict(tokenizer.special),
        "token_type": kind,
        "segmenter": segmenter,
        "sources": sources,
        "counts": {
            **{name: getattr(tally, name) for name in COUNTS},
            "unknown_tokens": count_unknown(
                folder / "tokens.bin", TOKEN_TYPES[kind], tokenizer.special.unk
            ),
        },
        "case": {name: getattr(tally, name) for name in ("words", "cased_words", "capitals")},
        "lengths": sentence_lengths(folder / "sentences.bin"),
        "unknown": [[word, count] for word, count in unknown[:TOP_UNKNOWN]],
        "files": files,
    }


def report_from(manifest: dict[str, Any], examples: list[str]) -> CorpusReport:
    """The report of a corpus, without the time it took."""
    return CorpusReport(
        files=len(manifest["sources"]),
        lengths=manifest["lengths"],
        unknown=[(word, count) for word, count in manifest["unknown"]],
        segmenter=manifest["segmenter"],
        forms={entry["name"]: entry["form"] for entry in manifest["sources"]},
        skipped_examples=examples,
        **manifest["counts"],
    )
