"""Small tokenizers of every kind as fixtures."""

import pytest
from small_tokenizers import albert_files, bert_files, gpt2_files, gpt_files, roberta_files

from bertsmith.text.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def files() -> dict[str, dict[str, bytes]]:
    """The files of one folder of each kind."""
    return {
        "uncased": bert_files(),
        "cased": bert_files(cased=True),
        "roberta": roberta_files(),
        "albert": albert_files(),
        "gpt2": gpt2_files(),
        "gpt": gpt_files(),
    }


@pytest.fixture(scope="session")
def tokenizers(files: dict[str, dict[str, bytes]]) -> dict[str, Tokenizer]:
    """One tokenizer of each kind."""
    return {name: Tokenizer.from_files(contents) for name, contents in files.items()}


@pytest.fixture(params=["uncased", "cased", "roberta", "albert", "gpt2", "gpt"])
def tokenizer(request: pytest.FixtureRequest, tokenizers: dict[str, Tokenizer]) -> Tokenizer:
    """Each kind in turn."""
    return tokenizers[request.param]
