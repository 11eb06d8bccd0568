"""The vectors of a neural language model's words as a file that word2vec's readers take."""

from __future__ import annotations

from pathlib import Path

from bertsmith.classic.neural.scoring import NeuralLm
from bertsmith.files.atomic_file import StagedFile

_TOGETHER = 1_000  # words per block


def write_word_vectors(model: NeuralLm, path: Path) -> None:
    """Write word2vec's text format: a line of sizes, then each word with its numbers.

    Nine significant digits bring every float32 back exactly.
    """
    words, vectors = model.word_vectors()
    with StagedFile(path) as file:
        file.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for start in range(0, len(words), _TOGETHER):
            rows = vectors[start : start + _TOGETHER].tolist()
            names = words[start : start + _TOGETHER]
            lines = (
                f"{name} {' '.join([f'{number:.9g}' for number in row])}\n"
                for name, row in zip(names, rows, strict=True)
            )
            file.write("".join(lines).encode())
