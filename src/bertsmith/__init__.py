"""bertsmith: BERT models from any folder, exact vectors, fast on a CPU."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bertsmith.errors import BertsmithError as BertsmithError
    from bertsmith.estimator import TextClassifier as TextClassifier
    from bertsmith.estimator import TextRegressor as TextRegressor
    from bertsmith.runtime.embedder import Embedder as Embedder
    from bertsmith.runtime.loading import load as load
    from bertsmith.text.tokenizer import Tokenizer as Tokenizer

__version__ = "0.1.0"

# Loaded on first use: `import bertsmith` must not pay for torch.
_HOMES = {
    "BertsmithError": "bertsmith.errors",
    "Embedder": "bertsmith.runtime.embedder",
    "Tokenizer": "bertsmith.text.tokenizer",
    "TextClassifier": "bertsmith.estimator",
    "TextRegressor": "bertsmith.estimator",
    "load": "bertsmith.runtime.loading",
}

__all__ = [
    "BertsmithError",
    "Embedder",
    "TextClassifier",
    "TextRegressor",
    "Tokenizer",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    """The public name, imported from its home when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'bertsmith' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted(__all__)
