"""Ids, type ids and offsets against the stock `tokenizers` library, on real lines of two languages.

    python benchmarks/tokenizer_parity.py DATA_FOLDER [--model FOLDER] [--lines 100000]

Takes the first lines of every text file below DATA_FOLDER, in the order of their paths: as many
with Chinese characters and as many without. Each line is encoded alone and paired with the next
one, by the model's tokenizer and by a Chinese one learned from the Chinese lines. Prints counts;
exits with 1 if anything differs.
"""

import argparse
import gzip
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer

from bertsmith.text.learn import learn_vocabulary
from bertsmith.text.segment import is_chinese
from bertsmith.text.tokenizer import Tokenizer

KINDS = {".txt", ".tsv", ".csv", ".jsonl", ".conll", ".gz"}
BATCH = 1000


def lines_of(folder: Path) -> Iterator[str]:
    """Every line that says something, file by file."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in KINDS or not path.is_file():
            continue
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for raw in file:
                line = raw.decode("utf-8", errors="replace").rstrip("\r\n")
                if line.strip():
                    yield line


def collect(folder: Path, count: int) -> dict[str, list[str]]:
    """The first `count` different lines of each language."""
    found: dict[str, dict[str, None]] = {"English": {}, "Chinese": {}}
    for line in lines_of(folder):
        lines = found["Chinese" if any(map(is_chinese, line)) else "English"]
        if len(lines) < count:
            lines[line] = None
        elif all(len(lines) >= count for lines in found.values()):
            break
    return {language: list(lines) for language, lines in found.items()}


def compare(ours: Tokenizer, stock: RustTokenizer, lines: list[str]) -> dict[str, int]:
    """How many lines were compared, and how many differ in what."""
    counts = {"singles": 0, "pairs": 0, "ids": 0, "type ids": 0, "offsets": 0, "tokens": 0}
    for pairs in (False, True):
        for start in range(0, len(lines), BATCH):
            texts = lines[start : start + BATCH]
            others = [*texts[1:], texts[0]] if pairs else None
            expected = stock.encode_batch(
                list(zip(texts, others, strict=True)) if others else texts
            )
            got = ours.encode_batch(texts, others)
            counts["pairs" if pairs else "singles"] += len(texts)
            for one, other in zip(got, expected, strict=True):
                counts["tokens"] += len(one)
                counts["ids"] += one.ids.tolist() != other.ids
                counts["type ids"] += one.segments.tolist() != other.type_ids
                counts["offsets"] += [tuple(s) for s in one.offsets.tolist()] != other.offsets
    return counts


def stock_of(tokenizer: Tokenizer) -> RustTokenizer:
    """The stock tokenizer of the same files, as `tokenizers` itself loads them."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(Path(folder))
        return RustTokenizer.from_file(str(Path(folder) / "tokenizer.json"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path, help="a model folder (default: all-MiniLM-L6-v2)")
    parser.add_argument("--lines", type=int, default=100_000, help="lines of each language")
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"{options.data} is not a folder; nothing was measured", file=sys.stderr)
        return 2
    if options.model is None:
        from bertsmith.folders.resolve import resolve

        options.model = resolve("all-MiniLM-L6-v2")
    lines = collect(options.data, options.lines)
    # The model's own tokenizer.json, untouched by us, is the reference for its folder.
    stock = RustTokenizer.from_file(str(options.model / "tokenizer.json"))
    stock.no_truncation()
    stock.no_padding()
    tokenizers = {"model": (Tokenizer.from_folder(options.model), stock)}
    if lines["Chinese"]:
        learned = learn_vocabulary(lines["Chinese"], size=8000)
        tokenizers["learned zh"] = (learned, stock_of(learned))
    wrong = 0
    print("tokenizer    language  lines    pairs    tokens       ids  type ids  offsets  seconds")
    for name, (ours, reference) in tokenizers.items():
        for language, texts in lines.items():
            controls = [t for t in texts if any(c in t for c in ours.control_tokens)]
            texts = sorted(set(texts) - set(controls))  # in those we differ on purpose
            if not texts:
                continue
            start = time.perf_counter()
            c = compare(ours, reference, texts)
            wrong += c["ids"] + c["type ids"] + c["offsets"]
            print(
                f"{name:<12} {language:<9} {c['singles']:<8} {c['pairs']:<8} {c['tokens']:<12} "
                f"{c['ids']:<4} {c['type ids']:<9} {c['offsets']:<8} "
                f"{time.perf_counter() - start:.0f}"
                + (f"  ({len(controls)} lines with control tokens left out)" if controls else "")
            )
    print("all equal" if not wrong else f"{wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
