"""Single files of the golden runs: pairs of texts, facts, entities, questions, plain texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from golden_data import CHINESE, ENGLISH, KINDS, Draws

_ENTITIES = {
    "nature": ("river", "garden", "mountain", "stone"),
    "time": ("winter", "year", "night", "day"),
    "person": ("teacher", "people", "man", "him"),
}
_CONFUSED = {"天": "田", "中": "钟", "学": "雪", "生": "声", "在": "再", "和": "河", "是": "事"}


def write_file(path: Path) -> None:
    """Write the file of this name, unless it is there."""
    if not path.exists():
        path.write_text(FILES[path.name](), encoding="utf-8")


def _lines(rows: list[tuple[str, ...]]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


def _sentence(draws: Draws, most: int = 10) -> str:
    return " ".join(draws.words(ENGLISH, 4 + draws.below(most)))


def _plain(seed: int, count: int) -> Callable[[], str]:
    def written() -> str:
        draws = Draws(seed)
        return "".join(_sentence(draws, 20) + "\n" for _ in range(count))

    return written


def _entities() -> str:
    return _lines([(name, kind) for kind, names in _ENTITIES.items() for name in names])


def _facts() -> str:
    rows = [(kind, "is", " ".join(Draws(5 + n).words(ENGLISH, 2))) for n, kind in enumerate(KINDS)]
    return _lines([*rows, ("river", "near", "stone house"), ("year", "has", "winter")])


def _roles() -> str:
    draws, rows = Draws(6), []
    for number in range(80):
        words = [*_sentence(draws).split(), KINDS[number % len(KINDS)]]
        tags = ["B-A" if word in KINDS else "I-B" if len(word) > 4 else "O" for word in words]
        cell = {"words": words, "tags": tags}
        rows.append({"text": " ".join(words), "label": words[-1], "roles": cell})
    return "".join(json.dumps(row) + "\n" for row in rows)


def _titles() -> str:
    """Sources, and targets that are their first words."""
    draws, rows = Draws(7), [("source", "target")]
    for _ in range(80):
        words = _sentence(draws, 12).split()
        rows.append((" ".join(words), " ".join(words[:3])))
    return _lines(rows)


def _alike() -> str:
    """Texts, and the same words in another order."""
    draws, rows = Draws(8), [("first", "second")]
    for _ in range(80):
        words = _sentence(draws).split()
        rows.append((" ".join(words), " ".join(reversed(words))))
    return _lines(rows)


def _wrong() -> str:
    """Chinese texts with mistakes, and without."""
    draws, rows = Draws(9), [("wrong", "right")]
    for number in range(80):
        right = "".join(draws.words(CHINESE, 3 + draws.below(6)))
        wrong = [_CONFUSED.get(one, one) if draws.below(2) else one for one in right]
        rows.append(("".join(wrong) if number % 3 else right, right))
    return _lines(rows)


def _scored() -> str:
    draws, rows = Draws(10), [("sentence1", "sentence2", "score")]
    for number in range(90):
        words = _sentence(draws).split()
        kept = words[: number % 6 * len(words) // 5]
        rows.append((" ".join(words), " ".join([*kept, *_sentence(draws).split()]), _score(number)))
    return _lines(rows)


def _score(number: int) -> str:
    return f"{number % 6}.{number % 7}"[:3] if number % 6 < 5 else "5.0"


def _labeled() -> str:
    draws, rows, labels = Draws(11), [("premise", "hypothesis", "label")], ("yes", "no", "maybe")
    for number in range(90):
        words = _sentence(draws).split()
        other = (words[::-1], draws.words(ENGLISH, 6), words[:2])[number % 3]
        rows.append((" ".join(words), " ".join(other), labels[number % 3]))
    return _lines(rows)


def _triplets() -> str:
    draws, rows = Draws(12), [("anchor", "positive", "negative")]
    for _ in range(80):
        words = _sentence(draws).split()
        rows.append((" ".join(words), " ".join(words[::-1]), _sentence(draws)))
    return _lines(rows)


def _bank() -> str:
    """Questions, answers and a year."""
    draws = Draws(13)
    years = [str(1990 + number % 20) for number in range(120)]
    rows = [(_sentence(draws), _sentence(draws, 4), year) for year in years]
    return _lines([("question", "answer", "year"), *rows])


def _capitals() -> str:
    """Documents with capitals, and words that link sentences."""
    draws, lines, links = Draws(17), [], ("But", "Because", "So", "Then", "And", "Also")
    for _ in range(60):
        for _ in range(6 + draws.below(12)):
            words = [
                word.capitalize() if draws.below(4) == 0 else word
                for word in draws.words(ENGLISH, 4 + draws.below(10))
            ]
            lines.append(" ".join([links[draws.below(len(links))], *words]) + ".")
        lines.append("")
    return "\n".join(lines)


FILES: dict[str, Callable[[], str]] = {
    "plain.txt": _plain(14, 200),
    "prompts.txt": _plain(15, 12),
    "held-out.txt": _plain(16, 30),
    "capitals.txt": _capitals,
    "entities.tsv": _entities,
    "facts.tsv": _facts,
    "roles.jsonl": _roles,
    "titles.tsv": _titles,
    "alike.tsv": _alike,
    "wrong.tsv": _wrong,
    "scored.tsv": _scored,
    "labeled.tsv": _labeled,
    "triplets.tsv": _triplets,
    "bank.tsv": _bank,
}
