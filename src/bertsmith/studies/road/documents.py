"""The documents of a road, split once: to train on, to stop early by, and held out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from bertsmith.corpus.reading import documents_of, read_blocks
from bertsmith.corpus.sources import find_sources
from bertsmith.errors import InputFileError
from bertsmith.files.atomic_file import StagedFile
from bertsmith.files.atomic_folder import make_folder
from bertsmith.files.strict_json import write_json
from bertsmith.random_keys import hashes, key_of
from bertsmith.studies.road.request import RoadRequest

TRAIN, VALIDATION, HELD_OUT = "train.txt", "validation.txt", "held-out.txt"
COUNTS = "documents.json"
HELD_OUT_SHARE = 0.1  # of the documents
FEWEST = 5  # documents
CHARACTERS = 6  # of a word and the space after it, about


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitCounts:
    """Documents of each part, and what was left out of the files."""

    train: int
    validation: int
    held_out: int
    characters: int
    skipped_lines: int


def read_documents(request: RoadRequest) -> Iterator[tuple[list[str], int]]:
    """The sentences of each document in order, and how many lines were skipped since the last."""
    sentences: list[str] = []
    skipped = 0
    for source in find_sources(request.files, request.reading):
        for block in read_blocks(source):
            found = documents_of(block, request.reading.on_error)
            skipped += found.skipped
            bounds = [*found.starts, len(found.sentences)]
            sentences += found.sentences[: bounds[0]]
            for first, end in pairwise(bounds):
                if sentences:
                    yield sentences, skipped
                    skipped = 0
                sentences = found.sentences[first:end]
        if sentences:
            yield sentences, skipped
            sentences, skipped = [], 0


def split_documents(request: RoadRequest, folder: Path) -> SplitCounts:
    """Write three files of sentences, blank lines between documents; one in ten is held out.

    Which ones is a function of the seed and their number.
    """
    sizes = [sum(map(len, sentences)) for sentences, _ in read_documents(request)]
    total = len(sizes)
    if total < FEWEST:
        raise InputFileError(
            f"{request.files[0]} and what was given with it hold {total} documents; a road splits "
            f"by document and needs at least {FEWEST}: give more text, or say where documents end "
            "(--form documents: one per line; sentences: blank lines between them)"
        )
    mean = max(1.0, sum(sizes) / total)
    wanted = math.ceil(CHARACTERS * request.sizes.validation_words / mean)
    held_out = max(1, round(total * HELD_OUT_SHARE))
    validation = min(max(1, wanted), max(1, total // 10))
    order = np.argsort(hashes(key_of("road", seed=request.seed), np.arange(total)), kind="stable")
    parts = np.zeros(total, dtype=np.int8)
    parts[order[:held_out]] = 2
    parts[order[held_out : held_out + validation]] = 1
    make_folder(folder)
    skipped = 0
    with ExitStack() as stack:
        names = (TRAIN, VALIDATION, HELD_OUT)
        files = [stack.enter_context(StagedFile(folder / name)) for name in names]
        for part, (sentences, left_out) in zip(parts, read_documents(request), strict=True):
            skipped += left_out
            text = "\n".join(sentences)
            files[part].write(f"{text.lower() if request.lower else text}\n\n".encode())
    counts = SplitCounts(
        train=total - held_out - validation,
        validation=validation,
        held_out=held_out,
        characters=sum(sizes),
        skipped_lines=skipped,
    )
    write_json(folder / COUNTS, asdict(counts))
    return counts
