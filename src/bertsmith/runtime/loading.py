"""`load` a model for applications, `load_model` for research, `predict` in one call."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Self

import torch

from bertsmith.errors import check_type, unknown
from bertsmith.folders import read
from bertsmith.folders.kinds import (
    MODEL,
    STATIC,
    abilities_at,
    kind_at,
    model_abilities,
    refusal,
)
from bertsmith.folders.read import ModelFolder
from bertsmith.folders.static import load_static
from bertsmith.hardware.devices import torch_device
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.runtime.embedder import Embedder
from bertsmith.runtime.host import Host
from bertsmith.runtime.selection import PRECISIONS, Notice, Precision, weights_dtype
from bertsmith.runtime.text_vectors import TableVectors

if TYPE_CHECKING:
    from bertsmith.folders.generation import By
    from bertsmith.models.build import Model
    from bertsmith.runtime.attention import TextAttention
    from bertsmith.runtime.corrector import Corrector
    from bertsmith.runtime.generation.filling import FilledText, FillingOptions
    from bertsmith.runtime.generation.generator import TextGenerator
    from bertsmith.runtime.generation.options import Generated, GenerationOptions
    from bertsmith.runtime.mask_filling import Filled, MaskedModel
    from bertsmith.runtime.predictor import ModelPredictor, Row
    from bertsmith.runtime.scoring import Hide, TextScore
    from bertsmith.tasks.prediction import Prediction
    from bertsmith.tasks.spelling.edits import CorrectedText
    from bertsmith.text.tokenizer import Tokenizer

log = logging.getLogger(__name__)


class LoadedModel(Embedder):
    """One model in memory: vectors, predictions, mask filling, scores and text, from any thread.

    `abilities` says which of the methods work: `predict` needs a fine-tuned folder, `fill` and
    `score` one with a masked-LM head, `generate` and `stream` one that writes, `correct` one that
    was trained to correct; others raise FolderError.

    `close`, or a `with` block, ends the worker threads at once.
    """

    def __init__(
        self,
        source: Host | TableVectors,
        settings: SentenceSettings,
        name: str | Path,
        folder: ModelFolder | None = None,
    ) -> None:
        """`source` is an encoder of `folder`, or static vectors; `name` is what was loaded."""
        super().__init__(source, settings)
        self.name = name
        self._encoder = (source, folder) if isinstance(source, Host) and folder else None
        self._lock = threading.Lock()
        self._predictor: ModelPredictor | None = None
        self._masked: MaskedModel | None = None
        self._corrector: Corrector | None = None
        self._generators: dict[By | None, TextGenerator] = {}

    @cached_property
    def abilities(self) -> frozenset[str]:
        """What this model can do, by the names of `ABILITIES`: "embed", "predict", "fill" ..."""
        if self._encoder is None:
            return frozenset({"tokenize", "embed"})
        host, folder = self._encoder
        return model_abilities(host.model.spec, list(host.model.heads), folder.opened.own)

    def need(self, ability: str) -> None:
        """Refuse what this model cannot do, with what to give instead."""
        if ability not in self.abilities:
            kind = STATIC if self._encoder is None else MODEL
            raise refusal(self.name, kind, ability)

    @property
    def host(self) -> Host:
        """The encoder in memory, with its engine and workers."""
        return self._hosted("encode")[0]

    def _hosted(self, ability: str) -> tuple[Host, ModelFolder]:
        """The encoder and its folder; static vectors have neither."""
        if self._encoder is None:
            raise refusal(self.name, STATIC, ability)
        return self._encoder

    @property
    def model(self) -> Model:
        """The modules of torch."""
        return self.host.model

    @property
    def predictor(self) -> ModelPredictor:
        """The predictor of a fine-tuned folder, made at its first use."""
        from bertsmith.runtime.load_predictor import predictor_of  # not needed for vectors

        with self._lock:
            self._predictor = self._predictor or predictor_of(*self._hosted("predict"))
            return self._predictor

    @property
    def masked(self) -> MaskedModel:
        """The masked LM, made at its first use."""
        from bertsmith.runtime.mask_filling import MaskedModel

        with self._lock:
            self._masked = self._masked or MaskedModel.of(*self._hosted("fill"))
            return self._masked

    @property
    def corrector(self) -> Corrector:
        """The corrector of a folder that was trained to correct, made at its first use."""
        from bertsmith.runtime.corrector import Corrector

        with self._lock:
            self._corrector = self._corrector or Corrector.of(*self._hosted("correct"))
            return self._corrector

    def generator(self, by: By | None = None) -> TextGenerator:
        """The generator of a folder that writes, made at its first use.

        `by` is for models of other software that were trained to write, mask or shift.
        """
        from bertsmith.runtime.generation.load_generator import generator_of

        with self._lock:
            if by not in self._generators:
                self._generators[by] = generator_of(*self._hosted("generate"), by)
            return self._generators[by]

    def predict(self, rows: Iterable[Row]) -> list[Prediction]:
        """A prediction for each text, or tuple of fields, by a fine-tuned model."""
        return self.predictor.predict(rows)

    def correct(
        self, texts: Iterable[str], *, threshold: float | None = None
    ) -> list[CorrectedText]:
        """Each text with the edits of a corrector; its own threshold if none is given."""
        return self.corrector.correct(texts, threshold=threshold)

    def fill(self, text: str, *, top: int = 5) -> Filled:
        """The likeliest tokens for each mask of a text."""
        return self.masked.fill(text, top=top)

    def score(self, texts: Iterable[str], *, hide: Hide = "token") -> list[TextScore]:
        """The pseudo-log-likelihood of each text, token by token."""
        from bertsmith.runtime.scoring import score_texts

        return list(score_texts(self.masked, texts, hide=hide))

    def attention(
        self,
        texts: Iterable[str | Sequence[str]],
        *,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
        projections: bool = False,
    ) -> list[TextAttention]:
        """The attention between the tokens of each text, or pair of texts: weights (L, H, n, n).

        `layers` and `heads` are numbers from 0 on, None for all. With `projections` also queries,
        keys and values (L, H, n, K).
        """
        from bertsmith.runtime.attention import text_attention

        return text_attention(self.host, texts, layers=layers, heads=heads, projections=projections)

    def sample_by_filling(self, options: FillingOptions | None = None) -> list[FilledText]:
        """Texts that a masked LM writes by masking and filling one place after another."""
        from bertsmith.runtime.generation.filling import FillingOptions, sample_by_filling

        return sample_by_filling(self.masked, options or FillingOptions())

    def generate(
        self, texts: Iterable[str], options: GenerationOptions | None = None
    ) -> list[Generated]:
        """What the model writes for each text, with scores and why it stopped."""
        from bertsmith.runtime.generation.options import GREEDY

        chosen = options or GREEDY
        return self.generator(chosen.by).generate(texts, chosen)

    def stream(self, text: str, options: GenerationOptions | None = None) -> Iterator[str]:
        """What the model writes for one text, in pieces that no longer change; not with beams."""
        from bertsmith.runtime.generation.options import GREEDY

        chosen = options or GREEDY
        return self.generator(chosen.by).stream(text, chosen)

    def close(self) -> None:
        """End the worker threads."""
        if self._encoder is not None:
            self._encoder[0].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def load(
    name: str | Path,
    *,
    device: str = "cpu",
    precision: Precision = "auto",
    threads: int | None = None,
    notice: Notice = log.info,
) -> LoadedModel:
    """A model by path or name ("all-MiniLM-L6-v2"), ready for `encode`.

    A fine-tuned one is also ready for `predict`, one with a masked-LM head for `fill` and `score`,
    one that writes for `generate`.
    The weights are in memory once.

    `precision` "auto" is fp32, or bf16 with float32 sums where a probe has proven it here; "fp32"
    is exact everywhere. `notice` gets a line whenever the engine changes.
    """
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    check_type("threads", threads, int, NoneType)
    where = torch_device(device)
    kind, place = kind_at(name)
    if kind is STATIC:
        static = load_static(place, device=str(where))
        table = TableVectors(static.table, static.tokenizer)
        return LoadedModel(table, static.settings, name)
    if isinstance(place, Path):
        raise refusal(place, kind, "embed")
    loaded = read.load_model(place, device=str(where), dtype=weights_dtype(where, precision))
    if loaded.folder.sentence is None:
        log.info("%s has no pooling settings; using mean pooling", loaded.folder.path)
    host = Host(
        loaded.model,
        loaded.tokenizer,
        device=where,
        precision=precision,
        threads=threads,
        notice=notice,
    )
    log.debug("%s on %s", loaded.folder.path, host.engines.engine.name)  # no engine: an error now
    return LoadedModel(host, loaded.sentence, name, loaded.folder)


def load_model(
    name: str | Path, *, device: str = "cpu", dtype: torch.dtype | None = None
) -> tuple[Model, Tokenizer]:
    """The torch module of a model, in evaluation mode, and its tokenizer.

    `model(Inputs.padded(ids, attention_mask)).hidden` are the last hidden states of all tokens, as
    packed rows (T, D); `want=Want(layers=True)` keeps those of every layer.
    """
    check_type("dtype", dtype, torch.dtype, NoneType)
    loaded = read.load_model(name, device=str(torch_device(device)), dtype=dtype)
    return loaded.model.eval(), loaded.tokenizer


def predict(
    name: str | Path, rows: Iterable[Row], *, device: str = "cpu", precision: Precision = "auto"
) -> list[Prediction]:
    """Predictions of a fine-tuned folder for texts, or tuples of fields."""
    if "words" in abilities_at(name):
        from bertsmith.runtime.load_predictor import load_predictor

        return load_predictor(name, device=device, precision=precision).predict(rows)
    with load(name, device=device, precision=precision) as model:
        return model.predict(rows)
