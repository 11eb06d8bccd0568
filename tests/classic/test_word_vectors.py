"""The table of word vectors and the published tests, against gensim's figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors

from bertsmith.classic.word_vectors.evaluation import (
    evaluate_analogies,
    evaluate_similarity,
    is_analogy_file,
    read_analogies,
    read_similarity,
    total_analogies,
)
from bertsmith.classic.word_vectors.word_vectors import WordVectors
from bertsmith.errors import ConfigError, InputFileError

SIZE, WIDTH = 300, 12


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(SIZE, WIDTH)).astype(np.float32)
    for k in range(20):  # 20 pairs with one difference, so that some analogies come out right
        matrix[2 * k + 1] = matrix[2 * k] + 2 + rng.normal(size=WIDTH).astype(np.float32)
    return WordVectors(tuple(f"w{number}" for number in range(SIZE)), matrix)


@pytest.fixture(scope="module")
def theirs(vectors: WordVectors) -> KeyedVectors:
    keyed = KeyedVectors(WIDTH)
    keyed.add_vectors(list(vectors.words), vectors.matrix)
    return keyed


def test_nearest_words_and_analogies_are_those_of_gensim(
    vectors: WordVectors, theirs: KeyedVectors
) -> None:
    pairs = [
        (vectors.near("w7", 5), theirs.most_similar("w7", topn=5)),
        (vectors.near(vectors["w7"] * 3, 5), theirs.similar_by_vector(vectors["w7"], topn=5)),
        (
            vectors.analogy("w0", "w1", "w2", 5),
            theirs.most_similar(positive=["w1", "w2"], negative=["w0"], topn=5),
        ),
    ]
    for ours, wanted in pairs:
        assert [word for word, _ in ours] == [word for word, _ in wanted]
        assert [score for _, score in ours] == pytest.approx([s for _, s in wanted], abs=1e-5)
    assert vectors.similarity("w1", "w9") == pytest.approx(theirs.similarity("w1", "w9"), abs=1e-6)
    assert len(vectors.near("w7", 10_000)) == SIZE - 1
    assert "w0" not in [word for word, _ in vectors.analogy("w0", "w1", "w2", SIZE)]


def test_unknown_words_and_wrong_shapes_are_refused(vectors: WordVectors) -> None:
    with pytest.raises(ConfigError, match="no word with a vector is called 'w7x'; did you mean"):
        vectors.near("w7x")
    with pytest.raises(ConfigError, match="a vector of 12 numbers"):
        vectors.near([1.0, 2.0])
    with pytest.raises(ConfigError, match="zeros"):
        vectors.near(np.zeros(WIDTH))
    with pytest.raises(ConfigError, match="twice"):
        WordVectors(("a", "a"), np.ones((2, 2), dtype=np.float32))


def test_similarity_is_that_of_gensim_with_its_coverage(
    tmp_path: Path, vectors: WordVectors, theirs: KeyedVectors
) -> None:
    rng = np.random.default_rng(1)
    rows = [f"W{a}\tw{b}\t{rng.random():.3f}" for a, b in rng.integers(0, 400, size=(200, 2))]
    file = tmp_path / "sim.txt"
    file.write_text("\n".join(rows) + "\n")
    rated = read_similarity(file)
    result = evaluate_similarity(vectors, rated)
    _, (rho, _), unknown = theirs.evaluate_word_pairs(str(file))
    assert result.spearman == pytest.approx(rho, abs=1e-9)
    assert 1 - result.coverage == pytest.approx(unknown / 100)
    assert (result.pairs, 0 < result.known < 200) == (200, True)


def test_analogies_are_those_of_gensim_section_by_section(
    tmp_path: Path, vectors: WordVectors, theirs: KeyedVectors
) -> None:
    file = tmp_path / "questions.txt"
    lines = [": first one"]
    lines += [f"w{2 * a} W{2 * a + 1} w{2 * b} w{2 * b + 1}" for a in range(9) for b in range(a)]
    lines += [": second"]
    lines += [
        f"w{2 * a} w{2 * a + 1} w{2 * b} w{2 * b + 1}" for a in range(9, 20) for b in (3, a - 1)
    ]
    lines += ["w1 w2 w3 unknown"]
    file.write_text("\r\n".join(lines) + "\r\n")
    assert is_analogy_file(file)
    sections = read_analogies(file)
    assert [section.name for section in sections] == ["first one", "second"]
    for most in (None, 30):
        results = evaluate_analogies(vectors, sections, most=most)
        score, parts = theirs.evaluate_word_analogies(str(file), restrict_vocab=most or SIZE)
        assert 0 < score < 1
        assert total_analogies(results).accuracy == pytest.approx(score)
        assert [one.right for one in results] == [len(part["correct"]) for part in parts[:2]]
    assert results[1].questions == 23
    assert results[1].known < 22


def test_published_similarity_files_are_read_in_every_shape(tmp_path: Path) -> None:
    for text in (
        "Word 1,Word 2,Human (mean)\nlove,sex,6.77\n",
        "word1\tword2\tPOS\tSimLex999\tconc\nlove\tsex\tN\t6.77\t3.0\n",
        "love-n sex-n 6.770\n",
        "# a comment\nlove\tsex\t6.77\t10.00\n\n",
    ):
        file = tmp_path / "pairs.txt"
        file.write_text(text)
        assert not is_analogy_file(file)
        rated = read_similarity(file)
        assert (rated.pairs, rated.ratings) == ((("love", "sex"),), (6.77,))
    for text, message in (
        ("a\tb\t1\na\tb\n", "line 2: 'a\\\\tb'; expected two words and a rating"),
        ("\n", "holds no pair"),
    ):
        file.write_text(text)
        with pytest.raises(InputFileError, match=message):
            read_similarity(file)
    for text, message in ((": x\na b c\n", "line 2: 3 words"), (": x\n", "no analogy")):
        file.write_text(text)
        with pytest.raises(InputFileError, match=message):
            read_analogies(file)
