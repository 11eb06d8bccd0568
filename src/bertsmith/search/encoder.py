"""The model of an index: texts and queries to vectors, and the record of what computes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bertsmith.errors import ConfigError, unknown
from bertsmith.folders.keys import sentence_key
from bertsmith.runtime.loading import LoadedModel, load
from bertsmith.runtime.selection import Precision
from bertsmith.search.store import EncoderRecord, Matrix, Metric

if TYPE_CHECKING:
    from bertsmith.models.sentence_spec import SentenceSettings
    from bertsmith.runtime.embedder import EncodingAccount, Progress

BYTES_PER_TOKEN = 4  # about, in English and in Chinese
TOKENS_PER_TEXT = 32
QUERY_PROMPT = "query"
TEXT_PROMPTS = ("document", "passage", "corpus")


class IndexEncoder(Protocol):
    """What an index needs of a model."""

    @property
    def record(self) -> EncoderRecord:
        """What decides the vectors."""

    @property
    def dimension(self) -> int:
        """D, the width of a vector."""

    def texts(self, texts: Sequence[str]) -> Matrix:
        """Texts of an index -> (n, D)."""

    def queries(self, texts: Sequence[str]) -> Matrix:
        """Queries -> (n, D)."""


def loaded_model(
    given: LoadedModel | str | Path, *, device: str = "cpu", precision: Precision = "auto"
) -> tuple[LoadedModel, str | Path]:
    """A model by name, or one that is loaded already, with the name or folder it comes from."""
    if isinstance(given, LoadedModel):
        return given, given.name
    return load(given, device=device, precision=precision), given


class ModelEncoder:
    """A loaded model with the prompts of an index."""

    def __init__(
        self,
        model: LoadedModel,
        name: str | Path,
        *,
        prompt: str | None = None,
        query_prompt: str | None = None,
        precision: str = "auto",
    ) -> None:
        """Prompts that are not given are those called document and query, if the model has them."""
        self.model = model
        settings = model.settings
        self.record = EncoderRecord(
            model=_lasting_name(name),
            key=sentence_key(name),
            pooling=_pooling(settings),
            prompt=_prompt(settings, prompt, TEXT_PROMPTS),
            query_prompt=_prompt(settings, query_prompt, (QUERY_PROMPT,)),
            precision=precision,
        )
        self.account: EncodingAccount | None = None
        self.progress: Progress | None = None

    @property
    def dimension(self) -> int:
        """D, the width of a vector."""
        return self.model.dimension

    @property
    def metric(self) -> Metric:
        """How the model compares vectors."""
        kind = self.model.settings.similarity
        if kind == "cosine" or kind == "dot":
            return kind
        raise ConfigError(
            f"the model compares vectors by {kind}, and an index by cosine or dot; "
            "set --metric cosine"
        )

    def settle(self, size: int) -> str:
        """Select the engine for texts of so many bytes, for good; its name."""
        tokens = max(1, size // BYTES_PER_TOKEN)
        return self.model.settle(tokens, max(1, tokens // TOKENS_PER_TEXT))

    def texts(self, texts: Sequence[str]) -> Matrix:
        """Texts of an index -> (n, D)."""
        return self.model.encode(
            texts, prompt=self.record.prompt, account=self.account, progress=self.progress
        )

    def queries(self, texts: Sequence[str]) -> Matrix:
        """Queries -> (n, D)."""
        return self.model.encode(list(texts), prompt=self.record.query_prompt)


def _lasting_name(name: str | Path) -> str:
    """A name that means the same in every folder; a path becomes absolute."""
    return str(Path(name).resolve()) if Path(name).exists() else str(name)


def _prompt(settings: SentenceSettings, given: str | None, usual: Sequence[str]) -> str | None:
    if given is not None:
        if given not in settings.prompts:
            raise unknown("prompt of this model", given, settings.prompts)
        return given
    known = [name for name in usual if name in settings.prompts]
    return known[0] if known else settings.default_prompt


def _pooling(settings: SentenceSettings) -> str:
    """Pooling and what follows it, for messages; the key holds all of it."""
    parts = ["+".join(settings.pooling)]
    if settings.layer_mix is not None:
        parts.append("layers " + " ".join(f"{weight:g}" for weight in settings.layer_mix))
    parts += [f"dense {layer.inputs} to {layer.outputs}" for layer in settings.dense]
    return ", ".join(parts)
