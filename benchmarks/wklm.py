"""WKLM and entity alignment on WikiANN: replaced entities, detected in unseen sentences.

    python benchmarks/wklm.py DATA [--steps N] [--seeds N] [--out FILE]

The typed entities (PER, ORG, LOC) of the training file of DATA/wikiann_en are the list; an entity
with several types counts as of its most frequent one. Sentences of its training file are trained
on, those of its test file are held out: their mentions of the list are replaced by entities of the
same type, and balanced accuracy counts true and replaced mentions alike, so that .5 is chance. The
interval is a bootstrap over sentences. A rule that calls rare entities replaced is measured, too:
true mentions are those of text, replacements are drawn evenly from the list. What the model knows
beyond that is its balanced accuracy among entities of equal counts. Alignment: the share
of mentions whose own entity comes first among those of its batch. Models are tiny and begin at
random, or at --init.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from machine import machine_facts

PREFIX = "en:"
BOOTSTRAPS = 1_000
MOST = 5  # mentions in training text from which on counts are taken as equal
LONGEST = 128  # tokens of a sentence that is measured
TOGETHER = 128  # sentences whose entities are told apart


def sentences(path: Path) -> Iterator[list[tuple[str, str]]]:
    """The words and tags of each sentence."""
    current: list[tuple[str, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            word, _, tag = line.partition("\t")
            current.append((word.removeprefix(PREFIX), tag.strip()))
        elif current:
            yield current
            current = []
    if current:
        yield current


def entities(rows: list[list[tuple[str, str]]]) -> Iterator[tuple[str, str]]:
    """The entities of tagged sentences with their types."""
    for row in rows:
        words: list[str] = []
        kind = ""
        for word, tag in [*row, ("", "O")]:
            if words and tag != f"I-{kind}":
                yield " ".join(words), kind
                words = []
            if tag.startswith("B-"):
                words, kind = [word], tag[2:]
            elif words:
                words.append(word)


def typed(rows: list[list[tuple[str, str]]]) -> dict[str, str]:
    """Each entity of at least three letters with its most frequent type."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for name, kind in entities(rows):
        if sum(character.isalpha() for character in name) >= 3:
            counts[name][kind] += 1
    return {name: found.most_common(1)[0][0] for name, found in counts.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--steps", type=int, default=1_500)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--words", type=int, default=8_000, help="tokens of the vocabulary")
    parser.add_argument("--init", default=None)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench_out/wklm.json"))
    options = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "BERTSMITH_THREADS"):
        os.environ[variable] = str(options.threads)
    report: dict[str, Any] = {"machine": machine_facts(options.threads), "runs": []}
    with tempfile.TemporaryDirectory(prefix="bertsmith-bench-") as work:
        material = prepared(options, Path(work))
        for seed in range(options.seeds):
            found = run(options, material, Path(work) / f"run-{seed}", seed)
            report["runs"].append(found)
            print("\n".join(described(seed, found)))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    return 0


def described(seed: int, found: dict[str, Any]) -> list[str]:
    """The figures of a run in words."""
    low, high = found["interval"]
    return [
        f"seed {seed}: balanced accuracy {found['balanced']:.4f} ({low:.4f} to {high:.4f}) on "
        f"{found['mentions']:,} mentions, {found['replaced']:,} of them replaced, of "
        f"{found['sentences']:,} held-out sentences; by rarity alone {found['by_rarity']:.4f}",
        "seed {}: among entities of equal counts {:.4f} ({:.4f} to {:.4f})".format(
            seed, *found["equal_counts"]
        ),
        f"seed {seed}: hits@1 {found['hits']:.4f} of {found['aligned']:,} mentions, "
        f"{1 / found['candidates']:.4f} by chance (1 of {found['candidates']:.1f})",
    ]


