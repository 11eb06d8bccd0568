"""Word vectors for CLI and Python: train, load, evaluate by published tests, convert."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from bertsmith.classic.stream.stream import WordReading, build_words
from bertsmith.classic.word2vec.engines import EngineName
from bertsmith.classic.word2vec.folder import TrainedWords
from bertsmith.classic.word2vec.settings import Word2VecSettings
from bertsmith.classic.word2vec.train import WordWatcher, train_word2vec
from bertsmith.classic.word_vectors.evaluation import (
    AnalogyResult,
    SimilarityResult,
    evaluate_analogies,
    evaluate_similarity,
    is_analogy_file,
    read_analogies,
    read_similarity,
    total_analogies,
)
from bertsmith.classic.word_vectors.word_vectors import WordVectors
from bertsmith.errors import ConfigError
from bertsmith.files.atomic_folder import check_target
from bertsmith.files.growing_folder import discard
from bertsmith.files.paths import GivenPaths, path_of, paths_of
from bertsmith.files.word_vectors.rows import VectorForm
from bertsmith.text.tokenizer import Tokenizer

MIN_COUNT = 5
_BLOCK = 1 << 20  # bytes of text at a time
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordChoice:
    """What a word of the text is, and which get a vector.

    `words` is the folder that keeps the words of the text for other models; without it they are
    removed when the vectors are there.
    """

    reading: WordReading = field(default_factory=WordReading)
    min_count: int = MIN_COUNT
    most: int | None = None
    lower: bool = False
    tokenizer: Tokenizer | None = None
    words: Path | None = None


def train_word_vectors(
    files: GivenPaths,
    out: Path | str,
    *,
    settings: Word2VecSettings | None = None,
    options: WordChoice | None = None,
    threads: int | None = None,
    engine: EngineName = "auto",
    progress: Callable[[int, float], None] = lambda words, share: None,
    watch: WordWatcher | None = None,
) -> TrainedWords:
    """Train word2vec on files of text and write a folder; the same call resumes after an epoch.

    One thread repeats a run bit for bit, several do not. `progress` hears words and the share of
    the text while it is read, `watch` the state of training.
    """
    wanted = options or WordChoice()
    sources = paths_of("files", files)
    place = path_of("out", out).absolute()
    kept = wanted.words or place.parent / f".{place.name}.words"
    reading = wanted.reading
    if wanted.words is None:  # nobody shares the words: less memory while they are read
        reading = replace(reading, block_bytes=min(reading.block_bytes, _BLOCK))
    stream = build_words(
        sources,
        kept,
        min_count=wanted.min_count,
        most=wanted.most,
        lower=wanted.lower,
        tokenizer=wanted.tokenizer,
        reading=reading,
        progress=progress,
    )
    trained = train_word2vec(
        stream,
        settings or Word2VecSettings(),
        place,
        threads=threads,
        engine=engine,
        watch=watch,
    )
    if wanted.words is None:
        discard(kept)
    return trained


def load_word_vectors(
    path: Path | str, *, form: VectorForm | None = None, most: int | None = None
) -> WordVectors:
    """Word vectors of a folder of `train_word_vectors`, or of a file of word2vec or GloVe.

    The form of a file (text, binary, glove) is detected; `most` reads the first words only.
    """
    return WordVectors.read(path_of("path", path), form=form, most=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordEvaluation:
    """Results of similarity files, and of analogy files: sections, and all of them together."""

    similarity: list[SimilarityResult]
    analogies: dict[str, list[AnalogyResult]]

    def totals(self) -> list[AnalogyResult]:
        """One result per analogy file."""
        return [total_analogies(parts, name) for name, parts in self.analogies.items()]


def evaluate_word_vectors(
    vectors: WordVectors | Path | str, files: GivenPaths, *, most: int | None = None
) -> WordEvaluation:
    """Compare vectors with ratings of people and solve analogies; what a file is is detected.

    Analogies are asked and answered among the first `most` words only.
    """
    tests = paths_of("files", files)
    if not tests:
        raise ConfigError("give at least one file of rated pairs or of analogies")
    table = vectors if isinstance(vectors, WordVectors) else load_word_vectors(vectors)
    similarity: list[SimilarityResult] = []
    analogies: dict[str, list[AnalogyResult]] = {}
    for file in tests:
        if is_analogy_file(file):
            analogies[file.name] = evaluate_analogies(table, read_analogies(file), most=most)
        else:
            similarity.append(evaluate_similarity(table, read_similarity(file)))
    return WordEvaluation(similarity=similarity, analogies=analogies)


def convert_word_vectors(
    source: Path | str,
    target: Path | str,
    *,
    form: VectorForm | None = None,
    most: int | None = None,
) -> WordVectors:
    """Write vectors in another form: by the name of the target (.bin is binary), or `form`."""
    vectors = load_word_vectors(source, most=most)
    vectors.write(path_of("target", target), form=form)
    return vectors


def word_sentence_folder(
    source: WordVectors | Path | str,
    target: Path | str,
    *,
    most: int | None = None,
    overwrite: bool = False,
) -> WordVectors:
    """Write a folder of static sentence vectors: a text is the mean of the vectors of its words.

    `embed`, `map`, `search` and sentence-transformers read it. Texts are split at spaces and
    punctuation, so Chinese text must be segmented; words that are unknown count as zeros.
    """
    import torch

    from bertsmith.folders.static import save_static
    from bertsmith.models.sentence_spec import SentenceSettings

    check_target(Path(target).absolute(), overwrite=overwrite)  # before the work, not after it
    vectors = source
    if not isinstance(vectors, WordVectors):
        vectors = load_word_vectors(vectors, most=most)
    tokens = [*_SPECIAL, *(word for word in vectors.words if word not in _SPECIAL)]
    config = {"tokenizer_class": "BertTokenizer", "tokenize_chinese_chars": False}
    lower = all(word == word.lower() for word in vectors.words)
    files = {
        "vocab.txt": "".join(f"{token}\n" for token in tokens).encode(),
        "tokenizer_config.json": json.dumps({**config, "do_lower_case": lower}).encode(),
    }
    table = torch.zeros(len(tokens), vectors.dimension)
    rows = [vectors.index[token] for token in tokens[len(_SPECIAL) :]]
    table[len(_SPECIAL) :] = torch.from_numpy(vectors.matrix[rows])
    settings = SentenceSettings(normalize=True)
    tokenizer = Tokenizer.from_files(files)
    save_static(table, tokenizer, target, settings=settings, overwrite=overwrite)
    return vectors
