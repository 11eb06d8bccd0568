"""Loading a model for vectors or predictions, and the options of that."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bertsmith.cli.shared.options import Device, Precision, Threads
from bertsmith.setting import MODEL, Setting

if TYPE_CHECKING:
    from bertsmith.runtime.loading import LoadedModel
    from bertsmith.runtime.predictor import Predictor

EnsembleOption = Annotated[
    bool, Setting("Average all runs of the folder (finetune --seeds, --folds).", MODEL)
]
KnowledgeFile = Annotated[
    Path | None,
    Setting(
        "Triples to read with the texts (K-BERT); those of training if unset.",
        MODEL,
        metavar="FILE",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeOptions:
    """Device, precision and threads: the fastest path proven on this machine."""

    device: Device = "cpu"
    precision: Precision = "auto"
    threads: Threads = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceOptions(ComputeOptions):
    """The same for predictions."""

    ensemble: EnsembleOption = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions(InferenceOptions):
    """The same for evaluation: exact unless another precision is given."""

    precision: Precision = "fp32"


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionOptions(InferenceOptions):
    """The same for predictions of one model, which may read another graph."""

    knowledge: KnowledgeFile = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEvaluationOptions(EvaluationOptions):
    """The same for the evaluation of one model."""

    knowledge: KnowledgeFile = None


def load_fine_tuned(
    folder: str, computing: InferenceOptions, *, quiet: bool, knowledge: Path | None = None
) -> Predictor:
    """The predictor of a folder with the requested device, threads, precision and graph."""
    import torch

    from bertsmith.cli.shared.console import note
    from bertsmith.hardware.environment import thread_count
    from bertsmith.runtime.ensemble import load_ensemble
    from bertsmith.runtime.load_predictor import load_predictor

    torch.set_num_threads(computing.threads or thread_count())
    if computing.ensemble:
        return load_ensemble(
            [folder],
            device=computing.device,
            precision=computing.precision,
            threads=computing.threads,
            knowledge=knowledge,
        )
    return load_predictor(
        folder,
        device=computing.device,
        precision=computing.precision,
        threads=computing.threads,
        notice=lambda message: note(message, quiet=quiet),
        knowledge=knowledge,
    )


def load_encoder(model: str, computing: ComputeOptions, *, quiet: bool) -> LoadedModel:
    """A model for vectors; truncation is reported by the command, once per file."""
    import torch

    from bertsmith.cli.shared.console import note
    from bertsmith.runtime.loading import load

    if computing.threads is not None:
        torch.set_num_threads(computing.threads)
    logging.getLogger("bertsmith.runtime.embedder").setLevel(logging.ERROR)
    return load(
        model,
        device=computing.device,
        precision=computing.precision,
        threads=computing.threads,
        notice=lambda message: note(message, quiet=quiet),
    )
