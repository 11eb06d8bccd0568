"""What a text of an example must not be: empty, or with holes in it."""

from __future__ import annotations

from collections.abc import Sequence

from bertsmith.data.examples.reject import BadRowError


def check_texts(texts: Sequence[str], columns: Sequence[int | str], *, keep_empty: bool) -> None:
    """Refuse texts with NUL, and empty ones: any of one or two, all of several fields."""
    for text, column in zip(texts, columns, strict=True):
        if "\0" in text:
            raise BadRowError(
                "the text holds a NUL character: the file is damaged, or in another encoding",
                "remove it, or set --encoding",
                column=column,
            )
    empty = [i for i, text in enumerate(texts) if not text or text.isspace()]
    if keep_empty or not empty or (len(texts) > 2 and len(empty) < len(texts)):
        return
    what = "is empty" if not texts[empty[0]] else "is white space only"
    raise BadRowError(
        f"the text {what}",
        "fill it in, remove the row, or set --empty keep",
        column=columns[empty[0]],
    )
