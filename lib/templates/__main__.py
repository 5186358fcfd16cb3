"""Make test items from a lexicon that anyone can edit.

``python -m lib.templates agreement --out FOLDER`` writes minimal pairs of subject-verb agreement, ``coordination`` and
``tense`` pairs of sentences, ``long-distance`` nonsense variants of sentences written by hand.
"""

from pathlib import Path
from typing import Annotated

import typer

from lib import paths
from lib.errors import LitmusError
from lib.say import shown, told
from lib.templates import nonsense
from lib.templates.agreement import BALANCE, write_agreement
from lib.templates.coordination_tense import MAKERS, sentence_pairs, write_sentence_pairs
from lib.templates.lexicon import read_lexicon

app = typer.Typer(add_completion=False, help="Make test items from a lexicon that anyone can edit.")


@app.callback()
def _main() -> None:
    """Each kind of items is a command of its own."""


LEXICON = paths.DATA / "lexicon"
SENTENCES = paths.DATA / "items" / "long_distance" / "sentences.tsv"
COUNTS = LEXICON / "counts.csv"
File = Annotated[Path, typer.Option(help="The file to write, in the sentence-focused format; it is replaced.")]
Pairs = Annotated[int, typer.Option(help="Pairs in all, a multiple of the number of patterns (8 and 12).")]
Seed = Annotated[int, typer.Option(min=0, help="Another seed gives another choice of words.")]
Words = Annotated[Path, typer.Option("--lexicon", help="Folder of the word lists.")]


@app.command()
def agreement(
    out: Annotated[Path, typer.Option(help="Folder for the JSONL files; files of the same name are replaced.")],
    pairs: Annotated[int, typer.Option(help=f"Pairs per construction, a multiple of {BALANCE}.")] = 320,
    seed: Seed = 0,
    lexicon: Words = LEXICON,
) -> None:
    """Subject-verb agreement: one file of minimal pairs per construction."""
    with told():
        _check_out(out, lexicon)
        written = write_agreement(out, read_lexicon(lexicon), pairs, seed)
        typer.echo(f"wrote {len(written)} files of {pairs} pairs to {out}")


@app.command()
def coordination(out: File, pairs: Pairs = 320, seed: Seed = 0, lexicon: Words = LEXICON) -> None:
    """Coordinated subjects (the king and the queen sing): pairs of sentences, short and long."""
    _write_pairs("coordination", out, pairs, seed, lexicon)


@app.command()
def tense(out: File, pairs: Pairs = 480, seed: Seed = 0, lexicon: Words = LEXICON) -> None:
    """Tense and the time that an adverb names (yesterday the doctor came): pairs of sentences."""
    _write_pairs("tense", out, pairs, seed, lexicon)


def _write_pairs(kind: str, out: Path, pairs: int, seed: int, lexicon: Path) -> None:
    with told():
        _check_out(out, lexicon)
        write_sentence_pairs(out, sentence_pairs(read_lexicon(lexicon), kind, pairs, seed))
        typer.echo(f"wrote {pairs} pairs of {len(MAKERS[kind][1])} patterns to {out}")


@app.command()
def long_distance(
    out: Annotated[Path, typer.Option(help="The file to write, in the format of Gulordava et al.; it is replaced.")],
    variants: Annotated[int, typer.Option(help="Nonsense variants of each sentence.")] = nonsense.VARIANTS,
    seed: Seed = 0,
    sentences: Annotated[Path, typer.Option(help="Tagged sentences to make variants of.")] = SENTENCES,
    counts: Annotated[Path, typer.Option(help="Counts of forms, for the column freq.")] = COUNTS,
    lexicon: Words = LEXICON,
) -> None:
    """Long-distance agreement: sentences written by hand, each with nonsense variants."""
    with told():
        _check_out(out, lexicon, sentences, counts)
        originals = nonsense.read_originals(sentences)
        found = nonsense.read_counts(counts)
        rows = nonsense.long_distance_rows(originals, read_lexicon(lexicon), found, variants, seed)
        nonsense.write_long_distance(out, rows)
        typer.echo(f"wrote {len(rows) // 2} pairs to {out}")


def _check_out(out: Path, *read: Path) -> None:
    """Refuse to write over what the items are made from: files, and anything in a folder, that are ``read``."""
    if any(out.resolve().is_relative_to(path.resolve()) for path in read):
        raise LitmusError(f"--out {shown(str(out))} is, or lies in, what the items are made from; name another place.")


if __name__ == "__main__":
    app()
