"""New sentence folders from a model as it is: whitening, flow, the best choice, static vectors."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch

from bertsmith.api.observer import Observer
from bertsmith.errors import ConfigError
from bertsmith.files.atomic_file import write_staged
from bertsmith.folders.static import save_static
from bertsmith.labeled.pairs.pairs import Kind, SentenceData, read_sentences
from bertsmith.labeled.spec import DataSpec
from bertsmith.metrics.correlation import spearman
from bertsmith.models.sentence_spec import DenseLayer
from bertsmith.runtime.embedder import EncodingAccount
from bertsmith.runtime.loading import LoadedModel, load
from bertsmith.runtime.selection import Precision
from bertsmith.sentences.pair_measure import Change, ScoredPairs, change, cosines
from bertsmith.sentences.static import StaticSettings, static_table, token_counts
from bertsmith.sentences.train.rows import pair_labels
from bertsmith.sentences.transform.flow import FlowFit, FlowSettings, fit_flow
from bertsmith.sentences.transform.folder import check_out, save_with
from bertsmith.sentences.transform.moments import AnyVectors, moments_of
from bertsmith.sentences.transform.whitening import whitening
from bertsmith.sentences.tune.page import choice_page
from bertsmith.sentences.tune.tune import ENCODED, TuneResult, TuneSettings, tune
from bertsmith.sentences.tune.without_labels import Hinted, tune_without_labels

TUNE_REPORT = "tune.html"
MOST_PAIRS = 5_000
MOST_TEXTS = 20_000
_SAMPLE = 2_000  # texts that speed and agreement are measured on


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFile:
    """A file of pairs with scores or labels, and how it is read."""

    path: Path
    kind: Kind | None = None
    spec: DataSpec = field(default_factory=DataSpec)
    positive: str | None = None

    def read(self) -> ScoredPairs:
        """The pairs; other kinds of rows are refused."""
        return scored_pairs(
            read_sentences(self.path, kind=self.kind, spec=self.spec), self.positive
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderJob:
    """What a new folder is made from, where it goes and how it is computed.

    `pairs` say whether the new vectors are better than the old ones.
    """

    model: str | Path
    out: Path
    pairs: PairFile | None = None
    overwrite: bool = False
    device: str = "cpu"
    precision: Precision = "fp32"
    threads: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A folder with corrected vectors, what it was fitted on, and what that did to the pairs."""

    out: Path
    texts: int
    width: int
    kept: int
    dead: int
    cuts: str
    change: Change | None
    flow: FlowFit | None = None


def scored_pairs(data: SentenceData, positive: str | None = None) -> ScoredPairs:
    """Rows of scores or labels as pairs to measure with."""
    if data.kind not in ("scores", "labels") or data.targets is None:
        raise ConfigError(
            f"{data.source} holds {data.kind} without scores; give pairs with a score or a label "
            "in a third column (--row-kind, --label)"
        )
    labeled = data.kind == "labels"
    targets = pair_labels(data, positive)[0] if labeled else data.targets
    return ScoredPairs.of(data.rows, targets, labeled=labeled, source=data.source)


def run_whiten(
    job: FolderJob,
    texts: Iterable[str],
    *,
    keep: int | None = None,
    observer: Observer | None = None,
) -> Corrected:
    """Whiten a model's vectors by any number of texts and save the folder.

    `keep` dimensions stay, all by default. Statistics are float64, memory is bounded.
    """
    with _Opened(job, observer or Observer(), keep) as opened:
        found = whitening(moments_of(opened.blocks(texts), opened.width), keep)
        return opened.save((found.layer(),), found.texts, found.dead)


