"""n-gram models against kenlm: equal figures, equal scores, time and memory of ten million words.

    python benchmarks/ngram.py FOLDER [--words 10000000]

FOLDER holds wikitext2/ and imdb/. Published figures are those of lmplz and query on wikitext2's
valid.txt (training) and test.txt, blank lines left out, <unk> written unk. The kenlm module, where
it is installed, scores the test text with our ARPA file.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from child import child
from classic_text import reviews
from machine import machine_facts

# order -> perplexity with and without unknown words; lmplz and query (kenlm)
PUBLISHED = {3: (379.2510, 272.6275), 5: (375.0524, 269.7430)}
DISCOUNTS = (0.864737, 1.298856, 1.538503)  # of trigrams, order 3
PRUNED = (0, 0, 1)


def main() -> None:
    """Run one side, or all of them and print them next to what was asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--words", type=int, default=10_000_000)
    parser.add_argument("--child")
    given = parser.parse_args()
    if given.child:
        print(json.dumps(_estimate(json.loads(given.child))))
        return
    if given.data is None:
        parser.error("give the folder of the data")
    print(json.dumps(machine_facts(1)))
    with tempfile.TemporaryDirectory(prefix="bertsmith-ngram-") as place:
        figures(given.data, Path(place))
        large(given.data, Path(place), given.words)


def figures(data: Path, place: Path) -> None:
    """Perplexities and discounts of wikitext2, and kenlm's own scores of our file."""
    for name in ("valid", "test"):
        lines = (data / "wikitext2" / f"{name}.txt").read_text(encoding="utf-8").split("\n")
        text = [line.replace("<unk>", "unk") for line in lines if line.strip()]
        (place / f"{name}.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
    for order, wanted in PUBLISHED.items():
        job = {"text": str(place / "valid.txt"), "order": order, "out": str(place / f"kn{order}")}
        made = child(__file__, {**job, "test": str(place / "test.txt")}, 1)
        found = (made["perplexity"], made["perplexity_without_unknown"])
        apart = max(abs(a - b) for a, b in zip(found, wanted, strict=True))
        print(
            f"order {order}: {found[0]:.5f} and {found[1]:.5f}, lmplz {wanted[0]:.4f} and "
            f"{wanted[1]:.4f}: largest difference {apart:.5f}"
        )
        if order == 3:
            shown = ", ".join(f"{one:.6f}" for one in made["discounts"][-1])
            print(f"discounts of trigrams {shown}, lmplz {DISCOUNTS}")
        print(f"kenlm on our ARPA file, largest difference per sentence: {made['kenlm']}")


def large(data: Path, place: Path, words: int) -> None:
    """Time and memory of order 5, whole and pruned, as processes of their own."""
    (part,) = reviews(data, words)
    part.write(place / "large.txt")
    for prune in ((), PRUNED):
        name = f"large{len(prune)}"
        job = {"text": str(place / "large.txt"), "order": 5, "out": str(place / name)}
        made = child(__file__, {**job, "prune": prune}, 1)
        print(
            f"{made['words']:,} words, order 5{', pruned' if prune else ''}: "
            f"{made['seconds']:.1f} s ({made['cpu']:.1f} s of CPU), "
            f"{made['peak'] / 1e9:.2f} GB, {made['ngrams']:,} n-grams"
        )


def _estimate(job: dict[str, Any]) -> dict[str, Any]:
    """Train one model from its text file to its folder, and score the test text, if there is one"""
    from bertsmith.api.language_models import score_language_model
    from bertsmith.classic.ngram.arpa import write_arpa
    from bertsmith.classic.ngram.estimation import NgramSettings
    from bertsmith.classic.ngram.folder import open_ngram
    from bertsmith.classic.ngram.train import train_ngram
    from bertsmith.classic.stream.stream import WordReading, build_words
    from bertsmith.corpus.sources import CorpusSettings

    out = Path(job["out"])
    began, cpu = time.monotonic(), time.process_time()
    reading = WordReading(form="sentences", split="spaces")
    stream = build_words([Path(job["text"])], out.with_suffix(".words"), reading=reading)
    settings = NgramSettings(order=job["order"], prune=tuple(job.get("prune", ())))
    train_ngram(stream, settings, out)
    found: dict[str, Any] = {
        "seconds": time.monotonic() - began,
        "cpu": time.process_time() - cpu,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "words": len(stream.ids),
    }
    model = open_ngram(out)
    found["ngrams"] = sum(len(order.keys) for order in model.orders)
    found["discounts"] = json.loads((out / "config.json").read_bytes()).get("discounts", [])
    if "test" in job:
        score = score_language_model(out, [Path(job["test"])], CorpusSettings(form="sentences"))
        found |= score.as_dict()
        write_arpa(model, out.with_suffix(".arpa"))
        found["kenlm"] = _kenlm(out.with_suffix(".arpa"), model, stream, Path(job["test"]))
    return found


def _kenlm(arpa: Path, model: Any, stream: Any, test: Path) -> str:
    """The largest difference between kenlm's score of a sentence and ours, in log10."""
    try:
        import kenlm
    except ImportError:
        return "not installed (pip install kenlm)"
    peer = kenlm.Model(str(arpa))
    lines = [" ".join(line.split()) for line in test.read_text(encoding="utf-8").splitlines()]
    scores = model.log_probabilities([stream.encode(line.split(" ")) for line in lines])
    # kenlm's own sums are float32, which a sum of -1,500 holds to 1e-4: its words are added here.
    worst = max(
        abs(sum(word[0] for word in peer.full_scores(line)) - float(np.sum(ours)) / np.log(10))
        for line, ours in zip(lines, scores, strict=True)
    )
    return f"{worst:.2e} over {len(lines):,} sentences"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
