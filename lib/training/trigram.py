"""A trigram model with modified Kneser-Ney smoothing (Chen and Goodman 1999): what a neural model has to beat."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

Context = tuple[int, ...]


class Level:
    """The n-grams of one length with their discounts; ``counts`` are by context and word.

    The discount of an n-gram seen once, twice, or three times and more follows from how many n-grams were seen once to
    four times; where there are none of them to tell, it is 0.75.
    """

    def __init__(self, counts: Counter[tuple[Context, int]]):
        self.counts = counts
        seen = Counter(counts.values())
        share = seen[1] / (seen[1] + 2 * seen[2]) if seen[1] else 0.0
        self.discounts = [0.0] + [
            max(0.0, n - (n + 1) * share * seen[n + 1] / seen[n]) if seen[n] and seen[n + 1] else 0.75
            for n in (1, 2, 3)
        ]
        self.total: defaultdict[Context, int] = defaultdict(int)
        self.taken: defaultdict[Context, float] = defaultdict(float)
        for (context, _), count in counts.items():
            self.total[context] += count
            self.taken[context] += self.discounts[min(count, 3)]

    def probability(self, context: Context, word: int, below: float) -> float:
        """P(word | context), where ``below`` is the probability after the context without its first word."""
        total = self.total.get(context)
        if not total:
            return below
        count = self.counts.get((context, word), 0)
        return (count - self.discounts[min(count, 3)] + self.taken[context] * below) / total


class Trigram:
    """Trigrams over examples of word rows, each beginning with ``<eos>``; ``size`` words in the vocabulary."""

    def __init__(self, examples: Sequence[Sequence[int]], size: int):
        self.size = size
        three = Counter(run for example in examples for run in _trigrams(example))
        two = Counter((b, c) for _, b, c in three)  # from here on: after how many different words?
        one = Counter(c for _, c in two)
        self.levels = [
            Level(Counter({((), c): count for c, count in one.items()})),
            Level(Counter({((b,), c): count for (b, c), count in two.items()})),
            Level(Counter({((a, b), c): count for (a, b, c), count in three.items()})),
        ]

    def probability(self, a: int, b: int, word: int) -> float:
        """P(word | a b): each level falls back on the one below, the lowest on all words alike."""
        found = 1 / self.size
        for level, context in zip(self.levels, ((), (b,), (a, b)), strict=True):
            found = level.probability(context, word, found)
        return found

    def perplexity(self, examples: Sequence[Sequence[int]]) -> float:
        """Over all words of the examples but each first ``<eos>``."""
        logs = [math.log(self.probability(*run)) for example in examples for run in _trigrams(example)]
        return math.exp(-sum(logs) / len(logs))


def _trigrams(example: Sequence[int]) -> list[tuple[int, int, int]]:
    doubled = [example[0], *example]
    return list(zip(doubled, doubled[1:], doubled[2:], strict=False))
