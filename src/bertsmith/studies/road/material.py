"""What all models of a road are trained and tested on: one split, one tokenizer, two streams."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.classic.stream.folder import WordStream
from bertsmith.classic.stream.splitting import WordSplitter
from bertsmith.classic.stream.stream import WordReading, build_words
from bertsmith.classic.stream.texts import KnownWordEncoder, encode_files, stream_of
from bertsmith.corpus.build import build_corpus
from bertsmith.corpus.reading import documents_of, read_blocks
from bertsmith.corpus.sources import CorpusSettings, find_sources
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.files.atomic_file import StagedFile
from bertsmith.files.atomic_folder import make_folder
from bertsmith.files.lines import text_lines
from bertsmith.files.strict_json import write_json
from bertsmith.random_keys import hashes, key_of
from bertsmith.studies.road.request import RoadRequest
from bertsmith.text.learn import learn_vocabulary
from bertsmith.text.tokenizer import Tokenizer

TRAIN, VALIDATION, HELD_OUT = "train.txt", "validation.txt", "held-out.txt"
COUNTS = "documents.json"
HELD_OUT_SHARE = 0.1  # of the documents
FEWEST = 5  # documents
CHARACTERS = 6  # of a word and the space after it, about
REQUEST, TEXT, TOKENIZER, PIECES, WORDS, SHARDS = (
    "request.json",
    "text",
    "tokenizer",
    "pieces",
    "words",
    "shards",
)
SENTENCES = WordReading(form="sentences")
MOST_WORDS = 20_000  # of the stream of words, for ELMo and word2vec
Ids = NDArray[np.int32]
Notice = Callable[[str], None]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredText:
    """The held-out lines that perplexities are taken over, in both units."""

    pieces: list[Ids]
    words: list[Ids]  # of the stream of words, 0 unknown
    spelled: list[tuple[str, ...]]  # the words as they are
    texts: list[str]
    characters: int

    @property
    def word_count(self) -> int:
        """All words."""
        return sum(map(len, self.spelled))


@dataclass(frozen=True, eq=False, kw_only=True)
class RoadMaterial:
    """Everything that models of a road share."""

    request: RoadRequest
    counts: SplitCounts
    tokenizer: Tokenizer
    pieces: WordStream
    words: WordStream

    @property
    def folder(self) -> Path:
        """Where the road is."""
        return self.request.out

    @property
    def shards(self) -> Path:
        """The training documents as BERT reads them."""
        return self.folder / SHARDS

    @property
    def train_file(self) -> Path:
        """The training documents, one sentence per line."""
        return self.folder / TEXT / TRAIN

    def validation(self, stream: WordStream) -> WordStream:
        """The documents that training is stopped by, in the words of a stream."""
        text = encode_files([self.folder / TEXT / VALIDATION], stream.words, stream.rule, SENTENCES)
        return stream_of(text, stream.words, stream.rule)

    def held_out(self) -> Iterator[tuple[str, ...]]:
        """The words of each held-out sentence."""
        splitter = WordSplitter(self.words.rule)
        for lines in _groups(self.folder / TEXT / HELD_OUT):
            yield from split_words(splitter, lines)

    def split(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The words of texts, as those of the stream of words."""
        flat = [text.replace("\n", " ").replace("\x00", " ") for text in texts]
        lower = [text.lower() for text in flat] if self.request.lower else flat
        return split_words(WordSplitter(self.words.rule), lower)

    @cached_property
    def scored(self) -> ScoredText:
        """The first held-out lines."""
        splitter = WordSplitter(self.words.rule)
        texts: list[str] = []
        spelled: list[tuple[str, ...]] = []
        count = 0
        for lines in _groups(self.folder / TEXT / HELD_OUT):
            for text, words in zip(lines, split_words(splitter, lines), strict=True):
                if words and count < self.request.sizes.scored_words:
                    texts.append(text)
                    spelled.append(words)
                    count += len(words)
            if count >= self.request.sizes.scored_words:
                break
        return ScoredText(
            pieces=KnownWordEncoder(self.pieces.words, self.pieces.rule).encode(texts),
            words=[self.words.encode(words) for words in spelled],
            spelled=spelled,
            texts=texts,
            characters=sum(map(len, texts)),
        )


def _groups(path: Path, size: int = 2_000) -> Iterator[list[str]]:
    lines: list[str] = []
    for line in text_lines(path):
        if line.strip():
            lines.append(line)
        if len(lines) == size:
            yield lines
            lines = []
    if lines:
        yield lines


def split_words(splitter: WordSplitter, lines: Sequence[str]) -> list[tuple[str, ...]]:
    """The words of lines that hold no line break."""
    found = splitter.split(lines)
    names = splitter.names(found.numbers)
    ends = np.cumsum(found.lengths).tolist()
    starts = [0, *ends[:-1]]
    return [tuple(names[a:b]) for a, b in zip(starts, ends, strict=True)]


def check_request(request: RoadRequest) -> None:
    """Refuse a folder that holds the road of another request."""
    record = request.record()
    path = request.out / REQUEST
    if path.exists():
        stored = json.loads(path.read_bytes())
        for name, value in record.items():
            if stored.get(name) != json.loads(json.dumps(value)):
                raise ConfigError(
                    f"{request.out} holds a road whose {name} was {stored.get(name)!r} and is now "
                    f"{value!r}; give another folder, or the same options to resume"
                )
        return
    make_folder(request.out)
    write_json(path, record)


def prepare_material(request: RoadRequest, notice: Notice) -> RoadMaterial:
    """Split the documents, learn the tokenizer and make both streams; the same call resumes."""
    check_request(request)
    place, out = request.out / TEXT, request.out
    if (place / COUNTS).exists():
        counts = SplitCounts(**json.loads((place / COUNTS).read_bytes()))
    else:
        notice("documents are read and split")
        counts = split_documents(request, place)
    train = [place / TRAIN]
    if not (out / TOKENIZER).exists():
        notice("a tokenizer is learned from the training documents")
        learned = learn_vocabulary(
            (line for line in text_lines(train[0]) if line.strip()),
            size=request.vocab_size,
            lowercase=request.lower,
        )
        make_folder(out / TOKENIZER)
        learned.save(out / TOKENIZER)
    tokenizer = Tokenizer.from_folder(out / TOKENIZER)
    notice("the training documents become pieces, words and shards")
    pieces = build_words(train, out / PIECES, tokenizer=tokenizer, reading=SENTENCES)
    reading = WordReading(form="sentences", segmenter=request.reading.segmenter)
    words = build_words(train, out / WORDS, most=MOST_WORDS, reading=reading)
    build_corpus(
        train,
        tokenizer,
        out / SHARDS,
        CorpusSettings(form="sentences", segmenter="character"),
        workers=torch.get_num_threads(),
        notice=lambda line: None,
    )
    return RoadMaterial(
        request=request, counts=counts, tokenizer=tokenizer, pieces=pieces, words=words
    )
