"""Lines of text: one text per line, or a label, a space and a text."""

from __future__ import annotations

from collections.abc import Iterator

from bertsmith.files.faults import BadRowError
from bertsmith.files.lines import Lines
from bertsmith.labeled.example import Example, Target
from bertsmith.labeled.read.reject import Reject, RowAccount, check_texts, reject_of
from bertsmith.labeled.read.targets import Read, label_reader, labels_of
from bertsmith.labeled.spec import DataSpec
from bertsmith.wording import shown


def read_lines(
    lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
) -> Iterator[Example | Reject]:
    """Each line as one text, whatever stands in it; empty ones, too, unless they are rejected."""
    keep_empty = spec.empty != "reject"
    for line in lines:
        try:
            if not isinstance(line, str):
                raise line
            if not line or "\0" in line or line.isspace():
                check_texts((line,), (1,), keep_empty=keep_empty)
            yield Example(source=lines.name, line=lines.number, id=str(lines.number), texts=(line,))
        except BadRowError as fault:
            raw = line if isinstance(line, str) else line.raw
            yield reject_of(fault, lines.name, lines.number, raw)


def read_labeled_lines(
    lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
) -> Iterator[Example | Reject]:
    """Each line as a label, white space and a text; with `label_prefix`, as labels and a text."""
    read = label_reader(spec, 1, 0) if spec.label != () else None
    for line in lines:
        try:
            if not isinstance(line, str):
                raise line
            if not line or line.isspace():
                account.blank += 1
                continue
            labels, text = divided(line, spec.label_prefix)
            if not text.strip() and spec.empty != "keep":
                raise BadRowError(
                    "there is no text after the label",
                    "write the label, a space and the text, or set --empty keep",
                    column=2,
                )
            check_texts((text,), (2,), keep_empty=True)
            target = None if read is None else _target(labels, read, spec)
            account.unlabeled += read is not None and target is None
            yield Example(
                source=lines.name,
                line=lines.number,
                id=str(lines.number),
                texts=(text,),
                target=target,
            )
        except BadRowError as fault:
            raw = line if isinstance(line, str) else line.raw
            yield reject_of(fault, lines.name, lines.number, raw)


def divided(line: str, prefix: str | None) -> tuple[list[str], str]:
    """The labels before the text, and the text."""
    head, _, text = line.partition(" ")
    if not prefix:
        return [head], text.lstrip(" ")
    labels: list[str] = []
    rest = line
    while rest.startswith(prefix):
        head, _, rest = rest.partition(" ")
        labels.append(head.removeprefix(prefix))
        rest = rest.lstrip(" ")
    if not labels:
        raise BadRowError(
            f"the line begins with {shown(head)} and not with {prefix}",
            f"write {prefix}LABEL before the text",
            column=1,
        )
    return labels, rest


def _target(labels: list[str], read: Read, spec: DataSpec) -> Target | None:
    kind = spec.target_kind
    if kind is not None and kind.many:
        return labels_of(labels, spec, 1)
    if len(labels) > 1:
        raise BadRowError(
            f"the row has {len(labels)} labels",
            "leave one of them, or set --task multilabel",
            column=1,
        )
    return read(labels[0])
