"""Every command of the command line in a form that works, on material that takes no time.

The fuzz of commands starts from these and breaks one thing each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiny_correction import untrained_corrector
from tiny_finetuning import rows, tiny_folder, tiny_writer
from toy_corpus import documents, toy_corpus

from bertsmith.labeled.example import Label

Ask = Callable[..., dict[str, Any]]


class Input(str):
    """A file that a command reads."""

    __slots__ = ()


class InputFolder(str):
    """A folder of a model, a vocabulary or a corpus, whose files may be damaged."""

    __slots__ = ()


class Output(str):
    """What a command writes."""

    __slots__ = ()


@dataclass(frozen=True)
class Material:
    """What the commands read."""

    model: InputFolder
    fine_tuned: InputFolder
    pretrained: InputFolder
    writer: InputFolder
    corrector: InputFolder
    corpus: InputFolder
    vocabulary: InputFolder
    index: InputFolder
    texts: Input
    table: Input
    labeled: Input
    words: Input
    pairs: Input
    data_sets: Input


EXACT = ("--threads", "1", "--precision", "fp32")


def make_material(place: Path, ask: Ask) -> Material:
    """Files, a model, a corpus, and two runs; `ask` runs a command of the server."""
    examples = rows(40)
    texts, table, labeled = place / "texts.txt", place / "rows.csv", place / "labeled.csv"
    texts.write_text("\n\n".join(documents(8)) + "\n", encoding="utf-8")
    table.write_text(
        "text,n\n" + "".join(f"{one.texts[0]},{n}\n" for n, one in enumerate(examples))
    )
    lines = [
        f"{one.texts[0]},{one.target.name}\n" for one in examples if isinstance(one.target, Label)
    ]
    labeled.write_text("text,label\n" + "".join(lines))
    (place / "words.txt").write_text("mandog\nstreetstore\n")
    scores = "".join(f"{one.texts[0]}\tthe bird\t{n % 6}\n" for n, one in enumerate(examples))
    (place / "pairs.tsv").write_text(f"sentence1\tsentence2\tscore\n{scores}")
    (place / "sets").mkdir()
    tabs = [line.replace(",", "\t").replace("yes", "1").replace("no", "0") for line in lines]
    for name in ("train", "dev"):
        (place / "sets" / "SST-2").mkdir(exist_ok=True)
        file = place / "sets" / "SST-2" / f"{name}.tsv"
        file.write_text("sentence\tlabel\n" + "".join(tabs))
    corpus = toy_corpus(place / "corpus")
    model = Path(tiny_folder(place / "model"))
    kinds = (("Transformer", ""), ("Pooling", "1_Pooling"))
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": at} for kind, at in kinds]
    (model / "modules.json").write_text(json.dumps(modules))
    (model / "1_Pooling").mkdir(exist_ok=True)
    (model / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    made = Material(
        model=InputFolder(model),
        fine_tuned=InputFolder(place / "fine-tuned"),
        pretrained=InputFolder(place / "pretrained"),
        writer=InputFolder(tiny_writer(place / "writer")),
        corrector=InputFolder(untrained_corrector(place / "corrector")),
        corpus=InputFolder(corpus),
        vocabulary=InputFolder(corpus / "tokenizer"),
        index=InputFolder(place / "index"),
        texts=Input(texts),
        table=Input(table),
        labeled=Input(labeled),
        pairs=Input(place / "pairs.tsv"),
        words=Input(place / "words.txt"),
        data_sets=Input(place / "sets"),
    )
    index = _index(made, made.index)
    for command in (index, _finetune(made, made.fine_tuned), _pretrain(made, made.pretrained)):
        answer = ask(command, place)
        assert answer["code"] == 0, answer
    for hashes in place.rglob("hashes.json"):  # as strangers write folders: damage gets further
        hashes.unlink()
    return made


def _index(m: Material, out: str) -> list[str]:
    return ["index", "build", m.table, "--model", m.model, "--out", Output(out), *EXACT]


def _finetune(m: Material, out: str) -> list[str]:
    return [
        "finetune",
        m.labeled,
        "--model",
        m.model,
        "--out",
        Output(out),
        "--epochs",
        "1",
        *EXACT,
    ]


def _pretrain(m: Material, out: str) -> list[str]:
    return [
        *("pretrain", "bert", "--corpus", m.corpus, "--out", Output(out), "--size", "tiny"),
        *("--steps", "2", "--set", "batch.tokens=256", "--set", "log.tensorboard=false", *EXACT),
    ]


def working_commands(m: Material, out: Path) -> Iterator[tuple[int, list[str]]]:
    """How often each is drawn, and its arguments; what it writes lies in `out`."""

    def to(name: str) -> Output:
        return Output(out / name)

    yield 6, ["embed", m.model, m.texts, "--out", to("v.npy"), *EXACT]
    yield 4, _index(m, to("i"))
    yield 2, ["index", "add", m.index, m.table, "--again"]
    yield 1, ["index", "delete", m.index, "1"]
    yield 2, ["index", "check", m.index]
    yield 4, ["search", m.index, "the bird"]
    yield 3, ["index", "pairs", m.texts, "--model", m.model]
    yield 3, ["map", m.table, "--method", "pca", "--model", m.model, "--out", to("m.html"), *EXACT]
    yield 2, ["sentences", "evaluate", m.model, m.pairs]
    yield (
        2,
        [
            *("finetune", m.pairs, "--task", "write", "--model", m.pretrained, "--out", to("w")),
            *("--max-length", "64", "--set", "plan.steps=2", *EXACT),
        ],
    )
    yield 3, ["sentences", "similar", m.model, "the bird", "--among", m.texts, "-k", "2"]
    yield (
        2,
        [
            *("sentences", "train", m.texts, "--model", m.model, "--out", to("t"), "--steps", "2"),
            *EXACT,
        ],
    )
    yield 2, ["lm", "train", m.texts, "--kind", "nnlm", "--set", "plan.steps=2", "--out", to("lm")]
    words = ["words", "train", m.texts, "--dim", "4", "--epochs", "1", "--engine", "torch"]
    yield 2, [*words, "--min-count", "1", "--out", to("w")]
    yield 2, ["correct", m.corrector, m.texts, "--out", to("c.jsonl")]
    yield (
        1,
        [
            *("ablate", "bert", "--corpus", m.corpus, "--size", "tiny", "--vary", "mask.rate=0.3"),
            *("--steps", "2", "--out", to("a"), "--estimate", *EXACT),
        ],
    )
    yield (
        1,
        [
            *("road", m.texts, "--steps", "1", "--vocab-size", "120", "--out", to("road")),
            *("--form", "documents", "--estimate"),
        ],
    )
    yield 4, ["tokenize", m.model, "the bird"]
    yield 5, ["vocab", "learn", m.texts, "--vocab-size", "120", "--out", to("vocab")]
    yield (
        3,
        [
            *("corpus", "build", m.texts, "--vocab", m.vocabulary, "--out", to("shards")),
            *("--workers", "1"),
        ],
    )
    yield 2, ["corpus", "verify", m.corpus]
    yield 2, ["corpus", "show", m.corpus]
    yield 1, ["corpus", "advise", m.corpus]
    yield (
        2,
        [
            "corpus",
            "advise",
            m.words,
            "--model",
            m.pretrained,
            "--out",
            to("w"),
            "--min-count",
            "1",
        ],
    )
    yield 2, ["corpus", "extend", m.model, m.words, to("grown")]
    yield 3, ["mask", "preview", m.model, m.texts]
    yield 3, ["mask", "preview", m.model, m.texts, "--noise", "permutation", "--noise", "infilling"]
    yield 1, ["recipes", "show", "bert"]
    yield 4, _pretrain(m, to("run"))
    yield 8, _finetune(m, to("run"))
    yield 6, ["evaluate", m.fine_tuned, m.labeled, "--out", to("e"), *EXACT]
    yield 6, ["predict", m.fine_tuned, m.table, "--out", to("p.csv"), *EXACT]
    yield 4, ["predict", m.fine_tuned, "the bird", *EXACT]
    yield 3, ["compare", m.fine_tuned, m.fine_tuned, m.labeled, "--samples", "100", *EXACT]
    yield 3, ["lengths", m.labeled, "--model", m.model]
    yield (
        1,
        [
            *("lengths", m.labeled, "--model", m.model, "--compare", "--out", to("l"), *EXACT),
            *("--epochs", "1"),
        ],
    )
    yield (
        2,
        [
            *(
                "compare-vectors",
                m.labeled,
                "--model",
                m.model,
                "--out",
                to("s"),
                "--encoder",
                "frozen",
            ),
            *("--pooling", "mean", "--layers", "last", "--frozen-epochs", "1", *EXACT),
        ],
    )
    yield 2, ["glue", m.model, m.data_sets, "--out", to("g"), "--epochs", "1", *EXACT]
    yield 4, ["fill", m.pretrained, "the [MASK] went"]
    yield 4, ["lm", "score", m.pretrained, m.texts]
    few = ("--max-new", "4", "--threads", "1")
    yield 3, ["generate", m.writer, "the bird", "--beams", "2", "--answers", "2", *few]
    yield 4, ["generate", m.writer, m.table, "--text", "text", "--out", to("g.jsonl"), *few]
    yield 2, ["generate", m.writer, "the bird", "--sample", "--top-p", "0.9", "--seed", "1", *few]
    yield 4, ["info", m.model]
    yield 3, ["info", m.fine_tuned]
    yield 4, ["convert", m.model, to("c")]
    yield 1, ["doctor", "--quick", "--limit", "1"]
    yield 2, ["serve", m.model, "--check"]
    yield 1, ["serve", "bench", "http://127.0.0.1:9", "--seconds", "1"]  # nothing listens there
    yield 1, ["demo", "--model", m.model, "--ask", "how?", "--out", to("d")]
