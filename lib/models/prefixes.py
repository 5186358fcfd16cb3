"""Texts that share beginnings, packed so that each distinct beginning goes through a causal network once.

A packed row is a tree: every node is a token behind its parent, and sees itself and its ancestors only. The two sentences
of a minimal pair, or all items of a template, then cost no more than their distinct beginnings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Tree:
    """Distinct beginnings of some texts: the last token of each, its parent (-1 for none) and its depth from 0."""

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens)

    def grow(self, path: list[int], tokens: Sequence[int]) -> list[int]:
        """Hang ``tokens`` behind the nodes of ``path``; the nodes of the longer path."""
        path = list(path)
        for token in tokens:
            self.parents.append(path[-1] if path else -1)
            self.depths.append(len(path))
            path.append(len(self.tokens))
            self.tokens.append(token)
        return path


def pack(texts: Sequence[Sequence[int]], width: int) -> tuple[list[Tree], list[tuple[int, list[int]]]]:
    """Trees of at most ``width`` nodes (more only for a text longer than that), and where each text lies in them.

    For each text: the number of its tree and the node of each of its tokens. Texts are taken in sorted order, where those
    that share most stand together; a full tree begins anew, with its first text's beginning repeated. A ``width`` of 0
    gives every text a tree of its own, in which nothing is shared. An empty text is in no tree.
    """
    trees: list[Tree] = []
    places: list[tuple[int, list[int]]] = [(0, [])] * len(texts)
    path: list[int] = []
    previous: Sequence[int] = ()
    for text, number in sorted((list(text), number) for number, text in enumerate(texts) if text):
        common = shared(previous, text)
        if not trees or len(trees[-1]) + len(text) - common > width:
            trees.append(Tree())
            common = 0
        path = trees[-1].grow(path[:common], text[common:])
        places[number] = (len(trees) - 1, path)
        previous = text
    return trees, places


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts have in common from the start."""
    length = min(len(one), len(other))
    return next((at for at in range(length) if one[at] != other[at]), length)


def visible(trees: Sequence[Tree], width: int) -> np.ndarray:
    """Which node sees which: shape (trees, width, width), true for itself and its ancestors; padding sees itself."""
    seen = np.zeros((len(trees), width, width), dtype=bool)
    seen[:, np.arange(width), np.arange(width)] = True
    for of_tree, tree in zip(seen, trees, strict=True):
        for node, parent in enumerate(tree.parents):
            if parent >= 0:
                of_tree[node] |= of_tree[parent]
    return seen
