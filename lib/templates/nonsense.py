"""Nonsense sentences after the model of sensible ones, in the *original* format of Gulordava et al. (2018).

Long-distance agreement is tested on a sentence that somebody might say, and again on sentences of the same form whose
words make no sense together: a model that agrees in these too cannot have done so by knowing what goes with what.

The sensible sentences are written by hand, one a line, with a tag on every content word: ``The *house/N that the
farmers/Ns built/Td [needs|need]/T a new/A roof/N .`` The star marks the cue, which the verb agrees with; brackets hold the
right and the wrong form of the target. ``TAGS`` says which words of the lexicon may take the place of a tagged one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lib.errors import LitmusError
from lib.templates.lexicon import FORMS_OF, ContentWord, Deal, Lexicon, dealer, read_rows, write_rows

COLUMNS = (
    "pattern", "constr_id", "sent_id", "correct_number", "form", "class", "type", "prefix", "n_attr", "punct", "freq",
    "len_context", "len_prefix", "sent",
)  # fmt: skip
TAGS: dict[str, tuple[str, str]] = {
    "N": ("noun", "plain"), "Ns": ("noun", "s"), "M": ("mass noun", "plain"), "C": ("clause noun", "plain"),
    "Cs": ("clause noun", "s"), "A": ("adjective", "plain"), "D": ("adverb", "plain"),
} | {
    letter + suffix: (f"{kind} verb", form)
    for letter, kind in (("T", "transitive"), ("I", "intransitive"))
    for suffix, form in (("", "plain"), ("s", "s"), ("d", "past"), ("n", "participle"), ("g", "ing"))
}  # fmt: skip
"""Tags of content words: the kind of word, and its form, as ``content_words.csv`` has them."""

NUMBER_OF = {"N": "sing", "M": "sing", "C": "sing", "Ns": "plur", "Cs": "plur",
             "T": "plur", "I": "plur", "Ts": "sing", "Is": "sing"}  # fmt: skip
NOUNS = ("N", "M", "C", "Ns", "Cs")
VARIANTS = 9  # as many as Gulordava et al. made of each sentence
END = "<eos>"
VOWEL_SOUND = ("hour", "honest", "honor", "heir")
CONSONANT_SOUND = ("uni", "use", "usu", "euro", "one", "once", "ut")
PUNCTUATION = set(",;:()\"'-") | {"--", "..."}


@dataclass(frozen=True)
class Token:
    """A word of a pattern sentence: its tag (or none), and for the target also its wrong form."""

    word: str
    tag: str = ""
    wrong: str = ""
    cue: bool = False


@dataclass(frozen=True)
class Original:
    """A sentence written by hand: where it stands, its pattern, and its words with cue and target."""

    where: str
    pattern: str
    tokens: tuple[Token, ...]

    @property
    def cue(self) -> int:
        """The place of the word that the target agrees with."""
        return next(place for place, token in enumerate(self.tokens) if token.cue)

    @property
    def target(self) -> int:
        """The place of the tested word: as many words stand before it."""
        return next(place for place, token in enumerate(self.tokens) if token.wrong)

    @property
    def number(self) -> str:
        """``sing`` or ``plur``: the number of the cue."""
        return NUMBER_OF[self.tokens[self.cue].tag]

    @property
    def attractors(self) -> int:
        """Words between cue and target of the cue's part of speech (nouns, finite verbs) but of the other number."""
        noun = self.tokens[self.cue].tag in NOUNS
        between = [token.tag for token in self.tokens[self.cue + 1 : self.target] if token.tag in NUMBER_OF]
        return sum(NUMBER_OF[tag] != self.number for tag in between if (tag in NOUNS) == noun)


def read_originals(path: Path) -> list[Original]:
    """The tagged sentences of a file with the columns ``pattern`` and ``sentence``, separated by a tab.

    Raises LitmusError, naming file and line, for a tag that is none, a sentence without exactly one cue that has a number
    and one target after it, a target that is no verb of that number, and a sentence that stands twice.
    """
    originals: dict[tuple[Token, ...], Original] = {}
    for line, row in read_rows(path, ("pattern", "sentence"), delimiter="\t"):
        where = f"{path}, line {line}"
        original = Original(where, row["pattern"], tuple(_token(word, where) for word in row["sentence"].split()))
        _check(original)
        if original.tokens in originals:
            raise LitmusError(f"{where}: the same sentence as {originals[original.tokens].where}; delete one.")
        originals[original.tokens] = original
    return list(originals.values())


def _token(written: str, where: str) -> Token:
    cue = written.startswith("*")
    word, slash, tag = written.removeprefix("*").partition("/")
    if slash and tag not in TAGS:
        raise LitmusError(f"{where}: {written!r} has the tag {tag!r}; known are {', '.join(TAGS)}.")
    if not word.startswith("["):
        return Token(word, tag, cue=cue)
    forms = re.fullmatch(r"\[([^|\[\]]+)\|([^|\[\]]+)\]", word)
    if not forms or forms[1] == forms[2]:
        raise LitmusError(f"{where}: {written!r} is no target; write the right and the wrong form as [needs|need].")
    return Token(forms[1], tag, wrong=forms[2])


def _check(original: Original) -> None:
    cues = [token for token in original.tokens if token.cue]
    targets = [token for token in original.tokens if token.wrong]
    if len(cues) != 1 or cues[0].tag not in NUMBER_OF:
        raise LitmusError(f"{original.where}: mark one cue, a noun or a finite verb, with a star, as in *house/N.")
    if len(targets) != 1 or original.target <= original.cue:
        raise LitmusError(f"{original.where}: give one target after the cue, as in [needs|need]/T.")
    if targets[0].tag not in ("", "T", "I"):
        raise LitmusError(f"{original.where}: the target has the tag {targets[0].tag!r}; it takes T, I or none.")


