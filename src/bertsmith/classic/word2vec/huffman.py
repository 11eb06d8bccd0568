"""The Huffman tree of hierarchical softmax: short paths for frequent words.

p(w | h) is the product over the nodes u on the path of w of sigmoid((1 - 2 code) h.u), so that the
probabilities of all words add up to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class HuffmanTree:
    """The path of each word: `nodes` and `codes` from `starts[w]` to `starts[w + 1]`.

    `starts` (V + 1,); `nodes` are numbers of inner nodes, 0 to V - 2, from the root, which is
    V - 2; `codes` are 0 or 1. Paths are as long as they have to be.
    """

    starts: NDArray[np.int64]
    nodes: NDArray[np.int32]
    codes: NDArray[np.int8]

    @property
    def longest(self) -> int:
        """Nodes of the longest path."""
        return int(np.diff(self.starts).max(initial=0))

    def path(self, word: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """Nodes and codes of one word."""
        part = slice(self.starts[word], self.starts[word + 1])
        return self.nodes[part], self.codes[part]


def huffman_tree(counts: NDArray[np.int64]) -> HuffmanTree:
    """The tree of words by counts (V,), in O(V) if they fall: two queues, of words and of nodes."""
    size = len(counts)
    if size < 2:
        return HuffmanTree(
            np.zeros(size + 1, dtype=np.int64), np.zeros(0, np.int32), np.zeros(0, np.int8)
        )
    parents, codes = _merged(counts)
    above = parents.tolist()
    levels = [0] * (2 * size - 1)
    for node in range(2 * size - 3, -1, -1):  # a parent has a larger number
        levels[node] = levels[above[node]] + 1
    depths = np.array(levels, dtype=np.int64)
    starts = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(depths[:size], out=starts[1:])
    flat_nodes = np.empty(starts[-1], dtype=np.int32)
    flat_codes = np.empty(starts[-1], dtype=np.int8)
    words = np.arange(size)
    here = words.copy()
    for back in range(1, int(depths[:size].max()) + 1):  # from the leaves to the root
        places = starts[words + 1] - back
        flat_nodes[places] = parents[here] - size
        flat_codes[places] = codes[here]
        here = parents[here]
        on = depths[here] > 0
        words, here = words[on], here[on]
    return HuffmanTree(starts, flat_nodes, flat_codes)


def _merged(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Parent and code of each word and inner node; the root, the last node, has neither."""
    size = len(counts)
    weights = [*np.asarray(counts).tolist(), *[0] * (size - 1)]
    parents, codes = [0] * (2 * size - 1), [0] * (2 * size - 1)
    order = np.argsort(-np.asarray(counts), kind="stable").tolist()  # of a part they may rise
    left, node = size - 1, size  # the next of either queue; words from the rarest on

    for made in range(size, 2 * size - 1):
        pair = []
        for _ in range(2):
            # Of equal weights the word comes first, so that paths stay short.
            if left >= 0 and (node >= made or weights[order[left]] <= weights[node]):
                pair.append(order[left])
                left -= 1
            else:
                pair.append(node)
                node += 1
        first, second = pair
        weights[made] = weights[first] + weights[second]
        parents[first] = parents[second] = made
        codes[second] = 1
    return np.array(parents, dtype=np.int64), np.array(codes, dtype=np.int8)
