"""Guesses about columns by their names and cells: texts, label, id."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertsmith.labeled.guess.sample import SpecBuilder
from bertsmith.labeled.read.targets import as_number
from bertsmith.labeled.spec import Column

PAIR_NAMES = """
    sentence1 sentence2, question1 question2, text_a text_b, text1 text2, text_1 text_2,
    sentence_a sentence_b, sentence_1 sentence_2, premise hypothesis, #1_string #2_string,
    sent1 sent2, s1 s2, q1 q2, question sentence, question passage, query passage,
    query document, query title, keyword abst, title text, title content, title body,
    title description, 标题 内容, 标题 正文
"""
TEXT_NAMES = """
    text sentence content review text_a body document article comment comment_text message tweet
    post utterance passage query question description abstract summary headline title
    文本 内容 评论 句子 正文 标题
"""
LABEL_NAMES = """
    gold_label label labels category categories class sentiment target is_duplicate quality
    polarity score similarity similarity_score relatedness_score relatedness entailment_judgment
    entailment_label judgment rating stars intent topic emotion stance tag tags
    genres y 标签 类别 分类 标注 情感
"""
PAIRS = tuple(tuple(pair.split()) for pair in PAIR_NAMES.split(","))
TEXTS, LABELS = tuple(TEXT_NAMES.split()), tuple(LABEL_NAMES.split())
TEXT_COLUMNS = frozenset([*TEXTS, *(name for pair in PAIRS for name in pair)])
OWN_ID = "bertsmith_id"  # the mark of a table that bertsmith wrote
IDS = (OWN_ID, "id", "idx", "index", "guid", "uid", "pairid", "pair_id", "qid", "#id", "unnamed:_0")
WORDS = ("tokens", "words")
TAGS = ("tags", "ner_tags", "labels", "label", "ner", "pos_tags")
SPANS = ("entities", "label", "labels", "spans", "annotations")
CHOICES = ("choices", "choice", "options", "endings", "candidates")
CONTEXTS = ("context", "article", "passage", "sent1", "premise", "text", "question", "reason")
ANSWERS = ("answer", "label", "correct", "gold", "answerkey")
NUMBERED = re.compile(r"(.*\D)(\d)")


def plain_name(name: str) -> str:
    """A name without the differences that mean nothing."""
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def called(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The first of the wanted names that is there, spelled as in the file; once only."""
    for want in wanted:
        matches = [name for name in names if plain_name(name) == want]
        if len(matches) == 1:
            return matches[0]
    return None


def pair_called(names: Sequence[str]) -> tuple[str, str] | None:
    """The first usual pair of texts that is there."""
    for first, second in PAIRS:
        left, right = called(names, (first,)), called(names, (second,))
        if left is not None and right is not None:
            return left, right
    return None


def choices_called(names: Sequence[str]) -> tuple[str, ...] | None:
    """Columns such as ending0, ending1, ...: the same name with numbers from 0 on."""
    families: dict[str, dict[int, str]] = {}
    for name in names:
        if match := NUMBERED.fullmatch(name):
            families.setdefault(match[1], {})[int(match[2])] = name
    for members in families.values():
        if len(members) > 1 and sorted(members) == list(range(len(members))):
            return tuple(members[number] for number in sorted(members))
    return None


def known(name: str) -> bool:
    """Whether this is what a column is usually called."""
    return plain_name(name) in _KNOWN


_KNOWN = {*TEXT_COLUMNS, *LABELS, *IDS}


SHORT = 40  # characters that a label hardly exceeds
FEW_WORDS = 4
SENTENCE = 8  # characters of a short sentence without spaces
MOST_DIGITS = 0.3  # of the visible characters of a text


