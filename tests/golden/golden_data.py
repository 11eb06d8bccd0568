"""Texts and labeled rows of the golden runs: the same on every machine and in every Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

_ENGLISH = (
    "the a of and to in is was he for it with as his on be at by had not are but from or have an "
    "they which one you were her all she there would their we him been has when who will more no "
    "if out so said what up its about into than them can only other new some could time these two "
    "may then do first any my now such like our over man me even most made after also did many "
    "before must through back years where much your way well down should because each just those "
    "people how too little state good very make world still own see men work long get here between "
    "both life being under never day same another know while last might us great old year off come "
    "since against go came right used take three states himself few house use during without again "
    "place river stone window garden winter teacher kitchen letter station mountain harbour engine"
)
_CHINESE = (
    "我们 你们 他们 今天 明天 昨天 天气 很好 非常 喜欢 学习 中文 英文 北京 "
    "上海 大学 老师 学生 朋友 工作 生活 城市 农村 河流 高山 石头 房子 窗户 "
    "花园 冬天 夏天 早上 晚上 吃饭 喝水 看书 写字 说话 走路 坐车 火车 飞机 "
    "车站 机场 经济 政治 文化 历史 科学 技术 电脑 手机 网络 新闻 音乐 电影 "
    "运动 足球 健康 医院 医生 孩子 父母 家庭 问题 答案 时间 地方 的 了 "
    "在 是 和 不 也 都 就 很 有"
)
ENGLISH, CHINESE = tuple(_ENGLISH.split()), tuple(_CHINESE.split())
KINDS = ("river", "garden", "engine")  # words that labels hang on


class Draws:
    """Knuth's linear congruential generator: as nobody else will ever change it."""

    def __init__(self, seed: int) -> None:
        self._state = seed
        for _ in range(4):
            self.below(2)

    def below(self, most: int) -> int:
        """A number from 0 to `most` - 1."""
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self._state >> 33) % most

    def words(self, words: Sequence[str], count: int) -> list[str]:
        """So many of these words, one after another."""
        return [words[self.below(len(words))] for _ in range(count)]


def write_texts(path: Path, count: int) -> None:
    """One text a line, every third in Chinese: from 1 to 200 words, short ones more often."""
    draws, lines = Draws(1), []
    for number in range(count):
        share = draws.below(1000) / 1000
        size = 1 + int(199 * share**3) if number % 50 else 200
        if number % 3 == 2:
            lines.append("".join(draws.words(CHINESE, size)) + "。")
        else:
            lines.append(" ".join(draws.words(ENGLISH, size)).capitalize() + ".")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_documents(path: Path, *, chinese: bool = False) -> None:
    """Sentences, one a line, and a blank line after each of 60 documents."""
    draws, lines = Draws(2), []
    for _ in range(60):
        for _ in range(6 + draws.below(12)):
            size = 4 + draws.below(14)
            if chinese:
                lines.append("".join(draws.words(CHINESE, size)) + "。")
            else:
                lines.append(" ".join(draws.words(ENGLISH, size)) + ".")
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf-8")


def write_rows(folder: Path, kind: str) -> None:
    """The files train and dev of labeled rows of this kind."""
    folder.mkdir(parents=True)
    ending, written = WRITERS[kind]
    for name, count, seed in (("train", 64, 3), ("dev", 24, 4)):
        text = written(Draws(seed), count)
        (folder / f"{name}.{ending}").write_text(text, encoding="utf-8")


def _kinds(draws: Draws) -> list[str]:
    """Some of the kinds, at least one."""
    chosen = 1 + draws.below(2 ** len(KINDS) - 1)
    return [kind for bit, kind in enumerate(KINDS) if chosen >> bit & 1]


def _text(draws: Draws, longest: int, said: Sequence[str]) -> str:
    """From 4 to `longest` words, with those to be said somewhere among them."""
    plain = [word for word in ENGLISH if word not in KINDS]
    words = draws.words(plain, 4 + draws.below(longest - 3))
    for word in said:
        words.insert(draws.below(len(words)), word)
    return " ".join(words)


def _table(header: str, rows: Sequence[Sequence[str]]) -> str:
    return "\n".join([header, *("\t".join(row) for row in rows)]) + "\n"


def _labels(longest: int) -> Callable[[Draws, int], str]:
    def written(draws: Draws, count: int) -> str:
        kinds = [KINDS[number % len(KINDS)] for number in range(count)]
        return _table("text\tlabel", [(_text(draws, longest, [kind]), kind) for kind in kinds])

    return written


def _pairs(draws: Draws, count: int) -> str:
    rows = []
    for number in range(count):
        first = draws.below(len(KINDS))
        second = first if number % 2 else (first + 1) % len(KINDS)
        pair = [_text(draws, 20, [KINDS[which]]) for which in (first, second)]
        rows.append((*pair, "same" if number % 2 else "other"))
    return _table("text1\ttext2\tlabel", rows)


def _several(draws: Draws, count: int) -> str:
    chosen = [_kinds(draws) for _ in range(count)]
    return _table("text\tlabels", [(_text(draws, 30, said), "|".join(said)) for said in chosen])


def _numbers(draws: Draws, count: int) -> str:
    chosen = [_kinds(draws) for _ in range(count)]
    return _table(
        "text\tscore", [(_text(draws, 30, said), f"{len(said) + 0.25}") for said in chosen]
    )


def _likeness(draws: Draws, count: int) -> str:
    rows = []
    for number in range(count):
        first = _text(draws, 100, _kinds(draws)).split()
        kept = number % 6 * len(first) // 5
        second = [*first[:kept], *_text(draws, 100, _kinds(draws)).split()[kept:]]
        score = f"{number % 6}.{draws.below(10)}"
        rows.append((" ".join(first), " ".join(second) or "nothing", score))
    return _table("sentence1\tsentence2\tscore", rows)


def _tags(draws: Draws, count: int) -> str:
    sentences = []
    for _ in range(count):
        words = _text(draws, 30, _kinds(draws)).split()
        sentences.append([f"{word} {'B-' + word if word in KINDS else 'O'}" for word in words])
    return "\n\n".join("\n".join(sentence) for sentence in sentences) + "\n"


def _answers(draws: Draws, count: int) -> str:
    lines = []
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        context = _text(draws, 60, [kind])
        answer = {"text": [kind], "answer_start": [context.index(kind)]}
        question = " ".join(["what", *draws.words(ENGLISH[:50], 4)])
        row = {"id": str(number), "question": question, "context": context, "answers": answer}
        lines.append(json.dumps(row))
    return "\n".join(lines) + "\n"


def _choices(draws: Draws, count: int) -> str:
    lines = []
    for number in range(count):
        kind, right = KINDS[number % len(KINDS)], draws.below(3)
        choices = [_text(draws, 12, []) for _ in range(3)]
        choices[right] += f" {kind}"
        row = {"question": _text(draws, 20, [kind]), "choices": choices, "answer": right}
        lines.append(json.dumps(row))
    return "\n".join(lines) + "\n"


WRITERS: dict[str, tuple[str, Callable[[Draws, int], str]]] = {
    "labels": ("tsv", _labels(30)),
    "long labels": ("tsv", _labels(120)),
    "pairs": ("tsv", _pairs),
    "several": ("tsv", _several),
    "numbers": ("tsv", _numbers),
    "likeness": ("tsv", _likeness),
    "tags": ("conll", _tags),
    "answers": ("jsonl", _answers),
    "choices": ("jsonl", _choices),
}