def run_flow(
    job: FolderJob,
    texts: Iterable[str],
    settings: FlowSettings | None = None,
    *,
    observer: Observer | None = None,
) -> Corrected:
    """Learn a flow of a model's vectors by any number of texts and save the folder.

    A uniform sample of 65,536 texts is learned from; a tenth of all is held out.
    """
    chosen = settings or FlowSettings()
    with _Opened(job, observer or Observer(), chosen.keep) as opened:
        fit = fit_flow(opened.blocks(texts), opened.width, chosen)
        result = opened.save(fit.flow.layers(), fit.texts, fit.whitening.dead)
        return replace(result, flow=fit)


class _Opened:
    """A loaded model whose correction is fitted, judged on pairs and saved."""

    def __init__(self, job: FolderJob, observer: Observer, keep: int | None) -> None:
        check_out(job.out, overwrite=job.overwrite)
        self.job = job
        self.observer = observer
        self.pairs = None if job.pairs is None else job.pairs.read()  # faults come before the work
        self.model = _load(job, observer)
        self.width = self.model.dimension
        if keep is not None and keep > self.width:
            raise ConfigError(
                f"{keep} dimensions cannot be kept: the vectors of {job.model} have {self.width}"
            )
        self.account = EncodingAccount()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.model.close()

    def blocks(self, texts: Iterable[str]) -> Iterator[AnyVectors]:
        """The vectors of texts before normalization, in bounded memory."""
        with self.observer.counting("encode") as shown:
            yield from self.model.encode_stream(
                texts, normalize=False, progress=shown, account=self.account
            )

    def save(self, layers: tuple[DenseLayer, ...], texts: int, dead: int) -> Corrected:
        """Judge the layers on the pairs and write the folder."""
        own = self.model.settings
        settings = replace(own, dense=(*own.dense, *layers), normalize=True)
        judged = None
        if self.pairs is not None:
            before = self.model.encode(list(self.pairs.texts), normalize=False)
            head = replace(settings, dense=layers).head()
            after = head.finish(torch.from_numpy(before)).numpy()
            judged = change(self.pairs, before, after)
        save_with(self.job.model, settings, self.job.out, overwrite=self.job.overwrite)
        return Corrected(
            out=self.job.out,
            texts=texts,
            width=self.width,
            kept=layers[-1].outputs,
            dead=dead,
            cuts=self.account.cuts(),
            change=judged,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneJob:
    """What to choose from: a model, pairs or texts; where the winner and the picture go."""

    model: str | Path
    pairs: PairFile
    out: Path | None = None
    report: Path | None = None
    max_pairs: int = MOST_PAIRS
    overwrite: bool = False
    device: str = "cpu"
    threads: int | None = None


def run_tune(
    job: TuneJob,
    texts: Iterable[str] = (),
    settings: TuneSettings | None = None,
    *,
    observer: Observer | None = None,
) -> TuneResult | list[Hinted]:
    """Try layers, poolings, whitening, flow and dimensions on the user's pairs; save the winner.

    `texts` are what corrections are fitted on, by default the texts of the pairs. Rows without
    scores or labels give hints only, and nothing is saved.
    """
    seen = observer or Observer()
    if job.out is not None:
        check_out(job.out, overwrite=job.overwrite)
    data = read_sentences(job.pairs.path, kind=job.pairs.kind, spec=job.pairs.spec)
    seen.lines(data.describe())
    if len(data) > job.max_pairs:
        seen.note(f"{job.max_pairs:,} of {len(data):,} rows are used, evenly spread (--max-pairs)")
        spread = np.linspace(0, len(data) - 1, job.max_pairs).round().astype(int)
        data = data.some(spread.tolist())
    model = load(job.model, device=job.device, precision="fp32", threads=job.threads)
    fitted = list(itertools.islice(texts, MOST_TEXTS))
    chosen = settings or TuneSettings()
    with model, seen.counting("encode") as shown:

        def progress(what: str, done: int, total: int) -> None:
            if what == ENCODED:
                shown(done)

        if data.kind in ("scores", "labels"):
            pairs = scored_pairs(data, job.pairs.positive)
            result = tune(model, pairs, chosen, texts=fitted, progress=progress)
        else:
            partners = data.rows if data.kind in ("pairs", "triplets") else ()
            alone = [] if partners else data.texts()[:_SAMPLE]
            return tune_without_labels(
                model, alone, chosen, partners=partners[:_SAMPLE], progress=progress
            )
    page = choice_page(result, title=f"Vectors of {job.model} on {data.source}")
    if job.out is not None:
        save_with(job.model, result.settings, job.out, overwrite=job.overwrite)
    report = job.report or (None if job.out is None else job.out / TUNE_REPORT)
    if report is not None:
        write_staged(report, page.encode())
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeStatic:
    """A folder of static vectors: how fast it is, and what it loses.

    Rates are texts per second, measured in turn on the same texts. `agreement` is the Spearman
    correlation of its cosines with those of the model on pairs of the user's texts.
    """

    out: Path
    tokens: int
    seen: int | None
    width: int
    explained: float
    rate_before: float
    rate_after: float
    agreement: float | None
    change: Change | None


def run_static(
    job: FolderJob,
    texts: Iterable[str] | None = None,
    settings: StaticSettings | None = None,
    *,
    observer: Observer | None = None,
) -> MadeStatic:
    """Make static vectors of a model, weighted by the token counts of `texts`, and save them."""
    check_out(job.out, overwrite=job.overwrite)
    pairs = None if job.pairs is None else job.pairs.read()
    seen = observer or Observer()
    sample: list[str] = []
    with _load(job, seen) as model:
        counts = None
        if texts is not None:
            counts = token_counts(model.tokenizer, _sampled(texts, sample))
        made = static_table(model, model.tokenizer, settings or StaticSettings(), counts)
        save_static(
            made.table,
            model.tokenizer,
            job.out,
            settings=made.settings,
            overwrite=job.overwrite,
        )
        static = load(job.out, device=job.device)
        own = bool(sample)
        sample = sample or (list(pairs.texts)[:_SAMPLE] if pairs else _made_up(model))
        before, rate_before = _timed(model, sample)
        after, rate_after = _timed(static, sample)
        judged = None
        if pairs is not None:
            every = list(pairs.texts)
            judged = change(pairs, model.encode(every), static.encode(every))
        return MadeStatic(
            out=job.out,
            tokens=made.tokens,
            seen=made.seen,
            width=made.table.shape[1],
            explained=made.explained,
            rate_before=rate_before,
            rate_after=rate_after,
            agreement=_agreement(before, after) if own and len(sample) > 2 else None,
            change=judged,
        )


def _load(job: FolderJob, observer: Observer) -> LoadedModel:
    return load(
        job.model,
        device=job.device,
        precision=job.precision,
        threads=job.threads,
        notice=observer.note,
    )


def _sampled(texts: Iterable[str], sample: list[str]) -> Iterator[str]:
    """The texts as they are; the first ones are also kept."""
    for text in texts:
        if len(sample) < _SAMPLE and text.strip():
            sample.append(text)
        yield text


def _made_up(model: LoadedModel) -> list[str]:
    """Texts of twelve random tokens, to measure speed without a file."""
    random = np.random.default_rng(0)
    drawn = random.integers(0, model.tokenizer.vocab_size, (200, 12))
    return [model.tokenizer.decode(row) for row in drawn]


def _timed(model: LoadedModel, texts: Sequence[str]) -> tuple[AnyVectors, float]:
    model.encode(list(texts[:16]))  # what is prepared once is not counted
    start = time.perf_counter()
    vectors = model.encode(list(texts))
    return vectors, len(texts) / max(1e-9, time.perf_counter() - start)


def _agreement(before: AnyVectors, after: AnyVectors) -> float:
    random = np.random.default_rng(0)
    one, two = random.integers(0, len(before), (2, 1_000))
    return spearman(cosines(before[one], before[two]), cosines(after[one], after[two]))
