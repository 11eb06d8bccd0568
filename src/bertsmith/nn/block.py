"""One layer of the encoder: attention and feed-forward, each added to its input and normed."""

from __future__ import annotations

from torch import Tensor, nn

from bertsmith.nn.attention import Attention
from bertsmith.nn.attention_plan import Regrouping
from bertsmith.nn.dropout import dropout_added
from bertsmith.nn.feed_forward import FeedForward


class Block(nn.Module):
    """A post-norm layer (Vaswani et al. 2017, arXiv:1706.03762); its parts may be shared."""

    def __init__(
        self,
        attention: Attention,
        attention_norm: nn.LayerNorm,
        feed_forward: FeedForward,
        feed_forward_norm: nn.LayerNorm,
        *,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = attention_norm
        self.feed_forward = feed_forward
        self.feed_forward_norm = feed_forward_norm
        self.dropout = dropout

    def forward(
        self,
        hidden: Tensor,
        plan: Regrouping,
        *,
        head_mask: Tensor | None = None,
        probabilities: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(T, D) -> (T or P, D), and the attention probabilities when asked for."""
        attended, square = self.attention(
            hidden, plan, head_mask=head_mask, probabilities=probabilities
        )
        kept = hidden if plan.rows is None else hidden.index_select(0, plan.rows)
        hidden = self.attention_norm(self._added(attended, kept))
        hidden = self.feed_forward_norm(self._added(self.feed_forward(hidden), hidden))
        return hidden, square

    def _added(self, change: Tensor, kept: Tensor) -> Tensor:
        if self.training and self.dropout:
            return dropout_added(change, kept, self.dropout)
        # The change was made for this sum alone, so without autograd its memory can be reused.
        return change + kept if change.requires_grad else change.add_(kept)
