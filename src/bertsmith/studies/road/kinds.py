"""The models of a road, as a table: how each is trained, what scores text, what gives vectors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from bertsmith.classic.elmo.folder import open_elmo
from bertsmith.classic.elmo.learner import elmo_learner
from bertsmith.classic.elmo.settings import ElmoSettings
from bertsmith.classic.gpt.folder import open_gpt
from bertsmith.classic.gpt.learner import gpt_learner
from bertsmith.classic.gpt.settings import GptSettings
from bertsmith.classic.language_model import LanguageModel
from bertsmith.classic.neural.folder import open_neural
from bertsmith.classic.neural.learner import neural_learner
from bertsmith.classic.neural.line_job import LineJob
from bertsmith.classic.neural.settings import LstmSettings, NeuralSettings, NnlmSettings
from bertsmith.classic.ngram.estimation import NgramSettings
from bertsmith.classic.ngram.folder import open_ngram
from bertsmith.classic.ngram.train import train_ngram
from bertsmith.classic.stream.stream import WordStream
from bertsmith.classic.word2vec.settings import Word2VecSettings
from bertsmith.classic.word2vec.train import train_word2vec
from bertsmith.classic.word_vectors.word_vectors import WordVectors
from bertsmith.config import Settings, overridden, validated
from bertsmith.folders.read import load_model
from bertsmith.models.build import Model
from bertsmith.studies.road.material import RoadMaterial
from bertsmith.studies.road.readers import (
    ContextReader,
    ElmoContexts,
    ElmoInputs,
    InputReader,
    PieceReader,
    PieceRows,
    WordPieces,
    WordTable,
)
from bertsmith.training.execution.execution import Execution
from bertsmith.training.learner import Learner, run_job
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.training.pretrain.pretrain import Job, pretrain
from bertsmith.training.pretrain.recipe import load_recipe

COUNTED = "it counts n-grams and has no vectors"
ONE_VECTOR = "it has one vector per word, whatever the sentence"
NOT_LEFT_TO_RIGHT = "it does not predict text from left to right"
WORDS_PER_SECOND = 400_000  # of word2vec on one thread, about
MOST_EPOCHS = 5
WINDOW = 128  # tokens that GPT and BERT read together


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadTraining:
    """One training: on what, for how long, in which folder.

    Exactly one of `seconds` and `steps`; `settings` are changes of those of the kind.
    """

    material: RoadMaterial
    out: Path
    seconds: float | None
    steps: int | None
    settings: tuple[str, ...] = ()
    execution: Execution = field(default_factory=Execution)
    watch: Watcher | None = None

    @property
    def plan(self) -> dict[str, Any]:
        """How long, as the settings of all neural models have it."""
        if self.seconds is not None:
            return {"budget": self.seconds, "evaluate_every": 500}
        return {"steps": self.steps, "evaluations": 2}

    @property
    def save(self) -> dict[str, Any]:
        """When checkpoints are written."""
        every = 1_000 if self.steps is None else max(1, self.steps // 4)
        return {"every": every, "seconds": 60.0}

    def validated(self, settings: type[Settings], tree: dict[str, Any]) -> Any:
        """The settings of a kind with the changes laid over them."""
        tree = {**tree, "save": self.save, "seed": self.material.request.seed}
        return validated(settings, overridden(tree, self.settings), "settings of the road")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadModel:
    """A trained model: what it can be asked; `parameters` are the numbers that were learned."""

    parameters: int
    language_model: LanguageModel | None = None
    contexts: ContextReader | None = None
    inputs: InputReader | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadKind:
    """One model of a road; `share` is that of the time, in percent.

    `train` answers how training went, or its seconds where there is no loop. `lacks` are the
    columns that this kind cannot have, each with its reason.
    """

    title: str
    about: str
    share: float
    train: Callable[[RoadTraining], Outcome | float]
    open: Callable[[Path, RoadMaterial], RoadModel]
    lacks: Mapping[str, str] = field(default_factory=dict)


def _train_ngram(job: RoadTraining) -> float:
    began = time.monotonic()
    tree = {"order": 5, "fallback": True}
    settings = validated(NgramSettings, overridden(tree, job.settings), "settings of the road")
    if not (job.out / "config.json").is_file():
        train_ngram(job.material.pieces, settings, job.out)
    return time.monotonic() - began


def _open_ngram(path: Path, material: RoadMaterial) -> RoadModel:
    model = open_ngram(path)
    numbers = [len(one.keys) * (1 if one.backoffs is None else 2) for one in model.orders]
    return RoadModel(parameters=sum(numbers), language_model=model)


def _train_word2vec(job: RoadTraining) -> float:
    """By the clock as many epochs as fit, by steps all of them on one thread, which repeats."""
    stream = job.material.words
    tree: dict[str, Any] = {"seed": job.material.request.seed}
    if job.seconds is not None:
        fitting = job.seconds * WORDS_PER_SECOND / max(1, len(stream.ids))
        tree["epochs"] = min(MOST_EPOCHS, max(1, round(fitting)))
    settings = validated(Word2VecSettings, overridden(tree, job.settings), "settings of the road")
    began = time.monotonic()
    by_clock = job.seconds is not None
    train_word2vec(
        stream,
        settings,
        job.out,
        threads=torch.get_num_threads() if by_clock else 1,
        engine="auto" if by_clock else "torch",
    )
    return time.monotonic() - began


def _open_word2vec(path: Path, material: RoadMaterial) -> RoadModel:
    vectors = WordVectors.read(path)
    return RoadModel(parameters=2 * vectors.matrix.size, inputs=WordTable(vectors))


def _train_lines(
    job: RoadTraining, learner: Learner[Any, Any, Any], settings: Any, stream: WordStream
) -> Outcome:
    """In the one loop, by the perplexity of the lines that are held out."""
    lines = LineJob(
        settings=settings,
        stream=stream,
        out=job.out,
        held_out=job.material.validation(stream),
        rule=stream.rule,
    )
    return run_job(learner, lines, execution=job.execution, watch=job.watch).outcome


def _neural(settings: type[NeuralSettings]) -> Callable[[RoadTraining], Outcome]:
    def train(job: RoadTraining) -> Outcome:
        chosen = job.validated(settings, {"plan": job.plan})
        return _train_lines(job, neural_learner(), chosen, job.material.pieces)

    return train


def _open_neural(path: Path, material: RoadMaterial) -> RoadModel:
    model = open_neural(path)
    vectors = model.word_vectors()
    numbers = [material.tokenizer.token_to_id(word) for word in vectors.words]
    rows = {n: row for n, row in zip(numbers, vectors.matrix, strict=True) if n is not None}
    return RoadModel(
        parameters=_count(model.network),
        language_model=model,
        inputs=PieceRows(pieces=WordPieces(material.tokenizer), rows=rows, width=vectors.dimension),
    )


def _train_elmo(job: RoadTraining) -> Outcome:
    settings = job.validated(ElmoSettings, {"plan": {**job.plan, "window": 100}})
    return _train_lines(job, elmo_learner(), settings, job.material.words)


def _open_elmo(path: Path, material: RoadMaterial) -> RoadModel:
    model = open_elmo(path)
    reader = model.reader()
    return RoadModel(
        parameters=_count(model.module),
        language_model=model,
        contexts=ElmoContexts(reader),
        inputs=ElmoInputs(reader),
    )


def _train_gpt(job: RoadTraining) -> Outcome:
    tree = {
        "model": {"size": job.material.request.size, "positions": WINDOW},
        "plan": {**job.plan, "window": WINDOW},
    }
    settings = job.validated(GptSettings, tree)
    return _train_lines(job, gpt_learner(), settings, job.material.pieces)


def _open_gpt(path: Path, material: RoadMaterial) -> RoadModel:
    model = open_gpt(path)
    return _encoder(model.model, material, language_model=model)


def _train_bert(job: RoadTraining) -> Outcome:
    length = f"steps={job.steps}" if job.seconds is None else f"budget={job.seconds}"
    changes = [
        f"model.size={job.material.request.size}",
        f"model.positions={WINDOW}",
        f"input.max_length={WINDOW}",
        "stages=[]",
        f"schedule.{length}",
        "batch.tokens=4096",
        "batch.micro_tokens=4096",
        "eval.held_out=0",  # the documents that are held out are those of the road
        f"save.every={job.save['every']}",
        f"save.seconds={job.save['seconds']}",
        f"run.seed={job.material.request.seed}",
        *job.settings,
    ]
    recipe = load_recipe("fast", changes)
    return pretrain(
        Job(recipe=recipe, corpus=job.material.shards, out=job.out),
        execution=job.execution,
        watch=job.watch,
    )


def _open_bert(path: Path, material: RoadMaterial) -> RoadModel:
    return _encoder(load_model(path).model, material)


def _encoder(
    model: Model, material: RoadMaterial, language_model: LanguageModel | None = None
) -> RoadModel:
    pieces = WordPieces(material.tokenizer)
    rows = model.encoder.embeddings.tokens.weight.detach().float().numpy()
    return RoadModel(
        parameters=_count(model),
        language_model=language_model,
        contexts=PieceReader(model=model, pieces=pieces, window=WINDOW),
        inputs=PieceRows(pieces=pieces, rows=dict(enumerate(rows)), width=rows.shape[1]),
    )


def _count(module: Any) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


NO_PSEUDO = "only a masked language model has it"
NO_DIRECTIONS = "only ELMo is two models, one in each direction"
LEFT_TO_RIGHT = {"pseudo_perplexity": NO_PSEUDO, "directions": NO_DIRECTIONS}
STATIC = {"similarity_contexts": ONE_VECTOR, "analogies_contexts": ONE_VECTOR}
UNRANKED = ("perplexity_piece", "perplexity_word", "bits_per_character", "rank")

ROAD_KINDS: dict[str, RoadKind] = {
    "ngram": RoadKind(
        title="n-gram",
        about="interpolated modified Kneser-Ney",
        share=1.0,
        train=_train_ngram,
        open=_open_ngram,
        lacks={
            **LEFT_TO_RIGHT,
            **dict.fromkeys(
                (
                    "similarity_contexts",
                    "similarity_inputs",
                    "analogies_contexts",
                    "analogies_inputs",
                    "probe",
                    "senses",
                ),
                COUNTED,
            ),
        },
    ),
    "word2vec": RoadKind(
        title="word2vec",
        about="skip-gram with negative sampling",
        share=4.0,
        train=_train_word2vec,
        open=_open_word2vec,
        lacks={
            **LEFT_TO_RIGHT,
            **STATIC,
            **dict.fromkeys(UNRANKED, "it predicts neighbors of words, not text"),
        },
    ),
    "nnlm": RoadKind(
        title="NNLM",
        about="Bengio's network, the last four pieces",
        share=19.0,
        train=_neural(NnlmSettings),
        open=_open_neural,
        lacks={**LEFT_TO_RIGHT, **STATIC},
    ),
    "lstm": RoadKind(
        title="LSTM",
        about="one recurrent layer, states reset at line ends",
        share=19.0,
        train=_neural(LstmSettings),
        open=_open_neural,
        lacks={**LEFT_TO_RIGHT, **STATIC},
    ),
    "elmo": RoadKind(
        title="ELMo",
        about="characters of words, two LSTM layers in each direction",
        share=19.0,
        train=_train_elmo,
        open=_open_elmo,
        lacks={
            "pseudo_perplexity": NO_PSEUDO,
            **dict.fromkeys(UNRANKED, "it predicts words of its own vocabulary, not pieces"),
        },
    ),
    "gpt": RoadKind(
        title="GPT",
        about="causal attention on BERT's blocks",
        share=19.0,
        train=_train_gpt,
        open=_open_gpt,
        lacks=LEFT_TO_RIGHT,
    ),
    "bert": RoadKind(
        title="BERT",
        about="masked language model",
        share=19.0,
        train=_train_bert,
        open=_open_bert,
        lacks={"directions": NO_DIRECTIONS, **dict.fromkeys(UNRANKED, NOT_LEFT_TO_RIGHT)},
    ),
}
