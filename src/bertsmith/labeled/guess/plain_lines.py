"""Guesses about lines without columns: a text, or a label, a space and a text."""

from __future__ import annotations

from collections.abc import Sequence

from bertsmith.labeled.formats.plain_lines import divided
from bertsmith.labeled.guess.columns import TEXT_COLUMNS, plain_name, profile
from bertsmith.labeled.guess.sample import ROWS, Sample, SpecBuilder
from bertsmith.labeled.guess.table import DELIMITERS, NAME
from bertsmith.labeled.guess.task import guess_task
from bertsmith.labeled.language import ENGLISH

FASTTEXT = "__label__"
FEWEST_LINES = 4
FEW_WORDS = 4  # fewer of them in the name of a column
NEXT = 21  # lines that show whether the first one is a header
MOST_LABELS = 60  # different ones in the sample
NEARLY_ALL = 0.95
LEAST_TEXT = 4  # characters after the label, the mean


def is_named_table(lines: Sequence[str]) -> bool:
    """Whether the first line names columns, one of texts among them, and the others have them."""
    for delimiter in DELIMITERS:
        names = lines[0].split(delimiter)
        looks = all(NAME.fullmatch(name) and len(name.split()) < FEW_WORDS for name in names)
        if (
            len(names) < 2
            or not looks
            or not any(plain_name(name) in TEXT_COLUMNS for name in names)
        ):
            continue
        following = lines[1:NEXT]
        divided = sum(delimiter in line for line in following)
        if divided >= 0.9 * len(following):
            return True
    return False


def looks_labeled(lines: Sequence[str]) -> str | None:
    """Why each line seems to be a label, a space and a text; None if it does not."""
    lines = lines[:ROWS]
    if lines and sum(line.startswith(FASTTEXT) for line in lines) >= NEARLY_ALL * len(lines):
        return f"lines begin with {FASTTEXT}"
    parts = [line.partition(" ") for line in lines]
    parted = [(head, text.strip()) for head, _, text in parts if head and text.strip()]
    if len(lines) < FEWEST_LINES or len(parted) < NEARLY_ALL * len(lines):
        return None
    heads = profile([head for head, _ in parted])
    labels = set(heads.cells)
    few = 2 <= len(labels) <= min(MOST_LABELS, max(2, len(parted) // 4))
    written = all(any(map(str.isalnum, label)) and "\t" not in label for label in labels)
    words = sum(label.lower() in ENGLISH for label in labels)
    length = sum(len(text) for _, text in parted) / len(parted)
    if few and written and heads.short and 2 * words <= len(labels) and length >= LEAST_TEXT:
        return f"lines begin with one of {len(labels)} labels and a space"
    return None


def guess_labeled_lines(sample: Sample, builder: SpecBuilder) -> list[str]:
    """Decide the labels of such lines; gives texts of the sample."""
    lines = sample.filled[:ROWS]
    if lines[0].startswith(FASTTEXT):
        builder.put("label_prefix", FASTTEXT, "it stands before every label and is not part of it")
    builder.put("label", (1,), "what stands before the first space")
    builder.put("text", (2,), "what stands after it")
    prefix = builder.get("label_prefix")
    rows = [divided(line, prefix) for line in lines if not prefix or line.startswith(prefix)]
    if any(len(labels) > 1 for labels, _ in rows):
        builder.put("task", "multilabel", "a line holds several labels")
    if builder.get("label"):
        guess_task([label for labels, _ in rows for label in labels], builder)
    return [text for _, text in rows]
