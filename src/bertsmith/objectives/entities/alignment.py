"""Entity alignment: which entity of the batch a mention names, from its first row.

The denoising entity auto-encoder of ERNIE (Zhang et al. 2019, arXiv:1905.07129), without the
entities that its fusion layers read.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from bertsmith.corpus.rows import Flags, Longs
from bertsmith.errors import InputFileError
from bertsmith.files.digest import json_digest
from bertsmith.files.word_vectors.reading import read_word_vectors
from bertsmith.files.word_vectors.rows import Matrix
from bertsmith.models.build import initialize
from bertsmith.nn.feed_forward import find_activation
from bertsmith.nn.loss import LossSum, Score, cross_entropy
from bertsmith.objectives.batch import Targets
from bertsmith.objectives.entities.replaced import ReplacedTexts


class AlignmentHead(nn.Module):
    """A row as a query to the vectors of candidate entities, which are learned or given.

    Learned vectors are a table per list, by the list's digest: those of another list do not fit.
    Given ones are not trained and not stored.
    """

    given: Tensor | None

    def __init__(
        self, hidden: int, width: int, names: tuple[str, ...], given: Matrix | None
    ) -> None:
        super().__init__()
        self.transform = nn.Linear(hidden, width)
        self.activation = find_activation("gelu")
        self.norm = nn.LayerNorm(width)
        vectors = None if given is None else torch.from_numpy(given)
        self.register_buffer("given", vectors, persistent=False)
        self.entities = nn.ModuleDict()
        if given is None:
            self.entities[json_digest(names)[:12]] = nn.Embedding(len(names), width)
        initialize(self)

    def forward(self, rows: Tensor, candidates: Tensor) -> Tensor:
        """(P, D), (C,) -> (P, C)."""
        query = self.norm(self.activation(self.transform(rows)))
        if self.given is not None:
            vectors = self.given[candidates]
        else:
            (table,) = self.entities.values()
            vectors = table(candidates)
        logits: Tensor = query @ vectors.to(query.dtype).T
        return logits


def given_vectors(path: Path, names: tuple[str, ...]) -> tuple[Matrix, Flags]:
    """(N, E) the vectors of a file (word2vec, GloVe) for these entities, and (N,) which have one.

    Spaces in the name of an entity are underscores in the file.
    """
    keys = {name.replace(" ", "_"): number for number, name in enumerate(names)}
    found, vectors = read_word_vectors(path)
    rows = [place for place, name in enumerate(found) if name in keys]
    if len(rows) < 2:
        raise InputFileError(
            f"{path} has the vectors of {len(rows)} entities of the list, and two are the least; "
            "name them as in the list, with underscores for spaces"
        )
    at = [keys[found[place]] for place in rows]
    matrix = np.zeros((len(names), vectors.shape[1]), dtype=np.float32)
    known = np.zeros(len(names), dtype=bool)
    matrix[at], known[at] = vectors[rows], True
    return matrix, known


def candidates_of(mentioned: Longs, known: Flags) -> Longs:
    """(C,) the entities with a vector among those that are mentioned, each once, in order."""
    every = np.unique(mentioned)
    return every[known[every]]


def alignment_targets(texts: ReplacedTexts, candidates: Longs) -> Targets:
    """The first row of each mention that was not replaced, and the number of its candidate."""
    mentions = texts.mentions
    place = np.searchsorted(candidates, mentions.entities)
    named = np.append(candidates, -1)[np.minimum(place, len(candidates))] == mentions.entities
    aligned = named & ~texts.replaced
    return Targets(
        at=torch.from_numpy(mentions.starts[aligned]), of=torch.from_numpy(place[aligned])
    )


def alignment_loss(
    head: AlignmentHead, hidden: Tensor, targets: Targets, candidates: Tensor
) -> tuple[LossSum, Score]:
    """(P, D), (C,) -> the loss over the candidates."""
    logits = head(hidden[targets.at], candidates)
    if not targets.count:  # no candidates: a maximum over none does not exist
        return LossSum(logits.sum(), 0), Score(0, 0)
    correct = (logits.detach().argmax(-1) == targets.of).sum()
    return cross_entropy(logits, targets.of), Score(correct, targets.count)
