"""n-gram models: Kneser-Ney against a plain computation, sums, pruning, folders, refusals."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from bertsmith.classic.generation import generate_lines
from bertsmith.classic.kinds import LM_KINDS, open_lm
from bertsmith.classic.language_model import score_lines
from bertsmith.classic.ngram.estimation import NgramSettings, discounts_of
from bertsmith.classic.ngram.folder import open_ngram
from bertsmith.classic.ngram.model import NgramLm
from bertsmith.classic.ngram.train import train_ngram
from bertsmith.classic.stream.stream import WordReading, WordStream, build_words
from bertsmith.config import validated
from bertsmith.errors import BertsmithError, ConfigError, FolderError

torch = pytest.importorskip("torch")
READING = WordReading(split="spaces", form="sentences")


def zipf_text(lines: int = 600, seed: int = 1) -> str:
    """Lines of words whose counts fall as in real text, so that discounts exist."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(lines):
        length = int(random.integers(1, 12))
        numbers = np.minimum(random.zipf(1.4, length), 400)
        made.append(" ".join(f"w{n}" for n in numbers))
    return "\n".join(made) + "\n"


def stream_of(folder: Path, text: str) -> WordStream:
    (folder / "text.txt").write_text(text, encoding="utf-8")
    return build_words([folder / "text.txt"], folder / "words", reading=READING)


def trained(folder: Path, settings: NgramSettings, text: str | None = None) -> NgramLm:
    stream = stream_of(folder, text or zipf_text())
    train_ngram(stream, settings, folder / "model")
    return open_ngram(folder / "model")


def plain_kneser_ney(lines: list[list[str]], order: int) -> dict[tuple[str, ...], float]:
    """Probabilities of all n-grams, by the definition, with dictionaries."""
    raw: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(order + 1)]
    for line in lines:
        tokens = ["<s>", *line, "</s>"]
        for end in range(len(tokens)):
            for n in range(1, order + 1):
                if end - n + 1 >= 0:
                    raw[n][tuple(tokens[end - n + 1 : end + 1])] += 1
    chances: dict[tuple[str, ...], float] = {}
    words = {gram[0] for gram in raw[1]} | {"<unk>"}
    for n in range(1, order + 1):
        counts: Counter[tuple[str, ...]] = Counter()
        for gram, count in raw[n].items():
            if n == order or (gram[0] == "<s>" and n > 1):
                counts[gram] = count
        if n < order:
            for gram in raw[n + 1]:
                if not (gram[1] == "<s>" or (gram[1:] in counts and gram[1] == "<s>")):
                    counts[gram[1:]] += 1
        if n == 1:
            counts.pop(("<s>",), None)
        have = Counter(counts.values())
        share = have[1] / (have[1] + 2 * have[2])
        taken = [0.0] + [j - (j + 1) * share * have[j + 1] / have[j] for j in (1, 2, 3)]
        sums: dict[tuple[str, ...], int] = defaultdict(int)
        free: dict[tuple[str, ...], float] = defaultdict(float)
        for gram, count in counts.items():
            sums[gram[:-1]] += count
            free[gram[:-1]] += taken[min(count, 3)]
        for gram, count in counts.items():
            context = gram[:-1]
            below = chances[gram[1:]] if n > 1 else 1 / (len(words) - 1)
            chances[gram] = (count - taken[min(count, 3)]) / sums[context]
            chances[gram] += free[context] / sums[context] * below
        if n == 1:
            chances[("<unk>",)] = free[()] / sums[()] / (len(words) - 1)
    return chances


def test_probabilities_are_those_of_the_definition(tmp_path: Path) -> None:
    text = zipf_text()
    model = trained(tmp_path, NgramSettings(order=3), text)
    lines = [line.split() for line in text.splitlines()]
    expected = plain_kneser_ney(lines, 3)
    stream = WordStream.open(tmp_path / "words")
    found = model.log_probabilities([stream.encode(line) for line in lines])
    for line, logs in zip(lines, found, strict=True):
        tokens = ["<s>", *line, "</s>"]
        for place in range(1, len(tokens)):
            gram = tuple(tokens[max(0, place - 2) : place + 1])
            assert math.isclose(logs[place - 1], math.log(expected[gram]), abs_tol=1e-12)
    assert math.isclose(model.orders[0].logs[0], math.log(expected[("<unk>",)]), abs_tol=1e-12)


@pytest.mark.parametrize("prune", [(), (0, 0, 1), (0, 1, 2)])
@pytest.mark.parametrize("order", [3, 4])
def test_probabilities_of_any_context_sum_to_one(
    tmp_path: Path, order: int, prune: tuple[int, ...]
) -> None:
    model = trained(tmp_path, NgramSettings(order=order, prune=prune))
    random = np.random.default_rng(3)
    contexts = [random.integers(0, len(model.words), n) for n in (0, 1, 2, 3, 7, 20)]
    stream = WordStream.open(tmp_path / "words")
    contexts += [np.asarray(stream.line(n))[:-1] for n in range(20)]
    rows = model.next_log_probabilities(contexts)
    assert np.abs(np.exp(rows).sum(axis=1) - 1).max() < 1e-9


def test_next_words_have_the_probabilities_of_scored_lines(tmp_path: Path) -> None:
    model = trained(tmp_path, NgramSettings(order=4, prune=(0, 0, 1)))
    stream = WordStream.open(tmp_path / "words")
    for number in range(30):
        line = np.asarray(stream.line(number))
        scored = model.log_probabilities([line])[0]
        contexts = [line[:place] for place in range(len(line) + 1)]
        rows = model.next_log_probabilities(contexts)
        wanted = [*line.tolist(), len(model.words)]
        assert np.allclose(rows[np.arange(len(wanted)), wanted], scored, atol=1e-12)


