"""New tokens per second, side by side: bertsmith against transformers' `generate`.

Random weights of equal shape in one folder, which both sides load; prompts of mixed lengths; greedy
search, four beams, one text at a time. The peer gets its texts sorted by length and its best batch
size, which is looked for first. Both take turns in one process, round after round, and the best
round of each counts, in CPU seconds: those of a busy machine can be compared, wall time cannot.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from child import child
from machine import machine_facts
from material import cut_texts

VOCAB, WIDTH, LAYERS, HEADS, POSITIONS = 8_192, 256, 4, 4, 512
KINDS = ("bart", "gpt2")
BATCHES = (8, 16, 32, 64)
SEARCHES = {"greedy": 1, "4 beams": 4, "single text": 1}
PARTS = (*SEARCHES, "cache", "memory")
Rows = list[list[int]]
Write = Callable[[Sequence[str]], Rows]


def main() -> int:
    options = arguments()
    if options.child:
        print(json.dumps(peak(**json.loads(options.child))))
        return 0
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "BERTSMITH_THREADS"):
        os.environ[variable] = str(options.threads)
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    import torch

    torch.set_num_threads(options.threads)
    report: dict[str, Any] = {"machine": machine_facts(options.threads), "new": options.new}
    with tempfile.TemporaryDirectory(prefix="bertsmith-bench-") as work:
        for kind in options.kinds:
            folder = Path(work) / kind
            make_folder(kind, folder)
            found: dict[str, Any] = {}
            for part in options.parts:
                if part == "cache":
                    found[part] = with_and_without_cache(folder, options)
                elif part == "memory":
                    found[part] = memory(kind, folder, options)
                else:
                    found[part] = compare(kind, folder, part, options)
            report[kind] = found
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to {options.out}")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--texts", type=int, default=128)
    parser.add_argument("--new", type=int, default=64, help="new tokens of each text")
    parser.add_argument("--long", type=int, default=256, help="new tokens with and without a cache")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench_out/writing.json"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def make_folder(kind: str, folder: Path) -> None:
    """A model with random weights and a byte-level vocabulary, as transformers saves them."""
    import torch
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    folder.mkdir(parents=True)
    texts = cut_texts("long", 3_000)
    trained = ByteLevelBPETokenizer()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if kind == "bart" else ["<|endoftext|>"]
    trained.train_from_iterator(texts, VOCAB, special_tokens=specials)
    trained.save_model(str(folder))
    torch.manual_seed(0)
    if kind == "bart":
        config: Any = transformers.BartConfig(
            vocab_size=VOCAB,
            d_model=WIDTH,
            encoder_layers=LAYERS,
            decoder_layers=LAYERS,
            encoder_attention_heads=HEADS,
            decoder_attention_heads=HEADS,
            encoder_ffn_dim=4 * WIDTH,
            decoder_ffn_dim=4 * WIDTH,
            max_position_embeddings=POSITIONS,
            init_std=0.06,
        )
        model: Any = transformers.BartForConditionalGeneration(config)
        tokenizer: Any = transformers.BartTokenizer.from_pretrained(folder)
    else:
        config = transformers.GPT2Config(
            vocab_size=VOCAB,
            n_embd=WIDTH,
            n_layer=LAYERS,
            n_head=HEADS,
            n_positions=POSITIONS,
            bos_token_id=0,
            eos_token_id=0,
            initializer_range=0.06,
        )
        model = transformers.GPT2LMHeadModel(config)
        tokenizer = transformers.GPT2Tokenizer.from_pretrained(folder)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def ours(folder: Path, beams: int, new: int) -> Write:
    import bertsmith
    from bertsmith.runtime.generation.options import GenerationOptions

    model = bertsmith.load(folder, precision="fp32")
    options = GenerationOptions(max_new=new, beams=beams)

    def write(texts: Sequence[str]) -> Rows:
        return [list(one.answers[0].ids) for one in model.generate(texts, options)]

    return write


def theirs(kind: str, folder: Path, beams: int, new: int, batch: int) -> Write:
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    family: Any = AutoModelForSeq2SeqLM if kind == "bart" else AutoModelForCausalLM
    model = family.from_pretrained(folder).eval()
    side = "right" if kind == "bart" else "left"
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side=side)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    end = tokenizer.eos_token_id

    def write(texts: Sequence[str]) -> Rows:
        rows: Rows = [[] for _ in texts]
        lengths = [len(ids) for ids in tokenizer(list(texts))["input_ids"]]
        order = sorted(range(len(texts)), key=lambda text: -lengths[text])
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            inputs = tokenizer([texts[n] for n in chosen], padding=True, return_tensors="pt")
            with torch.inference_mode():
                out = model.generate(
                    inputs["input_ids"],
                    attention_mask=inputs["attention_mask"],
                    max_new_tokens=new,
                    num_beams=beams,
                    do_sample=False,
                    pad_token_id=tokenizer.pad_token_id,
                )
            before = 1 if kind == "bart" else inputs["input_ids"].shape[1]
            for number, ids in zip(chosen, out[:, before:].tolist(), strict=True):
                rows[number] = ids[: ids.index(end) + 1] if end in ids else ids
        return rows

    return write


def compare(kind: str, folder: Path, search: str, options: argparse.Namespace) -> dict[str, Any]:
    """Both sides on the same texts, in turns."""
    texts = cut_texts("mixed", options.texts)
    beams = SEARCHES[search]
    single = search == "single text"
    if single:
        texts = texts[:8]
    batches = (1,) if single else BATCHES
    sides: dict[int, Write] = {
        batch: theirs(kind, folder, beams, options.new, max(1, batch // beams)) for batch in batches
    }
    # On all texts, since padding depends on them, and after a first call: it pays for warming up.
    for write in sides.values():
        write(texts[:2])
    batch = min(sides, key=lambda size: min(seconds(sides[size], texts)[0] for _ in range(2)))
    pair = {"bertsmith": ours(folder, beams, options.new), "transformers": sides[batch]}
    pair["bertsmith"](texts[:2])
    if single:
        pair["bertsmith"] = one_by_one(pair["bertsmith"])
    best: dict[str, float] = {}
    rows: dict[str, Rows] = {}
    for _ in range(options.rounds):
        for name, write in pair.items():
            spent, rows[name] = seconds(write, texts)
            best[name] = min(best.get(name, spent), spent)
    equal = sum(a == b for a, b in zip(*rows.values(), strict=True)) / len(texts)
    speeds = {name: sum(map(len, rows[name])) / best[name] for name in pair}
    ratio = speeds["bertsmith"] / speeds["transformers"]
    print(
        f"{kind:<6}{search:<13}{speeds['bertsmith']:>8,.0f} new tokens per CPU second, "
        f"{speeds['transformers']:>8,.0f} (batch {batch}): {ratio:.2f}x, {equal:.1%} equal",
        flush=True,
    )
    return {**speeds, "ratio": ratio, "batch": batch, "equal": equal}


def one_by_one(write: Write) -> Write:
    return lambda texts: [write([text])[0] for text in texts]


def seconds(write: Write, texts: Sequence[str]) -> tuple[float, Rows]:
    start = time.process_time()
    rows = write(texts)
    return time.process_time() - start, rows


def with_and_without_cache(folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """The same greedy text with a cache and without one."""
    import numpy as np

    from bertsmith.folders.read import load_model
    from bertsmith.runtime.generation.cached import writer_of
    from bertsmith.runtime.generation.forms import CausalForm, CrossForm
    from bertsmith.runtime.generation.plain import PlainWriter
    from bertsmith.runtime.generation.writer import Writer

    model = load_model(folder).model.eval()
    start = model.spec.decoder
    form = CausalForm() if start is None else CrossForm(start.start)
    sources = [np.arange(10, 10 + length) for length in (12, 20)]
    writers: dict[str, Writer] = {
        "with": writer_of(model, form),
        "without": PlainWriter(model, form),
    }
    spent = {}
    for name, writer in writers.items():
        begun = time.process_time()
        state = writer.begin(sources)
        for _ in range(options.long - 1):
            writer.step(state, state.logits.argmax(-1))
        spent[name] = time.process_time() - begun
    ratio = spent["without"] / spent["with"]
    print(f"{options.long} tokens with a cache: {ratio:.1f}x those without", flush=True)
    return {**spent, "ratio": ratio}


def memory(kind: str, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """The peak of a process of its own for each side, same texts, batches of 64 rows."""
    jobs = {
        name: {"side": name, "kind": kind, "folder": str(folder), "new": options.new, "texts": 128}
        for name in ("bertsmith", "transformers")
    }
    peaks = {name: child(__file__, job, options.threads) for name, job in jobs.items()}
    found = {name: one["peak"] for name, one in peaks.items()}
    print(f"peak memory: {found['bertsmith']:.0f} MB, theirs {found['transformers']:.0f} MB")
    return found


def peak(side: str, kind: str, folder: str, new: int, texts: int) -> dict[str, float]:
    path = Path(folder)
    write = ours(path, 4, new) if side == "bertsmith" else theirs(kind, path, 4, new, 16)
    write(cut_texts("mixed", texts))
    status = Path("/proc/self/status").read_text()  # ru_maxrss would count the parent's peak
    return {"peak": int(status.split("VmHWM:")[1].split()[0]) / 1024}


if __name__ == "__main__":
    sys.exit(main())
