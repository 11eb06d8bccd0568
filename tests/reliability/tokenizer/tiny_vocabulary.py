"""Tokenizers for the reliability checks, small enough to build anywhere."""

import json

from bertsmith.text.tokenizer import Tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def bert(*, cased: bool = False, more: tuple[str, ...] = ()) -> Tokenizer:
    """A BERT tokenizer that knows the ASCII characters and whatever else is given."""
    return Tokenizer.from_files(bert_files(cased=cased, more=more))


def bert_files(*, cased: bool = False, more: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Its files."""
    letters = [chr(c) for c in range(33, 127)]
    tokens = dict.fromkeys([*SPECIALS, *letters, *(f"##{c}" for c in letters), *more])
    return {
        "vocab.txt": "".join(f"{token}\n" for token in tokens).encode(),
        "tokenizer_config.json": json.dumps({"do_lower_case": not cased}).encode(),
    }