def test_pruning_leaves_out_rare_ngrams_and_keeps_the_discounts(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    whole = trained(tmp_path / "a", NgramSettings(order=3))
    pruned = trained(tmp_path / "b", NgramSettings(order=3, prune=(0, 0, 1)))
    sizes = [len(order.keys) for order in pruned.orders]
    assert sizes[:2] == [len(order.keys) for order in whole.orders[:2]]
    assert 0 < sizes[2] < len(whole.orders[2].keys)
    configs = [(tmp_path / n / "model/config.json").read_text() for n in "ab"]
    discounts = [text[text.index('"discounts"') : text.index('"settings"')] for text in configs]
    assert discounts[0] == discounts[1]


def test_perplexity_counts_line_ends_and_tells_unknown_words_apart(tmp_path: Path) -> None:
    model = trained(tmp_path, NgramSettings(order=2))
    lines = [np.array([1, 0, 2]), np.array([0])]
    score = score_lines(model, lines, characters=10)
    logs = model.log_probabilities(lines)
    every = np.concatenate(logs)
    known = np.array([logs[0][0], logs[0][2], logs[0][3], logs[1][1]])
    assert math.isclose(score.perplexity(), math.exp(-every.mean()))
    assert math.isclose(score.perplexity_known(), math.exp(-known.mean()))
    assert (score.words, score.lines, score.unknown) == (4, 2, 2)
    bits = score.bits_per_character()
    assert bits is not None
    assert math.isclose(bits, -every.sum() / math.log(2) / 12)


def test_generation_repeats_with_its_seed_and_never_writes_unknown_words(tmp_path: Path) -> None:
    model = trained(tmp_path, NgramSettings(order=3))
    empty = np.zeros(0, dtype=np.int32)

    def drawn(seed: int, **options: float) -> list[list[int]]:
        generator = torch.Generator().manual_seed(seed)
        made = generate_lines(model, [empty] * 5, most=8, generator=generator, **options)  # type: ignore[arg-type]
        return [line.tolist() for line in made]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert all(0 not in line and len(line) <= 8 for line in drawn(3))
    greedy = drawn(1, temperature=0.0)
    assert greedy == drawn(2, temperature=0.0) == drawn(4, top=1)
    with pytest.raises(ConfigError, match="temperature"):
        drawn(1, temperature=-1.0)


def test_a_text_without_discounts_is_refused_and_the_fallback_works(tmp_path: Path) -> None:
    stream = stream_of(tmp_path, "a b c\na b c\na b d\n")
    with pytest.raises(ConfigError, match=r"discounts cannot be computed.*set fallback"):
        train_ngram(stream, NgramSettings(order=2), tmp_path / "model")
    assert not (tmp_path / "model").exists()
    train_ngram(stream, NgramSettings(order=2, fallback=True), tmp_path / "model")
    model = open_ngram(tmp_path / "model")
    rows = model.next_log_probabilities([np.zeros(0, dtype=np.int32), np.array([1])])
    assert np.allclose(np.exp(rows).sum(axis=1), 1, atol=1e-12)


def test_a_discount_outside_its_range_is_refused() -> None:
    counts = np.repeat([1, 2, 3, 4], [1, 1, 1, 50])
    with pytest.raises(ConfigError, match="outside 0 to 3"):
        discounts_of(counts, 2, NgramSettings())
    assert discounts_of(counts, 2, NgramSettings(fallback=True)) == (0.5, 1.0, 1.5)


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("a b\nc d\n", NgramSettings(order=6), "above the longest line, which has 2 words"),
        ("a a a\n", NgramSettings(order=2), "nothing to choose from"),
        ("a b\n", NgramSettings(order=2), "discounts cannot be computed"),
        ("word\n", NgramSettings(order=1), "nothing to choose from"),
    ],
)
def test_texts_that_are_too_small_are_refused(
    tmp_path: Path, text: str, settings: NgramSettings, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        train_ngram(stream_of(tmp_path, text), settings, tmp_path / "model")


@pytest.mark.parametrize("prune", [[1], [0, 2, 1], [0, 0, 0, 0, 0, 1]])
def test_prune_must_begin_with_zero_and_not_fall(prune: list[int]) -> None:
    with pytest.raises(ConfigError, match="prune"):
        validated(NgramSettings, {"order": 5, "prune": prune}, "settings")


@pytest.mark.parametrize("name", ["2.keys", "1.logs", "words.txt", "config.json"])
def test_a_damaged_model_is_refused(tmp_path: Path, name: str) -> None:
    trained(tmp_path, NgramSettings(order=2))
    file = tmp_path / "model" / name
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(BertsmithError, match="model"):
        open_lm(tmp_path / "model")


def test_the_kind_of_a_folder_is_found_by_itself(tmp_path: Path) -> None:
    trained(tmp_path, NgramSettings(order=2))
    assert open_lm(tmp_path / "model").kind == "ngram"
    assert "ngram" in LM_KINDS
    with pytest.raises(FolderError, match="cannot give probabilities of words"):
        open_lm(tmp_path / "words")
    with pytest.raises(ConfigError, match="not all words of this model"):
        open_lm(tmp_path / "model").log_probabilities([np.array([10**6])])