@dataclass(frozen=True, slots=True)
class Profile:
    """Counts over the cells of one column."""

    cells: tuple[str, ...]
    distinct: int
    filled: int
    length: float  # characters in a filled cell, the mean
    longest: int
    words: int  # the most in a cell
    usual_words: float  # in a filled cell, the mean
    digits: float  # the share of digits among the visible characters
    numeric: bool  # every filled cell is a number
    whole: bool  # and all of them are whole

    @property
    def category(self) -> bool:
        """Whether values repeat as those of labels do."""
        if not self.filled or self.longest > 3 * SHORT:
            return False
        return self.distinct <= max(2, 0.6 * self.filled) and self.distinct < self.filled

    @property
    def short(self) -> bool:
        """Whether all cells are as short as a label."""
        return bool(self.filled) and self.longest <= SHORT and self.words <= FEW_WORDS

    @property
    def score(self) -> bool:
        """Whether the cells are measured rather than counted: 3.8, 4.25."""
        return self.numeric and not self.whole and self.filled > 0

    @property
    def binary(self) -> bool:
        """Whether only 0 and 1 occur."""
        return self.filled > 0 and set(self.cells) <= {"0", "1", "0.0", "1.0"}

    @property
    def sentences(self) -> bool:
        """Whether the cells hold sentences rather than names or keywords."""
        chinese = self.length >= SENTENCE and not any(cell.isascii() for cell in self.cells[:20])
        return self.usual_words > FEW_WORDS or chinese

    @property
    def coded(self) -> bool:
        """Whether the cells are dates, times, phone numbers and the like."""
        return self.digits > MOST_DIGITS

    @property
    def number_or_id(self) -> bool:
        """Whether the cells are numbers, or single words of a code: no texts."""
        coded = self.words == 1 and self.longest <= SHORT and all(c.isascii() for c in self.cells)
        return self.filled > 0 and (self.numeric or coded)


def profile(cells: Sequence[str]) -> Profile:
    """Count over some cells."""
    filled = [cell for cell in cells if cell.strip()]
    numbers = [as_number(cell) for cell in filled]
    words = [len(cell.split()) for cell in filled]
    visible = "".join("".join(cell.split()) for cell in filled[:20])
    numeric = bool(filled) and all(math.isfinite(number) for number in numbers)
    return Profile(
        cells=tuple(cells),
        distinct=len(set(filled)),
        filled=len(filled),
        length=sum(map(len, filled)) / max(1, len(filled)),
        longest=max(map(len, filled), default=0),
        words=max(words, default=0),
        usual_words=sum(words) / max(1, len(words)),
        digits=sum(map(str.isdigit, visible)) / max(1, len(visible)),
        numeric=numeric,
        whole=numeric and all(number.is_integer() for number in numbers),
    )


Profiles = Mapping[Any, Profile]  # by name, or by number
NO_TEXTS = "no column looks like text; this is the longest one"
COMPARABLE = 4  # a second text is no shorter than a quarter of the first
MOST_CATEGORIES = 30  # label columns beyond it are not guessed


def guess_named(profiles: Profiles, builder: SpecBuilder) -> None:
    """Decide by the names of columns or keys, and where they say nothing by what stands there."""
    names = [str(name) for name in profiles]
    given = set(builder.get("label") or ()) if builder.is_set("label") else set()
    free = [name for name in names if name not in given]
    choices = choices_called(names)
    label = called(names, LABELS)
    if choices:
        label = label or called(names, ANSWERS) or _numbers_of(profiles, len(choices))
    if choices and (context := called(names, CONTEXTS)) and _fits(profiles, label, len(choices)):
        builder.put("text", (context, *choices), "a context and numbered choices")
        builder.put("task", "choose", "columns are numbered choices")
        builder.put("label", (label,) if label else (), "it holds numbers of choices")
    _id(names, profiles, builder)
    if builder.get("text") is not None:
        pass
    elif pair := pair_called(free):
        builder.put("text", pair, "columns are usually called so")
    elif single := called(free, TEXTS):
        builder.put("text", (single,), "a column is usually called so")
    taken = {*(builder.get("text") or ()), builder.get("id")}
    if builder.get("label") is None and label is not None and label not in taken:
        others = [n for n in names if n not in {*taken, label} and plain_name(n) in LABELS]
        also = f"; --label {others[0]!r} takes another one" if others else ""
        builder.put("label", (label,), f"a column is usually called so{also}")
    taken |= set(builder.get("label") or ())
    rest = {name: column for name, column in profiles.items() if name not in taken}
    if builder.get("text") is None:
        guess_texts(rest, builder)
        rest = {name: column for name, column in rest.items() if name not in builder.get("text")}
    if builder.get("label") is None:
        _label_by_content(rest, builder)


