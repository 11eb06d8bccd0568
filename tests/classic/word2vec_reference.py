"""word2vec's step in plain loops and float64, as the papers write it; and texts to try it on."""

from __future__ import annotations

import numpy as np

from bertsmith.classic.stream.folder import WordStream
from bertsmith.classic.word2vec.probe import TracedWindow
from bertsmith.classic.word2vec.settings import Word2VecSettings

MODES = [
    (model, loss) for model in ("skipgram", "cbow") for loss in ("negative", "hierarchical", "nce")
]


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + np.exp(-x))


def text_stream(
    *, words: int = 300, lines: int = 400, longest: int = 25, seed: int = 0
) -> WordStream:
    """Words with a long tail, in which neighbors have something to do with each other."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(lines):
        topic = rng.integers(0, 8)
        drawn = rng.zipf(1.5, rng.integers(1, longest)) % (words // 8)
        rows.append(drawn * 8 + np.where(rng.random(len(drawn)) < 0.8, topic, 0))
    flat = np.concatenate(rows)
    known, flat, counts = np.unique(flat, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    ids = (rank[flat] + 1).astype(np.int32)
    ids[rng.random(len(ids)) < 0.02] = 0  # unknown words
    return WordStream(
        ids=ids,
        starts=np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64),
        documents=np.array([0, lines], dtype=np.int64),
        words=("<unk>", *(f"w{number}" for number in range(len(known)))),
        counts=np.bincount(ids, minlength=len(known) + 1).astype(np.int64),
    )


def reference_window(
    inputs: np.ndarray,
    outputs: np.ndarray,
    window: TracedWindow,
    settings: Word2VecSettings,
    shift: np.ndarray | None,
) -> tuple[float, float]:
    """One window in loops; all gradients of a step are taken before it. The loss and its count."""
    loss = count = 0.0
    places = [(int(n), int(w)) for n, w in zip(window.neighbors, window.weights, strict=True)]
    if settings.model == "cbow":
        total = sum(weight for _, weight in places)
        share, back = (1.0, 1.0 / total) if settings.combine == "sum" else (1.0 / total, 1.0)
        groups = [([(1, [(row, weight * share, weight * back) for row, weight in places])])]
    else:
        size = 2 if settings.loss == "hierarchical" else len(places)
        singles = [(weight, [(row, 1.0, 1.0)]) for row, weight in places]
        groups = [singles[at : at + size] for at in range(0, len(singles), size)]
    for group in groups:
        input_change, output_change = np.zeros_like(inputs), np.zeros_like(outputs)
        for weight, members in group:
            h = sum(share * inputs[row] for row, share, _ in members)
            error = np.zeros(inputs.shape[1])
            for row, sign, drawn in zip(window.outputs, window.signs, window.sizes, strict=True):
                score = float(h @ outputs[row]) + (0.0 if shift is None else float(shift[row]))
                right = sigmoid(sign * score)
                loss -= weight * drawn * np.log(right)
                step = window.rate * weight * drawn * sign * (1.0 - right)
                error += step * outputs[row]
                output_change[row] += step * h
            count += weight
            for row, _, back in members:
                input_change[row] += back * error
        inputs += input_change
        outputs += output_change
    return loss, count
