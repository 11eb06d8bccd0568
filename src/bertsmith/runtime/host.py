"""Host: one loaded model with its tokenizer, engine and workers, shared by views and threads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

from bertsmith.errors import FolderError, unknown
from bertsmith.hardware.environment import thread_count
from bertsmith.runtime.engines.batches import RowBatch
from bertsmith.runtime.engines.engine import Engine
from bertsmith.runtime.engines.workers import Workers, check_fork, run_all
from bertsmith.runtime.selection import (
    PRECISIONS,
    Engines,
    Notice,
    OneEngine,
    Precision,
    Selection,
    weights_dtype,
)

if TYPE_CHECKING:
    from bertsmith.models.build import Model
    from bertsmith.models.text_model import TextModel
    from bertsmith.text.encoding import FieldEncoder
    from bertsmith.text.tokenizer import Tokenizer

log = logging.getLogger(__name__)


class TorchHost:
    """Any encoder in memory, run by torch alone, one batch at a time."""

    def __init__(
        self,
        model: TextModel,
        tokenizer: FieldEncoder,
        *,
        device: torch.device | str = "cpu",
        precision: Precision = "auto",
    ) -> None:
        if precision not in PRECISIONS:
            raise unknown("precision", precision, PRECISIONS)
        if torch.get_num_threads() > 1:
            check_fork()
        self.device = torch.device(device)
        self.precision = precision
        self.model = model.to(self.device).eval()
        self.tokenizer = tokenizer
        self._dtype = weights_dtype(self.device, precision)
        self._turn = threading.Lock()

    @property
    def rounding(self) -> str:
        """What torch rounds to, behind the name of an engine; empty if nothing is rounded."""
        return "" if self._dtype == torch.float32 else f" under {self._dtype}"

    @contextmanager
    def torch_turn(self) -> Iterator[None]:
        """Hold torch for one batch, with the autocast of the precision.

        Torch divides each operation among all cores: two batches at once would only get in each
        other's way.
        """
        half = self._dtype != torch.float32
        with self._turn, torch.autocast(self.device.type, self._dtype, enabled=half):
            yield


class Host(TorchHost):
    """Owns a model in memory. Embedder, predictor, mask filling and scoring are views on one.

    Any number of threads may use a host at once. Where an engine runs one batch at a time, their
    batches take turns; else they share the worker threads, which start with the first batch.
    """

    model: Model
    tokenizer: Tokenizer

    def __init__(
        self,
        model: Model,
        tokenizer: Tokenizer,
        *,
        device: torch.device | str = "cpu",
        precision: Precision = "auto",
        threads: int | None = None,
        notice: Notice = log.info,
        engine: Engine | None = None,
    ) -> None:
        """`notice` gets a line whenever the engine changes; `engine` replaces the selected one."""
        super().__init__(model, tokenizer, device=device, precision=precision)
        self._workers = Workers(threads or thread_count())
        self._turn = self._workers.turn
        self.engines: Engines = (
            OneEngine(engine)
            if engine is not None
            else Selection(
                model,
                device=self.device,
                precision=precision,
                threads=threads,
                notice=notice,
                check=self._workers.check_process,
            )
        )

    def hidden(
        self, batch: RowBatch, rows: Sequence[int] | None = None, *, engine: Engine | None = None
    ) -> Tensor:
        """The last hidden states of a batch, in the calling thread: (T, D), or (P, D) of `rows`."""
        return _hidden(engine or self.engines.engine, self._workers.turn, batch, rows)

    def submit(
        self, batch: RowBatch, rows: Sequence[int] | None = None, *, engine: Engine | None = None
    ) -> Future[Tensor]:
        """The same in a worker thread; waits while the queue is full, and may be cancelled."""
        chosen = engine or self.engines.engine
        # No reference to the host: one that nobody uses any more ends with its workers.
        return self._workers.submit(partial(_hidden, chosen, self._workers.turn, batch, rows))

    def run(
        self,
        engine: Engine,
        batches: Iterable[RowBatch],
        finish: Callable[[RowBatch, Tensor], Tensor],
        rows: Callable[[RowBatch], Sequence[int]] | None = None,
    ) -> Iterator[tuple[RowBatch, Tensor]]:
        """Run batches, several at once, and yield (batch, finish(batch, hidden)) as they end.

        At most two per stream are in memory. `finish` runs in the calling thread; `rows` names the
        rows of a batch that it reads.
        """

        def wanted(batch: RowBatch) -> Sequence[int] | None:
            return None if rows is None else rows(batch)

        if engine.streams == 1:
            for batch in batches:
                yield batch, finish(batch, self.hidden(batch, wanted(batch), engine=engine))
            return
        for batch, hidden in run_all(
            batches,
            lambda batch: self.submit(batch, wanted(batch), engine=engine),
            ahead=2 * engine.streams,
        ):
            yield batch, finish(batch, hidden)

    def close(self) -> None:
        """End the worker threads; what waits is cancelled."""
        self._workers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def not_finite(what: str) -> FolderError:
    """The error for an output that is NaN or infinite; `what` names the text or the row."""
    return FolderError(
        f"{what}: the output of the model is not finite (NaN or infinity): its weights overflow "
        "in the forward pass; use precision fp32 if it was another, else take another checkpoint"
    )


def _hidden(
    engine: Engine, turn: threading.Lock, batch: RowBatch, rows: Sequence[int] | None
) -> Tensor:
    with turn if engine.streams == 1 else nullcontext():
        return engine.hidden(batch, rows)