def _fits(profiles: Profiles, label: str | None, choices: int) -> bool:
    """Whether the label, if there is one, could be the number of a choice."""
    if label is None:
        return True
    cells = set(profiles[label].cells)
    return all(cell.isdecimal() and int(cell) <= choices for cell in cells if cell)


def _numbers_of(profiles: Profiles, choices: int) -> str | None:
    """The only column that could hold the number of the right choice."""
    fitting = [
        str(name)
        for name, column in profiles.items()
        if column.category and {*column.cells} <= {str(number) for number in range(choices)}
    ]
    return fitting[0] if len(fitting) == 1 else None


def _id(names: Sequence[str], profiles: Profiles, builder: SpecBuilder) -> None:
    name = called(names, IDS)
    if name is not None:
        builder.put("id", name, f"a column is called {name!r}")
    elif names and names[0] == "" and profiles[names[0]].numeric:
        builder.put("id", 1, "the first column counts the rows and has no name")


def _label_by_content(rest: Profiles, builder: SpecBuilder) -> None:
    marks = [name for name, column in rest.items() if column.binary]
    if 1 < len(marks) <= MOST_CATEGORIES:
        builder.put("label", tuple(marks), "columns of 0 and 1, one for each label")
        builder.put("task", "multilabel", "several label columns")
        return
    fitting = [
        (name, column)
        for name, column in rest.items()
        if (column.category and column.distinct <= MOST_CATEGORIES) or column.score
    ]
    if len(fitting) == 1:
        name, column = fitting[0]
        builder.put("label", (name,), f"{column.distinct} values repeat in it")
    else:
        what = "no column has the name of a label"
        builder.put("label", (), f"{what}: read as unlabeled; set --label if there is one")


def guess_numbered(profiles: Profiles, builder: SpecBuilder) -> None:
    """Decide for a table without a header, by what stands in its columns."""
    if _cola(profiles):
        builder.put("text", (4,), "four columns as in CoLA")
        builder.put("label", (2,), "four columns as in CoLA")
        return
    if builder.get("label") is None:
        label = _label_of(profiles, set(builder.get("text") or ()))
        if label is None:
            builder.put("label", (), "no column repeats as labels do: read as unlabeled")
        else:
            builder.put("label", (label,), _why_label(profiles[label]))
    taken = {*(builder.get("label") or ()), builder.get("id")}
    guess_texts({name: column for name, column in profiles.items() if name not in taken}, builder)


def _cola(profiles: Profiles) -> bool:
    """CoLA as published: source, 0 or 1, the author's star, sentence."""
    if set(profiles) != {1, 2, 3, 4}:
        return False
    stars = {character for cell in profiles[3].cells for character in cell}
    return profiles[2].binary and stars <= set("*?# ") and profiles[1].category


def _label_of(profiles: Profiles, taken: set[Column]) -> Column | None:
    """The column that repeats, or is short next to a long one; the last one wins over the first."""
    if len(profiles) < 2:
        return None
    order = [*reversed(list(profiles))]
    order = [order[0], order[-1], *order[1:-1]]
    free: list[Column] = [name for name in order if name not in taken]
    for name in free:
        column = profiles[name]
        if (column.category and column.short) or column.score:
            return name
    longest = max(column.length for column in profiles.values())
    for name in free:  # not twice as short as itself: the longest is another one
        if profiles[name].short and profiles[name].length * 2 <= longest:
            return name
    return None


def _why_label(column: Profile) -> str:
    if column.score:
        return "it holds numbers with decimals"
    if column.category:
        return f"{column.distinct} values repeat in it"
    return "it is short next to a long text"


def guess_texts(rest: Profiles, builder: SpecBuilder) -> None:
    """The longest column, and a second one of comparable length or of sentences: a pair."""
    texts = {name: column for name, column in rest.items() if not column.number_or_id}
    candidates = texts or dict(rest)
    if not candidates:
        return
    longest = max(candidates, key=lambda name: candidates[name].length)
    if not texts and len(rest) > 1:
        builder.put("text", (longest,), NO_TEXTS)
        return
    pair = [
        name
        for name, column in candidates.items()
        if (column.length * COMPARABLE >= candidates[longest].length or column.sentences)
        and not (column.category and column.short)
        and not column.coded
    ]
    if len(pair) == 2:
        builder.put("text", tuple(pair), "two columns hold texts")
    else:
        builder.put("text", (longest,), "the column with the longest texts")
