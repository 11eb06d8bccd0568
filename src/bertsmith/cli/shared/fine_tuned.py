"""Loading and running a fine-tuned folder, as predict, evaluate and compare do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from bertsmith.cli.shared.options import MODEL, Device, Precision, Threads, option

if TYPE_CHECKING:
    from bertsmith.runtime.predictor import Predictor

EnsembleOption = Annotated[
    bool, option(MODEL, "--ensemble", "Average all runs of the folder (finetune --seeds, --folds).")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceOptions:
    """Device, precision and threads for inference: the fastest path proven on this machine."""

    ensemble: EnsembleOption = False
    device: Device = "cpu"
    precision: Precision = "auto"
    threads: Threads = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions(InferenceOptions):
    """The same for evaluation: exact unless another precision is given."""

    precision: Precision = "fp32"


def load_fine_tuned(folder: str, computing: InferenceOptions, *, quiet: bool) -> Predictor:
    """The predictor of a folder with the requested device, threads and precision."""
    import torch

    from bertsmith.cli.shared.console import note
    from bertsmith.hardware.environment import thread_count
    from bertsmith.runtime.ensemble import load_ensemble
    from bertsmith.runtime.predictor import load_predictor

    torch.set_num_threads(computing.threads or thread_count())
    if computing.ensemble:
        return load_ensemble(
            [folder],
            device=computing.device,
            precision=computing.precision,
            threads=computing.threads,
        )
    return load_predictor(
        folder,
        device=computing.device,
        precision=computing.precision,
        threads=computing.threads,
        notice=lambda message: note(message, quiet=quiet),
    )
