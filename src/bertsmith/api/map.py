"""A map of texts, or of words in their sentences, as a page."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bertsmith.errors import ConfigError, InputFileError, check_type
from bertsmith.files.atomic_file import check_file_target, write_staged
from bertsmith.random_keys import key_of
from bertsmith.runtime.embedder import EncodingAccount, Vectors
from bertsmith.runtime.loading import LoadedModel
from bertsmith.runtime.selection import Precision
from bertsmith.search.encoder import loaded_model
from bertsmith.sentences.map.page import MOST_LABELS, MapPoint, MapView, map_page, shown_labels
from bertsmith.sentences.map.projection import FEWEST, checked_method, project
from bertsmith.sentences.map.words import WordFinder, word_vectors
from bertsmith.wording import counted, shown

MOST_POINTS = 20_000  # that a page draws smoothly
LIMIT = 100_000

Stage = Callable[[str, int, float | None], None]
"""Called with the name of the work, how many texts are done, and the finished share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOptions:
    """What is shown, and how."""

    methods: Sequence[str] = ("tsne", "pca")
    """pca, tsne, umap (extra `map`). The page switches between them; the first is shown first."""
    words: Sequence[str] = ()
    """Each occurrence of these words is a point, instead of each text."""
    layer: int | None = None
    """Of the words' hidden states; 0 are the embeddings, the last layer if unset."""
    points: int = MOST_POINTS
    """More are sampled down to this number."""
    seed: int = 0
    legend: str = ""
    """What the labels are."""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMap:
    """A page that was written."""

    path: Path
    points: int
    total: int
    """Texts or occurrences before sampling."""
    notes: list[str] = field(default_factory=list)
    """What the page leaves out, in plain sentences."""


Labeled = tuple[str, str | None]


def map_texts(
    texts: Iterable[str | Labeled],
    model: LoadedModel | str | Path,
    out: str | Path,
    *,
    options: MapOptions | None = None,
    precision: Precision = "auto",
    watch: Stage | None = None,
) -> TextMap:
    """Write a page that shows texts, or words in their sentences, as points of a plane.

    A text may come with its label: (text, label). Near points have similar vectors. The page is
    one file that loads nothing; in it one can zoom, find texts and switch labels on and off.
    """
    wanted = options or MapOptions()
    path = Path(out)
    _check(wanted, path)
    seen = watch or (lambda work, done, share: None)
    rows = _Rows(wanted)
    for number, row in enumerate(texts, start=1):
        text, label = row if isinstance(row, tuple) else (row, None)
        check_type("a text", text, str)
        rows.add(text, label, number)
    rows.check()
    loaded, name = loaded_model(model, precision=precision)
    points, vectors, facts, notes = _vectors(rows, loaded, wanted, seen)
    projections = []
    for method in dict.fromkeys(wanted.methods):
        seen(f"{method} of {counted(len(points), 'point')}", 0, None)
        projections.append(project(vectors, checked_method(method), seed=wanted.seed))
    seen("page", len(points), 1.0)
    page = map_page(
        MapView(
            title=wanted.title or path.stem,
            points=points,
            projections=projections,
            legend=wanted.legend,
            words=bool(wanted.words),
            facts={"model": Path(name).name, "total": rows.total, **facts},
        )
    )
    write_staged(path, page.encode("utf-8", "replace"))
    _, others = shown_labels(points)
    if others:
        notes.append(
            f"{others:,} labels beyond the {MOST_LABELS - 1} most frequent share one color, other"
        )
    return TextMap(path=path, points=len(points), total=rows.total, notes=notes)


def _check(options: MapOptions, path: Path) -> None:
    """Refuse what cannot work before the texts are read."""
    if not options.methods:
        raise ConfigError("a map needs a method: pca, tsne or umap")
    for method in options.methods:
        checked_method(method)
    if not FEWEST <= options.points <= LIMIT:
        raise ConfigError(f"points must be from {FEWEST} to {LIMIT:,}, not {options.points:,}")
    if options.layer is not None and not options.words:
        raise ConfigError("a layer is chosen for words only; give a word, or leave the layer out")
    check_file_target(path)


class _Rows:
    """A sample of the points of a stream: the texts, or the occurrences of words in them."""

    def __init__(self, options: MapOptions) -> None:
        self._options = options
        self._finder = WordFinder(options.words) if options.words else None
        self._heap: list[tuple[int, int, MapPoint]] = []  # the largest key first
        self.texts = 0
        self.total = 0

    def add(self, text: str, label: str | None, row: int) -> None:
        self.texts += 1
        if self._finder is None:
            self._draw(MapPoint(text, row, label))
            return
        words = self._finder.words
        for one in self._finder.of(text):
            name = label if label is not None or len(words) == 1 else words[one.word]
            self._draw(MapPoint(text, row, name, (one.start, one.end)))

    def _draw(self, point: MapPoint) -> None:
        """Every point gets a key by its number; those with the smallest keys stay."""
        self.total += 1
        drawn = (-key_of(self.total, seed=self._options.seed), -self.total, point)
        if len(self._heap) < self._options.points:
            heapq.heappush(self._heap, drawn)
        else:
            heapq.heappushpop(self._heap, drawn)

    def check(self) -> None:
        """Refuse too few points by what is missing."""
        if not self.texts:
            raise InputFileError("there are no texts to show; give a file that has some")
        if self._finder is not None and not self.total:
            names = ", ".join(map(shown, self._finder.words))
            raise InputFileError(
                f"{names} occurs in none of {counted(self.texts, 'text')}; whole words are "
                "matched in any case, so give the form that the texts use"
            )
        if self.total < FEWEST:
            what = "text" if self._finder is None else "occurrence"
            raise InputFileError(
                f"a map needs at least {FEWEST} points, and there is only "
                f"{counted(self.total, what)}; give a longer file"
            )

    @property
    def points(self) -> list[MapPoint]:
        """The sample in the order of the file."""
        return [point for _, _, point in sorted(self._heap, key=lambda one: -one[1])]


def _vectors(
    rows: _Rows, model: LoadedModel, options: MapOptions, watch: Stage
) -> tuple[list[MapPoint], Vectors, dict[str, int], list[str]]:
    """The points that have vectors, these, facts for the page and notes for people."""
    points, notes = rows.points, []
    what = "occurrences" if options.words else "texts"
    if rows.total > len(points):
        notes.append(
            f"{len(points):,} of {rows.total:,} {what} are shown, drawn at random by the seed"
        )

    def progress(done: int) -> None:
        watch(what, done, done / len(points))

    if not options.words:
        account = EncodingAccount()
        vectors = model.encode([point.text for point in points], progress=progress, account=account)
        if account.cut_texts:
            notes.append(account.cuts())
        return points, vectors, {"cut": account.cut_texts}, notes
    found = word_vectors(
        model,
        [point.text for point in points],
        [point.span or (0, 0) for point in points],
        layer=options.layer,
        progress=progress,
    )
    if found.beyond:
        notes.append(
            f"{counted(found.beyond, 'occurrence')} after the {model.max_length} tokens that the "
            "model reads are not shown; split longer texts"
        )
    if len(found.read) < FEWEST:
        raise InputFileError(
            f"a map needs at least {FEWEST} points, and only {len(found.read)} of "
            f"{counted(len(points), 'occurrence')} lie in the {model.max_length} tokens that the "
            "model reads; split the texts"
        )
    return [points[at] for at in found.read], found.vectors, {"beyond": found.beyond}, notes