# --- Variants ---------------------------------------------------------------------------------------------------------


def article(word: str) -> str:
    """``a`` or ``an`` before a word, by its sound: *an hour*, *a uniform*."""
    lower = word.lower()
    sounds_like_a_vowel = lower[0] in "aeiou" and not lower.startswith(CONSONANT_SOUND)
    return "an" if sounds_like_a_vowel or lower.startswith(VOWEL_SOUND) else "a"


def variant(original: Original, lexicon: Lexicon, deal: Deal) -> tuple[Token, ...]:
    """The sentence with every tagged word replaced by another of its kind and form, none of them twice; a/an agree.

    Raises LitmusError where the lexicon has too few words of a kind.
    """
    used = {token.word.lower() for token in original.tokens if token.tag}
    tokens: list[Token] = []
    for token in original.tokens:
        if not token.tag:
            tokens.append(token)
            continue
        kind, form = TAGS[token.tag]
        if token.wrong:
            form = "s" if original.number == "sing" else "plain"
        word = _other(lexicon, deal, kind, used)
        used |= _forms(word)
        wrong = "" if not token.wrong else word.plain if form == "s" else word.s
        tokens.append(Token(getattr(word, form), token.tag, wrong, token.cue))
    for place in range(len(tokens) - 1):
        if tokens[place].word.lower() in ("a", "an"):
            tokens[place] = Token(article(tokens[place + 1].word))
    if not tokens[0].word[0].isupper():
        tokens[0] = Token(_capitalised(tokens[0].word), tokens[0].tag, cue=tokens[0].cue)
    return tuple(tokens)


def _forms(word: ContentWord) -> set[str]:
    return {getattr(word, form) for form in FORMS_OF[word.kind]}


def _other(lexicon: Lexicon, deal: Deal, kind: str, used: set[str]) -> ContentWord:
    words = [word for word in lexicon.content_words if word.kind == kind]
    for _ in range(2 * len(words)):  # a dealer gives every word within two rounds
        word = deal(words)
        if not used & _forms(word):
            return word
    raise LitmusError(f"{lexicon.folder / 'content_words.csv'}: there are too few words of the kind {kind}; add some.")


def _capitalised(word: str) -> str:
    return word[:1].upper() + word[1:]


# --- The file ---------------------------------------------------------------------------------------------------------


def long_distance_rows(
    originals: Sequence[Original],
    lexicon: Lexicon,
    counts: Mapping[str, int],
    variants: int = VARIANTS,
    seed: int = 0,
) -> list[dict[str, str]]:
    """Two rows (``correct``, ``wrong``) for every sentence and for each of its nonsense variants, in published columns.

    ``counts`` gives the column ``freq``; a form that it lacks has an empty cell there. ``sent_id`` 0 is the original.
    Raises LitmusError for fewer than no variants and for a lexicon with too few words.
    """
    if variants < 0:
        raise LitmusError(f"--variants {variants}: give 0 or more.")
    deal = dealer(f"{seed} long_distance")
    rows: list[dict[str, str]] = []
    constructions: dict[str, int] = {}
    seen: set[tuple[Token, ...]] = set()
    for original in originals:
        constr_id = constructions.setdefault(original.pattern, 0)
        constructions[original.pattern] += 1
        seen.add(original.tokens)
        rows += _two_rows(original, original.tokens, constr_id, 0, counts)
        for sent_id in range(1, variants + 1):
            tokens = _unseen(original, lexicon, deal, seen)
            rows += _two_rows(original, tokens, constr_id, sent_id, counts)
    return rows


def _unseen(original: Original, lexicon: Lexicon, deal: Deal, seen: set[tuple[Token, ...]]) -> tuple[Token, ...]:
    for _ in range(1000):
        tokens = variant(original, lexicon, deal)
        if tokens not in seen:
            seen.add(tokens)
            return tokens
    raise LitmusError(
        f"{original.where}: the lexicon gives no more variants of this sentence; add words or ask for fewer."
    )


def _two_rows(
    original: Original, tokens: Sequence[Token], constr_id: int, sent_id: int, counts: Mapping[str, int]
) -> Iterator[dict[str, str]]:
    target, words = original.target, [token.word for token in tokens]
    for form, kind in ((tokens[target].word, "correct"), (tokens[target].wrong, "wrong")):
        yield {
            "pattern": original.pattern,
            "constr_id": str(constr_id),
            "sent_id": str(sent_id),
            "correct_number": original.number,
            "form": form,
            "class": kind,
            "type": "generated" if sent_id else "original",
            "prefix": " ".join(words[:target]),
            "n_attr": str(original.attractors),
            "punct": str(bool(PUNCTUATION & set(words[:target]))),
            "freq": str(counts.get(form, "")),
            "len_context": str(target - original.cue),
            "len_prefix": str(target),
            "sent": " ".join([*words, END]),
        }


def read_counts(path: Path) -> dict[str, int]:
    """How often each form stands in a text, from a file with the columns ``form`` and ``count``.

    Raises LitmusError naming file and line, also of a form that is there twice.
    """
    counts: dict[str, int] = {}
    for line, row in read_rows(path, ("form", "count")):
        if not re.fullmatch(r"\d{1,15}", row["count"]):
            raise LitmusError(f"{path}, line {line}: the count is {row['count']!r}; give a whole number.")
        if row["form"] in counts:
            raise LitmusError(f"{path}, line {line} counts '{row['form']}' a second time; give each form one line.")
        counts[row["form"]] = int(row["count"])
    return counts


def write_long_distance(out: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Writes rows as the published file is written."""
    write_rows(out, COLUMNS, rows)
