"""K-BERT and SemBERT on real text: what the graph, or the tags, are worth (with and without them).

    python benchmarks/knowledge.py DATA [--part kbert|sembert] [--rows N] [--epochs N] [--model DIR]

K-BERT: Chinese medical NER (DATA/kbert) with the triples of Medical.spo. SemBERT: SST-2 (DATA/sst2)
with the tags of a tagger that is trained on WikiANN (DATA/wikiann_en) first. Models are tiny, from
random weights unless --model names a folder: the figures compare two runs of one seed, and are no
claim about K-BERT or SemBERT with BERT-base.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import torch

from bertsmith.api.finetune import finetune
from bertsmith.cli.views.results import training_lines
from bertsmith.folders.write import save_model
from bertsmith.labeled.spec import DataSpec
from bertsmith.models.build import build
from bertsmith.models.positions import Learned
from bertsmith.models.variants import VARIANTS
from bertsmith.report.finetune.result import finetune_result
from bertsmith.text.tokenizer import Tokenizer
from machine import machine_facts

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
HIDDEN, LAYERS, POSITIONS = 128, 2, 256


def random_folder(words: list[str], path: Path) -> str:
    """A BERT of 2 layers of 128 over these words, untrained."""
    from dataclasses import replace

    files = {
        "vocab.txt": "\n".join([*SPECIAL, *words]).encode(),
        "tokenizer_config.json": b'{"do_lower_case": true}',
    }
    spec = replace(
        VARIANTS["bert"].spec,
        vocab_size=len(SPECIAL) + len(words),
        hidden=HIDDEN,
        embedding=HIDDEN,
        layers=LAYERS,
        heads=2,
        feed_forward=4 * HIDDEN,
        positions=Learned(rows=POSITIONS),
    )
    model = build("bert", spec, generator=torch.Generator().manual_seed(0))
    save_model(model, Tokenizer.from_files(files), path)
    return str(path)


def characters(*texts: str) -> list[str]:
    """The characters of some texts, as a vocabulary."""
    return sorted({c for text in texts for c in text.lower() if not c.isspace()})


def kbert(data: Path, home: Path, model: str | None, rows: int, epochs: float) -> None:
    graph = data / "kbert" / "Medical.spo"
    spoken = [graph.read_text(encoding="utf-8")]
    (home / "ner").mkdir()
    for name in ("train", "dev"):
        source = data / "kbert" / f"medical_ner.{name}.tsv"
        spoken.append(source.read_text(encoding="utf-8"))
        lines = []
        for line in spoken[-1].splitlines()[1:][:rows]:
            words, tags = (cell.split(" ") for cell in line.split("\t"))
            lines.append(json.dumps({"words": words, "tags": tags}, ensure_ascii=False))
        (home / "ner" / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    folder = model or random_folder(characters(*spoken), home / "chinese")
    settings = {"knowledge.file": str(graph), "plan.epochs": epochs, "optimizer.lr": 1e-3}
    settings["length.max_length"] = 128
    spec = DataSpec(format="words", task="tag", joiner="", scheme="iob1")
    show(finetune(home / "ner", model=folder, out=home / "kbert", settings=settings, spec=spec))


def sembert(data: Path, home: Path, model: str | None, rows: int, epochs: float) -> None:
    train = (data / "sst2" / "train.tsv").read_text(encoding="utf-8").splitlines()
    words = sorted({word for line in train for word in line.lower().split()})[:30_000]
    folder = model or random_folder(words + characters(*train[:5_000]), home / "english")
    (home / "entities").mkdir()
    for name, most in (("train", rows), ("dev", 500)):
        lines = (data / "wikiann_en" / f"{name}.conll").read_text(encoding="utf-8")
        some = lines.split("\n\n")[:most]
        (home / "entities" / f"{name}.conll").write_text("\n\n".join(some) + "\n", encoding="utf-8")
    tags = {"plan.epochs": epochs, "optimizer.lr": 1e-3}
    finetune(home / "entities", model=folder, out=home / "tagger", settings=tags)
    (home / "sst2").mkdir()
    for name, source in (("train", "train"), ("dev", "dev"), ("test", "test")):
        lines = (data / "sst2" / f"{source}.tsv").read_text(encoding="utf-8").splitlines()
        (home / "sst2" / f"{name}.tsv").write_text("\n".join(lines[: rows + 1]) + "\n")
    settings = {**tags, "channel.column": str(home / "tagger")}
    show(finetune(home / "sst2", model=folder, out=home / "sembert", settings=settings))


def show(result: object) -> None:
    record, report = getattr(result, "record", None), getattr(result, "report", None)
    if record is None or report is None:
        raise SystemExit("stopped")
    print("\n".join(training_lines(Path(report).parent, record, finetune_result(record), report)))


PARTS = {"kbert": kbert, "sembert": sembert}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--part", choices=PARTS, default="kbert")
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--model")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print(json.dumps(machine_facts(given.threads)))
    with tempfile.TemporaryDirectory() as home:
        PARTS[given.part](given.data, Path(home), given.model, given.rows, given.epochs)


if __name__ == "__main__":
    main()
