"""Words and vectors as they are read, and the names of the forms of files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import InputFileError
from bertsmith.wording import shown

VectorForm = Literal["text", "binary", "glove"]
"""word2vec's text, word2vec's binary, GloVe's text, which has no line of sizes."""
VECTOR_FORMS: tuple[str, ...] = get_args(VectorForm)

Matrix = NDArray[np.float32]


@dataclass(slots=True, eq=False)
class VectorRows:
    """Words and vectors as they are read; `matrix` has room for all that the file promises."""

    path: Path
    width: int
    matrix: Matrix
    words: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    @classmethod
    def reserve(cls, path: Path, count: int, width: int) -> VectorRows:
        """Room for `count` vectors; pages that nothing is written to cost nothing."""
        try:
            return cls(path, width, np.empty((count, width), dtype=np.float32))
        except (MemoryError, ValueError) as error:
            raise InputFileError(
                f"{path}: {count:,} vectors of {width:,} numbers do not fit into memory; "
                "read fewer words"
            ) from error

    def name(self, word: str, place: str) -> None:
        """Take the next word; a second one of the same name is refused."""
        if word in self.known:
            raise InputFileError(
                f"{self.path}, {place}: the word {shown(word)} stands there a second time; "
                "remove one of the two"
            )
        self.known.add(word)
        self.words.append(word)
