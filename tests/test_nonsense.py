"""Nonsense sentences in the original format: the generator, its input, and the items made with it."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import formats
from lib.errors import LitmusError
from lib.paths import DATA
from lib.templates.lexicon import dealer, read_lexicon
from lib.templates.nonsense import (
    COLUMNS,
    NUMBER_OF,
    TAGS,
    Original,
    Token,
    article,
    long_distance_rows,
    read_counts,
    read_originals,
    variant,
    write_long_distance,
)

LEXICON = DATA / "lexicon"
FOLDER = DATA / "items" / "long_distance"
SENTENCES, ITEMS = FOLDER / "sentences.tsv", FOLDER / "long_distance.tab"


@pytest.fixture(scope="module")
def lexicon():
    return read_lexicon(LEXICON)


@pytest.fixture(scope="module")
def originals() -> list[Original]:
    return read_originals(SENTENCES)


@pytest.fixture(scope="module")
def items():
    return formats.read(ITEMS)


def written(path: Path, *sentences: str) -> Path:
    path.write_text("pattern\tsentence\n" + "".join(f"test\t{sentence}\n" for sentence in sentences))
    return path


def test_the_committed_items_are_what_the_generator_makes(tmp_path, lexicon, originals):
    rows = long_distance_rows(originals, lexicon, read_counts(LEXICON / "counts.csv"))
    write_long_distance(tmp_path / "made.tab", rows)
    assert (tmp_path / "made.tab").read_bytes() == ITEMS.read_bytes()


def test_the_reader_reads_the_items_and_writes_them_back(items, tmp_path):
    assert set(items["format"]) == {"original"}
    assert len(items) == 540 and items["item"].is_unique
    assert items["sentence_good"].is_unique
    formats.write(items, tmp_path / "again.tab")
    assert (tmp_path / "again.tab").read_bytes() == ITEMS.read_bytes()


def test_the_columns_are_the_published_ones(datasets):
    published = datasets / "colorless-green" / "agreement" / "English" / "generated.tab"
    assert published.read_text(encoding="utf-8").splitlines()[0].split("\t") == list(COLUMNS)


def test_no_sentence_is_a_published_one(items, datasets):
    published = formats.read(datasets / "colorless-green" / "agreement" / "English" / "generated.tab")
    assert not set(items["sentence_good"]) & {*published["sentence_good"], *published["sentence_bad"]}


def test_balance(originals):
    assert len(originals) == 54
    assert set(Counter(original.pattern for original in originals).values()) == {6}
    cells = Counter((original.pattern, original.number, original.attractors) for original in originals)
    patterns = {original.pattern for original in originals} - {"verb_coordination"}
    expected = {(pattern, number, n): 1 for pattern in patterns for number in ("sing", "plur") for n in (0, 1, 2)}
    assert cells == expected | {("verb_coordination", number, 0): 3 for number in ("sing", "plur")}


def test_a_sentence_by_hand(tmp_path, lexicon):
    """The house that the farmers built beside the lake needs: cue 1, target 9, one attractor (farmers), 8 apart."""
    sentence = "The *house/N that the farmers/Ns built/Td beside the lake/N , [needs|need]/T a roof/N ."
    [original] = read_originals(written(tmp_path / "s.tsv", sentence))
    right, wrong = long_distance_rows([original], lexicon, {"needs": 7}, variants=0)
    assert right == {
        "pattern": "test", "constr_id": "0", "sent_id": "0", "correct_number": "sing", "form": "needs",
        "class": "correct", "type": "original", "prefix": "The house that the farmers built beside the lake ,",
        "n_attr": "1", "punct": "True", "freq": "7", "len_context": "9", "len_prefix": "10",
        "sent": "The house that the farmers built beside the lake , needs a roof . <eos>",
    }  # fmt: skip
    assert wrong == right | {"form": "need", "class": "wrong", "freq": ""}


def test_variants_have_the_kinds_and_forms_of_their_model(lexicon, originals, items):
    """Every word of every variant, looked up in the lexicon by the tag that stands on the original."""
    words = {tag: {getattr(w, form) for w in lexicon.content_words if w.kind == kind}
             for tag, (kind, form) in TAGS.items()}  # fmt: skip
    verbs = {word.s: word.plain for word in lexicon.content_words if word.past}
    for number, original in enumerate(originals):
        family = items.iloc[number * 10 : number * 10 + 10]
        assert family["sent_id"].tolist() == [str(i) for i in range(10)]
        assert family.iloc[0]["sentence_good"].split() == [token.word for token in original.tokens]
        for row in family.iloc[1:].itertuples():
            found = row.sentence_good.split()
            content = [word.lower() for word, token in zip(found, original.tokens, strict=True) if token.tag]
            assert len(content) == len(set(content)), row.sentence_good
            for place, (word, token) in enumerate(zip(found, original.tokens, strict=True)):
                if token.wrong:
                    singular = NUMBER_OF[original.tokens[original.cue].tag] == "sing"
                    forms = (row.good, row.bad) if singular else (row.bad, row.good)
                    assert forms == ("is", "are") if not token.tag else verbs[forms[0]] == forms[1]
                elif token.tag:
                    assert word.lower() in words[token.tag] and word != token.word, row.sentence_good
                elif word in ("a", "an", "A", "An"):
                    assert (word.lower() == "an") == found[place + 1].startswith(("a", "e", "i", "o", "honest", "ugly"))
                else:
                    assert word == token.word


def test_attractors_are_counted_as_a_reader_counts_them(items):
    """A second way: plural and singular nouns of the lexicon between cue and verb, in variants with a noun as cue."""
    nouns = [w for w in read_lexicon(LEXICON).content_words if w.kind in ("noun", "clause noun", "mass noun")]
    plural, singular = {w.s for w in nouns if w.s}, {w.plain for w in nouns}
    counted = 0
    for row in items[(items["type"] == "generated") & (items["pattern"] != "verb_coordination")].itertuples():
        between = row.left.split()[int(row.len_prefix) - int(row.len_context) + 1 :]
        verbs = set(between) & {"plants", "books", "stars", "offers"}  # forms that are nouns and verbs alike
        others = plural if row.correct_number == "sing" else singular
        if not verbs:
            counted += 1
            assert row.n_attr == str(sum(word in others for word in between)), row.left
    assert counted > 400


def test_forms_are_single_pieces_of_the_bundled_masked_vocabulary(items, masked):
    forms = {form for row in items.itertuples() for form in (row.good, row.bad)}
    several = {form for form in forms if len(masked.word(form, "middle").ids) != 1}
    words = {word for sentence in items["sentence_good"] for word in sentence.split()}
    assert not several
    assert not {word for word in words if len(masked.word(word, "middle").ids) != 1}


@pytest.mark.parametrize(
    ("word", "wanted"),
    [("apple", "an"), ("hour", "an"), ("honest", "an"), ("uniform", "a"), ("useful", "a"), ("house", "a"),
     ("ugly", "an"), ("European", "a"), ("old", "an"), ("one", "a")],
)  # fmt: skip
def test_article(word, wanted):
    assert article(word) == wanted


@given(st.sampled_from(["N", "M", "C", "Ns", "Cs"]), st.sampled_from(["N", "Ns", "M"]), st.integers(0, 1000))
def test_a_variant_keeps_place_and_number(cue, other, seed):
    lexicon = read_lexicon(LEXICON)
    number = NUMBER_OF[cue]
    target = Token("holds", "T", "hold") if number == "sing" else Token("hold", "T", "holds")
    tokens = (Token("An"), Token("key", cue, cue=True), Token("by"), Token("hat", other), target, Token("a"),
              Token("old", "A"), Token("box", "N"))  # fmt: skip
    original = Original("here", "test", tokens)
    made = variant(original, lexicon, dealer(str(seed)))
    again = variant(original, lexicon, dealer(str(seed)))
    assert made == again
    copy = Original("there", "test", made)
    assert (copy.cue, copy.target, copy.number) == (1, 4, number)
    assert copy.attractors == original.attractors == (NUMBER_OF[other] != number)
    assert made[0].word == article(made[1].word).capitalize() and made[5].word == article(made[6].word)


def test_a_sentence_that_begins_with_a_content_word_keeps_its_capital(tmp_path, lexicon):
    [original] = read_originals(written(tmp_path / "s.tsv", "Old/A *men/Ns [laugh|laughs]/I ."))
    assert re.match(r"[A-Z][a-z]+ [a-z]+ ", " ".join(t.word for t in variant(original, lexicon, dealer("0"))))


BROKEN = {
    "The *house/X [needs|need]/T a roof/N .": "has the tag 'X'; known are N,",
    "The house/N [needs|need]/T a roof/N .": "mark one cue",
    "The *house/N near the *lake/N [needs|need]/T a roof/N .": "mark one cue",
    "The *old/A house/N [needs|need]/T a roof/N .": "mark one cue",
    "The *house/N needs/T a roof/N .": "give one target after the cue",
    "[Needs|Need]/T the *house/N a roof/N ?": "give one target after the cue",
    "The *house/N [needs|needs]/T a roof/N .": "is no target",
    "The *house/N [needs]/T a roof/N .": "is no target",
    "The *house/N [needs|need]/N a roof/N .": "the target has the tag 'N'",
    "The *roof/N [holds|hold]/T .": "the same sentence as",
}


@pytest.mark.parametrize("sentence", BROKEN)
def test_a_broken_sentence_is_refused_with_file_and_line(tmp_path, sentence):
    path = written(tmp_path / "s.tsv", "The *roof/N [holds|hold]/T .", sentence)
    with pytest.raises(LitmusError) as error:
        read_originals(path)
    told = str(error.value)
    assert told.startswith(f"{path}, line 3") and BROKEN[sentence] in told
    assert "\n" not in told and told.endswith(".")


def test_broken_counts_and_tables_are_refused(tmp_path):
    (tmp_path / "counts.csv").write_text("form,count\ngo,12\nrun,many\n")
    with pytest.raises(LitmusError, match="line 3: the count is 'many'"):
        read_counts(tmp_path / "counts.csv")
    (tmp_path / "counts.csv").write_text("form,count\ngo,12\nrun,3\ngo,1\n")
    with pytest.raises(LitmusError, match="line 4 counts 'go' a second time"):
        read_counts(tmp_path / "counts.csv")
    (tmp_path / "s.tsv").write_text("pattern,sentence\n")
    with pytest.raises(LitmusError, match="line 1: the columns are"):
        read_originals(tmp_path / "s.tsv")


def test_too_few_words_are_told(lexicon, originals):
    few = [word for word in lexicon.content_words if word.kind != "noun"] + lexicon.content_words[:3]
    with pytest.raises(LitmusError, match="too few words of the kind noun"):
        long_distance_rows(originals, lexicon._replace(content_words=few), {})
    three = [word for word in lexicon.content_words if word.kind != "noun"] + lexicon.content_words[:4]
    simple = [Original("line 2", "test", (Token("the"), Token("key", "N", cue=True), Token("is", wrong="are")))]
    assert len(long_distance_rows(simple, lexicon._replace(content_words=three), {}, variants=4)) == 10
    with pytest.raises(LitmusError, match="no more variants"):
        long_distance_rows(simple, lexicon._replace(content_words=three), {}, variants=5)


def command(*arguments: str | Path) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", "lib.templates", "long-distance", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, cwd=DATA.parent)


def test_command_line(tmp_path):
    own = written(tmp_path / "s.tsv", "The *house/N near the lake/N [needs|need]/T a new/A roof/N .")
    (tmp_path / "c.csv").write_text("form,count\nneeds,3\nneed,4\n")
    flags = ["--sentences", own, "--counts", tmp_path / "c.csv", "--variants", "2"]
    run = command("--out", tmp_path / "a.tab", *flags)
    assert run.returncode == 0 and run.stdout.startswith("wrote 3 pairs to")
    other = command("--out", tmp_path / "b.tab", *flags, "--seed", "5")
    assert other.returncode == 0
    a, b = formats.read(tmp_path / "a.tab"), formats.read(tmp_path / "b.tab")
    assert a.iloc[0]["sentence_good"] == b.iloc[0]["sentence_good"]
    assert (a.iloc[0]["freq"], a.iloc[0]["freq_alt"]) == ("3", "4")
    assert not set(a["sentence_good"][1:]) & set(b["sentence_good"][1:])


def test_command_line_errors_are_one_sentence(tmp_path):
    run = command("--out", tmp_path / "a.tab", "--variants", "-1")
    assert run.returncode == 2 and run.stderr == "error: --variants -1: give 0 or more.\n"
    run = command("--out", tmp_path / "a.tab", "--sentences", tmp_path / "nowhere.tsv")
    assert run.returncode == 2 and run.stderr.count("\n") == 1 and "there is no such file" in run.stderr
    assert not (tmp_path / "a.tab").exists()