def prepared(options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """The corpus of the training sentences, the list of entities, the held-out sentences."""
    from bertsmith.corpus.build import build_corpus
    from bertsmith.text.learn import learn_vocabulary

    folder = options.data / "wikiann_en"
    train, test = (list(sentences(folder / f"{name}.conll")) for name in ("train", "test"))
    texts = [" ".join(word for word, _ in row) for row in train]
    held_out = sorted({" ".join(word for word, _ in row) for row in test} - set(texts))
    listed = typed(train)
    (work / "entities.tsv").write_text("".join(f"{n}\t{k}\n" for n, k in listed.items()))
    (work / "text.txt").write_text("\n\n".join(texts), encoding="utf-8")
    tokenizer = learn_vocabulary(texts, size=options.words, min_count=2)
    build_corpus([work / "text.txt"], tokenizer, work / "shards", workers=1)
    print(f"{len(texts):,} sentences, {len(held_out):,} held out, {Counter(listed.values())}")
    return {
        "shards": work / "shards",
        "entities": work / "entities.tsv",
        "texts": texts,
        "held_out": held_out,
        "tokenizer": tokenizer,
    }


def run(
    options: argparse.Namespace, material: dict[str, Any], out: Path, seed: int
) -> dict[str, Any]:
    """Train, and measure on held-out sentences."""
    import torch

    torch.set_num_threads(options.threads)
    from bertsmith.corpus.shards import open_corpus
    from bertsmith.training.pretrain.model import build_module
    from bertsmith.training.pretrain.pretrain import Job, pretrain
    from bertsmith.training.pretrain.recipe import load_recipe
    from bertsmith.training.pretrain.workload import PretrainWorkload

    settings = [
        f"program.entities={material['entities']}",
        "program.aligned=0.3",
        "program.rate=0.5",
        "input.max_length=64",
        f"schedule.steps={options.steps}",
        "batch.sequences=128",
        "batch.micro_tokens=4096",
        "eval={held_out=0.0, every=100000}",
        "save.every=100000",
        "log={every=100, tensorboard=false}",
        f"run.seed={seed}",
    ]
    settings.append("model.dropout=0.1")
    if options.init is None:
        settings.append(f"model.size={options.size}")
    recipe = load_recipe("wklm", settings)
    job = Job(recipe=recipe, corpus=material["shards"], out=out, init=options.init)
    pretrain(job, notice=print)
    files = open_corpus(material["shards"])
    program = PretrainWorkload(recipe, files).program
    module = build_module(recipe, files, program, init=out).eval()
    return measured(module, program, material, seed)


def measured(module: Any, program: Any, material: dict[str, Any], seed: int) -> dict[str, Any]:
    """Balanced accuracy with its interval, and hits@1, on the held-out sentences."""
    import numpy as np
    import torch

    from bertsmith.corpus.rows import rows_of
    from bertsmith.objectives.entities.wklm import ALIGNED, REPLACED

    program.masking = None  # nothing is masked when it is measured
    program.weights = dict.fromkeys((REPLACED, ALIGNED), 1.0)
    encode = material["tokenizer"].encode_batch
    encodings = [one for one in encode(material["held_out"]) if len(one) <= LONGEST]
    counts_of, rare = rarity(program, encode(material["texts"]))
    right: list[bool] = []
    labels: list[bool] = []
    owners: list[int] = []
    hits = aligned = 0
    candidates = []
    seen: list[int] = []
    for start in range(0, len(encodings), TOGETHER):
        rows = rows_of(encodings[start : start + TOGETHER], seed=100 + seed, first=start)
        batch = program.prepare(rows)
        targets = batch.texts.targets[REPLACED]
        with torch.no_grad():
            hidden = module.model(batch.inputs, rows=batch.texts.rows).hidden
            sides = (hidden[targets.at[:, 0]], hidden[targets.at[:, 1]])
            said = module.own_heads[REPLACED](*sides) > 0
            _, scores = program.losses(module, batch)
        truth = targets.of > 0
        right += (said == truth).tolist()
        labels += truth.tolist()
        seen += counts_of(rows).tolist()
        lengths = torch.tensor(batch.inputs.layout.lengths)
        text = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        owners += (start + text[batch.texts.rows[targets.at[:, 0]]]).tolist()
        hits += int(scores[ALIGNED].correct)
        aligned += scores[ALIGNED].count
        candidates += [len(batch.candidates)] * scores[ALIGNED].count
    ok, label, owner = np.array(right), np.array(labels), np.unique(owners, return_inverse=True)[1]
    low, high = interval(ok, label, owner)
    return {
        "balanced": balanced(ok, label, np.ones(len(ok))),
        "interval": [low, high],
        "by_rarity": balanced((np.array(seen) <= rare) == label, label, np.ones(len(ok))),
        "equal_counts": list(equal_counts(ok, label, np.minimum(seen, MOST), owner)),
        "mentions": len(ok),
        "replaced": int(label.sum()),
        "sentences": int(owner.max()) + 1,
        "hits": hits / max(aligned, 1),
        "aligned": aligned,
        "candidates": 1.0 / float(np.mean(1.0 / np.array(candidates))),
    }


def rarity(program: Any, encodings: list[Any]) -> tuple[Any, int]:
    """A rule without a model: mentions of entities that training text seldom has are replaced.

    Gives the counts of the mentions in rows, and the count up to which an entity is rare: the one
    with the best balanced accuracy on training sentences.
    """
    import numpy as np

    from bertsmith.corpus.rows import rows_of
    from bertsmith.objectives.entities.replaced import replace_mentions

    every = rows_of(encodings, seed=7)
    counts = np.bincount(
        program.entities.find(every).entities, minlength=len(program.entities.names)
    )

    def shown(rows: Any) -> tuple[Any, Any]:
        texts = replace_mentions(rows, program.entities, program.rate)
        asked = program.entities.replaceable[texts.originals]
        return counts[texts.mentions.entities[asked]], texts.replaced[asked]

    seen, label = shown(every)
    one = np.ones(len(seen))
    best = max(range(50), key=lambda limit: balanced((seen <= limit) == label, label, one))
    return lambda rows: shown(rows)[0], best


def balanced(right: Any, label: Any, weight: Any) -> float:
    """The mean of the shares of true and of replaced mentions that are right."""
    shares = [
        (right * weight)[label == kind].sum() / weight[label == kind].sum() for kind in (0, 1)
    ]
    return float(sum(shares) / 2)


def equal_counts(right: Any, label: Any, seen: Any, owner: Any) -> tuple[float, float, float]:
    """Balanced accuracy among mentions whose entities training text has equally often.

    The mean over counts, by mentions, with its interval over sentences.
    """
    import numpy as np

    def mean(weight: Any) -> float:
        found, sizes = [], []
        for count in np.unique(seen):
            here = seen == count
            if min(weight[here & (label == kind)].sum() for kind in (0, 1)):
                found.append(balanced(right[here], label[here], weight[here]))
                sizes.append(weight[here].sum())
        return float(np.average(found, weights=sizes))

    low, high = resampled(mean, owner)
    return mean(np.ones(len(right))), low, high


def interval(right: Any, label: Any, owner: Any) -> tuple[float, float]:
    """The 95 % interval of balanced accuracy over sentences."""
    return resampled(lambda weight: balanced(right, label, weight), owner)


def resampled(figure: Any, owner: Any) -> tuple[float, float]:
    """The 95 % interval of a figure over sentences drawn with replacement, by their weights."""
    import numpy as np

    rng = np.random.default_rng(0)
    count = int(owner.max()) + 1
    found = []
    for _ in range(BOOTSTRAPS):
        weight = np.bincount(rng.integers(0, count, count), minlength=count)[owner]
        found.append(figure(weight))
    low, high = np.percentile(found, [2.5, 97.5])
    return float(low), float(high)


if __name__ == "__main__":
    raise SystemExit(main())
