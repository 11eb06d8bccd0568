"""What columns and keys are usually called: texts, pairs, labels, ids, choices."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
    polarity score similarity similarity_score rating stars intent topic emotion stance tag tags
    genres y 标签 类别 分类 标注 情感
"""
PAIRS = tuple(tuple(pair.split()) for pair in PAIR_NAMES.split(","))
TEXTS, LABELS = tuple(TEXT_NAMES.split()), tuple(LABEL_NAMES.split())
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


_KNOWN = {*TEXTS, *LABELS, *IDS, *(name for pair in PAIRS for name in pair)}
