"""`bertsmith index pairs`: the most similar pairs of the texts of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.console import note, write_json, write_lines
from bertsmith.cli.shared.data_options import TextOptions, open_texts
from bertsmith.cli.shared.inference import ComputeOptions, load_encoder
from bertsmith.cli.shared.options import EncoderOption, Json, Quiet
from bertsmith.cli.shared.options_of import spread
from bertsmith.setting import DATA, Setting

if TYPE_CHECKING:
    from bertsmith.search.pairs import SimilarPair

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Texts: .txt (one per line), .tsv, .csv or .jsonl, also .gz or .zst; - is stdin.",
    ),
]
Count = Annotated[int, Setting("Number of results.", DATA, flag="-k", metavar="COUNT", min=1)]
Least = Annotated[float, Setting("Least cosine similarity of a pair.", DATA, min=-1, max=1)]
SkipEqual = Annotated[bool, Setting("Compare only the first of equal texts.", DATA)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOptions:
    """Which pairs of which texts."""

    k: Count = 20
    min_score: Least = -1.0
    skip_equal: SkipEqual = False


@spread
def pairs(
    file: File,
    model: EncoderOption,
    chosen: PairOptions,
    reading: TextOptions,
    computing: ComputeOptions,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the most similar pairs of the texts of a file: similarity, two row numbers, two texts.

    All pairs are compared, 50 million for 10,000 texts. Rows are counted from 1.

    Example:

        bertsmith index pairs texts.txt --model all-MiniLM-L6-v2 -k 10
    """
    from bertsmith.api.search import similar_pairs
    from bertsmith.cli.views.progress import meter

    with open_texts(file, reading, quiet=quiet) as reader:
        texts = list(reader)
    from bertsmith.runtime.embedder import EncodingAccount

    account = EncodingAccount()
    embedder = load_encoder(model, computing, quiet=quiet)
    with meter("pairs", quiet=quiet) as shown:
        found = similar_pairs(
            texts,
            embedder,
            chosen.k,
            least=chosen.min_score,
            skip_equal=chosen.skip_equal,
            watch=lambda done: shown(done, done / len(texts)),
            account=account,
        )
    for remark in reader.account.notes():
        note(remark, quiet=quiet)
    if account.cut_texts:
        note(account.cuts(), quiet=quiet)
    _show(found, texts, as_json=as_json)
    if not found:
        note(f"no pair has a similarity of at least {chosen.min_score}", quiet=quiet)


def _show(found: Sequence[SimilarPair], texts: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        write_json(
            [
                {
                    "similarity": pair.similarity,
                    "rows": [pair.first + 1, pair.second + 1],
                    "texts": [texts[pair.first], texts[pair.second]],
                }
                for pair in found
            ]
        )
        return
    for pair in found:
        write_lines(
            [
                f"{pair.similarity:.4f}  {pair.first + 1}  {pair.second + 1}",
                f"  {' '.join(texts[pair.first].split())}",
                f"  {' '.join(texts[pair.second].split())}",
            ]
        )
