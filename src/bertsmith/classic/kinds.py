"""The kinds of language models, as a table: what trains each and what opens its folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

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
from bertsmith.classic.neural.settings import GruSettings, LstmSettings, NnlmSettings
from bertsmith.classic.ngram.estimation import NgramSettings
from bertsmith.classic.ngram.folder import open_ngram
from bertsmith.classic.ngram.train import is_trained, train_ngram
from bertsmith.classic.stream.stream import WordStream
from bertsmith.config import Settings
from bertsmith.errors import FolderError, check_type, unknown
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.extras import LANGUAGE_MODEL
from bertsmith.folders.kinds import MODEL, need
from bertsmith.folders.opened import OpenFolder
from bertsmith.training.learner import Learner, run_job
from bertsmith.training.loop.progress import Watcher


class TrainLm(Protocol):
    """Trains a model and writes its folder; the same call resumes where the kind can."""

    def __call__(
        self,
        stream: WordStream,
        settings: Settings,
        out: Path,
        *,
        held_out: WordStream | None = None,
        watch: Watcher | None = None,
    ) -> None:
        """`held_out` has the words of `stream`; without it a kind that needs one takes a share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LmKind:
    """A kind of language model.

    `settings` are its own, with defaults for all; `train` and `open` work on a model folder.
    `finished` tells from the key of a text whether its model is there, and refuses another one;
    kinds that are trained in the loop find that out from their run.
    """

    about: str
    settings: type[Settings]
    train: TrainLm
    open: Callable[[Path], LanguageModel]
    finished: Callable[[Path, str, Settings], bool] | None = None


def _by(learner: Learner[Any, Any, Any]) -> TrainLm:
    """The training of a kind that learns from lines in the one loop."""

    def train_folder(
        stream: WordStream,
        settings: Settings,
        out: Path,
        *,
        held_out: WordStream | None = None,
        watch: Watcher | None = None,
    ) -> None:
        chosen: Any = settings  # of the class that the table has for the kind
        job = LineJob(settings=chosen, stream=stream, out=out, held_out=held_out, rule=stream.rule)
        run_job(learner, job, watch=watch)

    return train_folder


LM_KINDS: dict[str, LmKind] = {
    "ngram": LmKind(
        about="counts of up to n words, smoothed by interpolated modified Kneser-Ney",
        settings=NgramSettings,
        train=train_ngram,
        open=open_ngram,
        finished=is_trained,
    ),
    "nnlm": LmKind(
        about="Bengio's network: the last few words, concatenated, and a tanh layer",
        settings=NnlmSettings,
        train=_by(neural_learner()),
        open=open_neural,
    ),
    "lstm": LmKind(
        about="long short-term memory of any depth",
        settings=LstmSettings,
        train=_by(neural_learner()),
        open=open_neural,
    ),
    "gru": LmKind(
        about="gated recurrent units of any depth",
        settings=GruSettings,
        train=_by(neural_learner()),
        open=open_neural,
    ),
    "elmo": LmKind(
        about="words from characters, LSTMs in both directions (Peters et al. 2018)",
        settings=ElmoSettings,
        train=_by(elmo_learner()),
        open=open_elmo,
    ),
    "gpt": LmKind(
        about="causal attention on BERT's blocks (Radford et al. 2018)",
        settings=GptSettings,
        train=_by(gpt_learner()),
        open=open_gpt,
    ),
}


def lm_kind(name: str) -> LmKind:
    """The kind of a name; a misspelled one gets the nearest."""
    if name not in LM_KINDS:
        raise unknown("kind of language model", name, LM_KINDS)
    return LM_KINDS[name]


def open_lm(path: Path | str) -> LanguageModel:
    """The model of a folder of any kind."""
    check_type("a language model", path, str, Path)
    root = Folder.at(Path(path), wanted="the folder that `bertsmith lm train` wrote")
    folder = OpenFolder(root.keeping())
    kind = need(folder, "lm")
    name = kind.name
    if kind is MODEL:  # a model of tokens that holds a language model of words, too
        record = folder.own[LANGUAGE_MODEL]
        name = str(record.get("kind")) if isinstance(record, dict) else ""
    if name not in LM_KINDS:
        raise FolderError(
            f"{path} is no language model of these kinds: {', '.join(LM_KINDS)}; "
            "make one with: bertsmith lm train FILES --kind ngram --out DIR"
        )
    return LM_KINDS[name].open(folder.path)
