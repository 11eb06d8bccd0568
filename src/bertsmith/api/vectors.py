"""Whitening, flow, choice and static vectors of a model, in one call each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bertsmith.api.sentence_folders import (
    Corrected,
    FolderJob,
    MadeStatic,
    PairFile,
    TuneJob,
    run_flow,
    run_static,
    run_tune,
    run_whiten,
)
from bertsmith.sentences.static import StaticSettings
from bertsmith.sentences.transform.flow import FlowSettings
from bertsmith.sentences.tune.tune import TuneResult, TuneSettings
from bertsmith.sentences.tune.without_labels import Hinted


def whiten_vectors(
    model: str | Path,
    texts: Iterable[str],
    out: str | Path,
    *,
    keep: int | None = None,
    pairs: str | Path | None = None,
    device: str = "cpu",
    overwrite: bool = False,
) -> Corrected:
    """Save a folder whose vectors are whitened by any number of texts; `keep` dimensions stay.

    `pairs`, a file of scored or labeled pairs, says whether that helped.
    """
    return run_whiten(_job(model, out, pairs, device, overwrite), texts, keep=keep)


def flow_vectors(
    model: str | Path,
    texts: Iterable[str],
    out: str | Path,
    *,
    settings: FlowSettings | None = None,
    pairs: str | Path | None = None,
    device: str = "cpu",
    overwrite: bool = False,
) -> Corrected:
    """Save a folder whose vectors pass a flow that was learned from texts (BERT-flow).

    `flow` of the result has the likelihood of texts held out, and that of whitening.
    """
    return run_flow(_job(model, out, pairs, device, overwrite), texts, settings)


def tune_vectors(
    model: str | Path,
    pairs: str | Path,
    out: str | Path | None = None,
    *,
    texts: Iterable[str] = (),
    settings: TuneSettings | None = None,
    device: str = "cpu",
    overwrite: bool = False,
) -> TuneResult | list[Hinted]:
    """Try layers, poolings, whitening, flow and dimensions on a file of pairs; save the winner.

    A file without scores or labels gives a list of hints, and nothing is saved.
    """
    job = TuneJob(
        model=model,
        pairs=PairFile(path=Path(pairs)),
        out=None if out is None else Path(out),
        device=device,
        overwrite=overwrite,
    )
    return run_tune(job, texts, settings)


def static_vectors(
    model: str | Path,
    out: str | Path,
    *,
    texts: Iterable[str] | None = None,
    width: int = 256,
    pairs: str | Path | None = None,
    device: str = "cpu",
    overwrite: bool = False,
) -> MadeStatic:
    """Save static vectors of a model: one per token, weighted by how rare it is in `texts`."""
    job = _job(model, out, pairs, device, overwrite)
    return run_static(job, texts, StaticSettings(width=width))


def _job(
    model: str | Path, out: str | Path, pairs: str | Path | None, device: str, overwrite: bool
) -> FolderJob:
    return FolderJob(
        model=model,
        out=Path(out),
        pairs=None if pairs is None else PairFile(path=Path(pairs)),
        device=device,
        overwrite=overwrite,
    )
