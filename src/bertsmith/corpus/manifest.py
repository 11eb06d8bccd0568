"""The manifest of a corpus: what it was made from, what it holds, and the hash of every file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import tokenizers

from bertsmith import __version__
from bertsmith.corpus.journal import CorpusTally
from bertsmith.corpus.report import (
    TOP_UNKNOWN,
    CorpusReport,
    count_unknown,
    sentence_lengths,
)
from bertsmith.corpus.shards import FORMAT, TOKEN_TYPES, VERSION
from bertsmith.corpus.sources import CorpusSource
from bertsmith.text.tokenizer import Tokenizer


def source_entry(source: CorpusSource, digest: str, on_error: str) -> dict[str, Any]:
    """How one file was read; `digest` is of its text, unpacked."""
    return {
        "name": source.path.name,
        "kind": source.kind,
        "form": source.form,
        "field": source.field,
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
            "documents": tally.documents,
            "sentences": tally.sentences,
            "tokens": tally.tokens,
            "characters": tally.characters,
            "text_bytes": tally.text_bytes,
            "empty_sentences": tally.empty,
            "skipped_lines": tally.skipped,
            "surrogates": tally.surrogates,
            "unknown_tokens": count_unknown(
                folder / "tokens.bin", TOKEN_TYPES[kind], tokenizer.special.unk
            ),
        },
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
