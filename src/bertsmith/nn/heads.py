"""What sits on top of the encoder: every head takes rows and gives logits."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.nn.feed_forward import find_activation


class VocabularyHead(nn.Module):
    """Logits over the vocabulary with the token embedding as output matrix.

    `bias` (V,) is None where a model has none; `project` is what comes before the product.
    """

    bias: nn.Parameter | None

    def project(self, rows: Tensor) -> Tensor:
        """Hidden rows as they are multiplied with the token embedding: (P, D) -> (P, E)."""
        return rows

    def forward(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """(P, D) rows and the (V, E) token embedding -> (P, V)."""
        return F.linear(self.project(rows), tokens, self.bias)


class LanguageModelHead(VocabularyHead):
    """The token embedding and nothing else (GPT), or also a bias (BART)."""

    def __init__(self, vocab_size: int, *, bias: bool) -> None:
        super().__init__()
        self.register_parameter("bias", nn.Parameter(torch.zeros(vocab_size)) if bias else None)


class MaskedLMHead(VocabularyHead):
    """A dense layer, an activation and a norm before the token embedding (BERT)."""

    def __init__(
        self, hidden: int, embedding: int, vocab_size: int, *, activation: str, norm_eps: float
    ) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden, embedding)
        self.norm = nn.LayerNorm(embedding, eps=norm_eps)
        self.bias = nn.Parameter(torch.zeros(vocab_size))
        self.activation = find_activation(activation)

    def project(self, rows: Tensor) -> Tensor:
        """(P, D) -> (P, E)."""
        projected: Tensor = self.norm(self.activation(self.dense(rows)))
        return projected


class Classifier(nn.Module):
    """A linear layer over rows, after one more dense layer where `activation` is given."""

    def __init__(
        self,
        hidden: int,
        outputs: int,
        *,
        activation: str | None = None,
        dropout: float = 0.0,
        dropout_first: bool = True,
        bias: bool = True,
    ) -> None:
        """With an activation, dropout stands before both layers, or only the last one."""
        super().__init__()
        self.dense = None if activation is None else nn.Linear(hidden, hidden)
        self.activation = None if activation is None else find_activation(activation)
        self.output = nn.Linear(hidden, outputs, bias=bias)
        self.dropout = dropout
        self.dropout_first = dropout_first

    def forward(self, rows: Tensor) -> Tensor:
        """(P, D) -> (P, C)."""
        if self.dense is not None and self.activation is not None:
            if self.dropout_first:
                rows = F.dropout(rows, self.dropout, self.training)
            rows = self.activation(self.dense(rows))
        return self.output(F.dropout(rows, self.dropout, self.training))  # type: ignore[no-any-return]


class ReplacedTokenHead(nn.Module):
    """Whether each token was replaced (ELECTRA, Clark et al. 2020, arXiv:2003.10555)."""

    def __init__(self, hidden: int, *, activation: str) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden, hidden)
        self.output = nn.Linear(hidden, 1)
        self.activation = find_activation(activation)

    def forward(self, rows: Tensor) -> Tensor:
        """(P, D) -> (P,)."""
        return self.output(self.activation(self.dense(rows))).squeeze(-1)  # type: ignore[no-any-return]
