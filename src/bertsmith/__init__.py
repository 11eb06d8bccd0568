"""bertsmith: BERT models from any folder, exact vectors, fast on a CPU."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from bertsmith.hardware.openmp import limit_spinning
from bertsmith.lazy_names import homes_of, imported

if TYPE_CHECKING:
    from bertsmith.api.corpus import build_corpus as build_corpus
    from bertsmith.api.correction import correct as correct
    from bertsmith.api.estimators import TextClassifier as TextClassifier
    from bertsmith.api.estimators import TextRegressor as TextRegressor
    from bertsmith.api.estimators import TextTagger as TextTagger
    from bertsmith.api.evaluate import evaluate as evaluate
    from bertsmith.api.finetune import finetune as finetune
    from bertsmith.api.language_models import LmRequest as LmRequest
    from bertsmith.api.language_models import MixtureScore as MixtureScore
    from bertsmith.api.language_models import (
        generate_with_language_model as generate_with_language_model,
    )
    from bertsmith.api.language_models import score_language_model as score_language_model
    from bertsmith.api.language_models import score_mixture as score_mixture
    from bertsmith.api.language_models import train_language_model as train_language_model
    from bertsmith.api.map import MapOptions as MapOptions
    from bertsmith.api.map import TextMap as TextMap
    from bertsmith.api.map import map_texts as map_texts
    from bertsmith.api.pretrain import pretrain as pretrain
    from bertsmith.api.search import IndexOptions as IndexOptions
    from bertsmith.api.search import build_index as build_index
    from bertsmith.api.search import nearest as nearest
    from bertsmith.api.search import search_index as search_index
    from bertsmith.api.search import similar_pairs as similar_pairs
    from bertsmith.api.sentences import SentenceEvaluation as SentenceEvaluation
    from bertsmith.api.sentences import evaluate_sentences as evaluate_sentences
    from bertsmith.api.sentences import train_sentences as train_sentences
    from bertsmith.api.similar import SimilarText as SimilarText
    from bertsmith.api.similar import similar_sentences as similar_sentences
    from bertsmith.api.studies import ablate as ablate
    from bertsmith.api.studies import road as road
    from bertsmith.api.train import TrainedModel as TrainedModel
    from bertsmith.api.vectors import flow_vectors as flow_vectors
    from bertsmith.api.vectors import static_vectors as static_vectors
    from bertsmith.api.vectors import tune_vectors as tune_vectors
    from bertsmith.api.vectors import whiten_vectors as whiten_vectors
    from bertsmith.api.word_vectors import evaluate_word_vectors as evaluate_word_vectors
    from bertsmith.api.word_vectors import load_word_vectors as load_word_vectors
    from bertsmith.api.word_vectors import train_word_vectors as train_word_vectors
    from bertsmith.classic.kinds import open_lm as open_lm
    from bertsmith.classic.language_model import LmScore as LmScore
    from bertsmith.classic.stream.stream import WordReading as WordReading
    from bertsmith.classic.word2vec.settings import Word2VecSettings as Word2VecSettings
    from bertsmith.classic.word_vectors.word_vectors import WordVectors as WordVectors
    from bertsmith.corpus.report import CorpusReport as CorpusReport
    from bertsmith.corpus.shards import Corpus as Corpus
    from bertsmith.corpus.shards import open_corpus as open_corpus
    from bertsmith.corpus.sources import CorpusSettings as CorpusSettings
    from bertsmith.errors import BertsmithError as BertsmithError
    from bertsmith.folders.read import load_tokenizer as load_tokenizer
    from bertsmith.labeled.example import Example as Example
    from bertsmith.labeled.example import Label as Label
    from bertsmith.labeled.guess.guess_spec import guess_spec as guess_spec
    from bertsmith.labeled.read.reader import read_examples as read_examples
    from bertsmith.labeled.spec import DataSpec as DataSpec
    from bertsmith.labeled.split.splits import load_splits as load_splits
    from bertsmith.labeled.texts import read_texts as read_texts
    from bertsmith.runtime.corrector import Corrector as Corrector
    from bertsmith.runtime.embedder import Embedder as Embedder
    from bertsmith.runtime.embedder import EncodingAccount as EncodingAccount
    from bertsmith.runtime.ensemble import load_ensemble as load_ensemble
    from bertsmith.runtime.generation.filling import FilledText as FilledText
    from bertsmith.runtime.generation.filling import FillingOptions as FillingOptions
    from bertsmith.runtime.generation.options import Answer as Answer
    from bertsmith.runtime.generation.options import Generated as Generated
    from bertsmith.runtime.generation.options import GenerationOptions as GenerationOptions
    from bertsmith.runtime.loading import LoadedModel as LoadedModel
    from bertsmith.runtime.loading import load as load
    from bertsmith.runtime.loading import load_model as load_model
    from bertsmith.runtime.loading import predict as predict
    from bertsmith.runtime.word_embedder import WordEmbedder as WordEmbedder
    from bertsmith.runtime.word_embedder import WordLayers as WordLayers
    from bertsmith.runtime.word_embedder import load_words as load_words
    from bertsmith.search.index import Index as Index
    from bertsmith.search.store import Hit as Hit
    from bertsmith.serve.clients.client import Client as Client
    from bertsmith.tasks.spelling.edits import CorrectedText as CorrectedText
    from bertsmith.tasks.spelling.edits import Edit as Edit
    from bertsmith.text.learn import learn_vocabulary as learn_vocabulary
    from bertsmith.text.tokenizer import Tokenizer as Tokenizer
    from bertsmith.text.truncation import FieldBudgets as FieldBudgets
    from bertsmith.text.truncation import Truncation as Truncation
    from bertsmith.text.truncation import Windows as Windows

__version__ = "0.1.0"

limit_spinning()  # here, because whatever loads torch for us imports this package first

# Module -> public names. Imported at their first use: `import bertsmith` must not pay for torch.
_MODULES = {
    "bertsmith.api.correction": ("correct",),
    "bertsmith.api.evaluate": ("evaluate",),
    "bertsmith.api.finetune": ("finetune",),
    "bertsmith.api.language_models": (
        "LmRequest",
        "MixtureScore",
        "generate_with_language_model",
        "score_language_model",
        "score_mixture",
        "train_language_model",
    ),
    "bertsmith.api.map": ("MapOptions", "TextMap", "map_texts"),
    "bertsmith.api.pretrain": ("pretrain",),
    "bertsmith.api.studies": ("ablate", "road"),
    "bertsmith.api.search": (
        "IndexOptions",
        "build_index",
        "nearest",
        "search_index",
        "similar_pairs",
    ),
    "bertsmith.api.sentences": (
        "SentenceEvaluation",
        "evaluate_sentences",
        "train_sentences",
    ),
    "bertsmith.api.train": ("TrainedModel",),
    "bertsmith.api.similar": ("SimilarText", "similar_sentences"),
    "bertsmith.api.vectors": (
        "flow_vectors",
        "static_vectors",
        "tune_vectors",
        "whiten_vectors",
    ),
    "bertsmith.classic.kinds": ("open_lm",),
    "bertsmith.classic.language_model": ("LmScore",),
    "bertsmith.api.word_vectors": (
        "evaluate_word_vectors",
        "load_word_vectors",
        "train_word_vectors",
    ),
    "bertsmith.classic.word_vectors.word_vectors": ("WordVectors",),
    "bertsmith.classic.word2vec.settings": ("Word2VecSettings",),
    "bertsmith.errors": ("BertsmithError",),
    "bertsmith.api.estimators": ("TextClassifier", "TextRegressor", "TextTagger"),
    "bertsmith.runtime.corrector": ("Corrector",),
    "bertsmith.runtime.embedder": ("Embedder", "EncodingAccount"),
    "bertsmith.runtime.generation.filling": ("FilledText", "FillingOptions"),
    "bertsmith.runtime.generation.options": ("Answer", "Generated", "GenerationOptions"),
    "bertsmith.runtime.loading": ("LoadedModel", "load", "load_model", "predict"),
    "bertsmith.runtime.word_embedder": ("WordEmbedder", "WordLayers", "load_words"),
    "bertsmith.search.index": ("Index",),
    "bertsmith.search.store": ("Hit",),
    "bertsmith.serve.clients.client": ("Client",),
    "bertsmith.tasks.spelling.edits": ("CorrectedText", "Edit"),
    "bertsmith.text.tokenizer": ("Tokenizer",),
    "bertsmith.labeled.spec": ("DataSpec",),
    "bertsmith.labeled.example": (
        "Label",
        "Example",
    ),
    "bertsmith.labeled.guess.guess_spec": ("guess_spec",),
    "bertsmith.labeled.read.reader": ("read_examples",),
    "bertsmith.labeled.split.splits": ("load_splits",),
    "bertsmith.labeled.texts": ("read_texts",),
    "bertsmith.text.truncation": (
        "Windows",
        "Truncation",
        "FieldBudgets",
    ),
    "bertsmith.text.learn": ("learn_vocabulary",),
    "bertsmith.folders.read": ("load_tokenizer",),
    "bertsmith.api.corpus": ("build_corpus",),
    "bertsmith.corpus.report": ("CorpusReport",),
    "bertsmith.corpus.sources": ("CorpusSettings",),
    "bertsmith.corpus.shards": (
        "open_corpus",
        "Corpus",
    ),
    "bertsmith.runtime.ensemble": ("load_ensemble",),
    "bertsmith.classic.stream.stream": ("WordReading",),
}
_HOMES = homes_of(_MODULES)

__all__ = [
    "Answer",
    "BertsmithError",
    "Client",
    "Corpus",
    "CorpusReport",
    "CorpusSettings",
    "CorrectedText",
    "Corrector",
    "DataSpec",
    "Edit",
    "Embedder",
    "EncodingAccount",
    "Example",
    "FieldBudgets",
    "FilledText",
    "FillingOptions",
    "Generated",
    "GenerationOptions",
    "Hit",
    "Index",
    "IndexOptions",
    "Label",
    "LmRequest",
    "LmScore",
    "LoadedModel",
    "MapOptions",
    "MixtureScore",
    "SentenceEvaluation",
    "SimilarText",
    "TextClassifier",
    "TextMap",
    "TextRegressor",
    "TextTagger",
    "Tokenizer",
    "TrainedModel",
    "Truncation",
    "Windows",
    "Word2VecSettings",
    "WordEmbedder",
    "WordLayers",
    "WordReading",
    "WordVectors",
    "__version__",
    "ablate",
    "build_corpus",
    "build_index",
    "correct",
    "evaluate",
    "evaluate_sentences",
    "evaluate_word_vectors",
    "finetune",
    "flow_vectors",
    "generate_with_language_model",
    "guess_spec",
    "learn_vocabulary",
    "load",
    "load_ensemble",
    "load_model",
    "load_splits",
    "load_tokenizer",
    "load_word_vectors",
    "load_words",
    "map_texts",
    "nearest",
    "open_corpus",
    "open_lm",
    "predict",
    "pretrain",
    "read_examples",
    "read_texts",
    "road",
    "score_language_model",
    "score_mixture",
    "search_index",
    "similar_pairs",
    "similar_sentences",
    "static_vectors",
    "train_language_model",
    "train_sentences",
    "train_word_vectors",
    "tune_vectors",
    "whiten_vectors",
]


def __getattr__(name: str) -> Any:
    """The public name, imported at its first use."""
    if name == "parts":
        return importlib.import_module("bertsmith.parts")
    return imported(__name__, _HOMES, name)


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted(__all__)
