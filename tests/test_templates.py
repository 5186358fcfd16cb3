"""The generator of agreement pairs, its lexicon, and the items made from it."""

import json
import re
import shutil
import string
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lib.errors import LitmusError
from lib.paths import DATA
from lib.templates.__main__ import app
from lib.templates.agreement import BLIMP, CONSTRUCTIONS, PARADIGMS, agreement_pairs, write_agreement
from lib.templates.lexicon import Predicate, dealer, read_lexicon

ITEMS = DATA / "items" / "agreement"
LEXICON = DATA / "lexicon"
STEMS = [*CONSTRUCTIONS, BLIMP]
NO_ATTRACTOR = {"simple_agrmt", "vp_coord", "long_vp_coord"}


def rows(stem: str) -> list[dict]:
    return [json.loads(line) for line in (ITEMS / f"{stem}.jsonl").read_text(encoding="utf-8").splitlines()]


def words(sentence: str) -> list[str]:
    return sentence.strip(string.punctuation).split()


@pytest.fixture
def lexicon_copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(LEXICON, tmp_path / "lexicon"))


def test_the_committed_items_are_what_the_generator_makes(tmp_path):
    made = write_agreement(tmp_path, read_lexicon(LEXICON))
    assert sorted(path.name for path in made) == sorted(path.name for path in ITEMS.glob("*.jsonl"))
    for path in made:
        assert path.read_bytes() == (ITEMS / path.name).read_bytes(), f"{path.name} is not up to date"


@pytest.mark.parametrize("stem", STEMS)
def test_balance_and_no_repeats(stem):
    pairs = rows(stem)
    assert len(pairs) >= 300
    numbers = Counter(pair["subject_number"] for pair in pairs)
    assert numbers["singular"] == numbers["plural"]
    assert len({pair["sentence_good"] for pair in pairs}) == len(pairs)
    assert [pair["id"] for pair in pairs] == [f"{stem}-{i:04d}" for i in range(1, len(pairs) + 1)]
    with_attractor = [pair for pair in pairs if pair["attractor_number"] is not None]
    cells = Counter((pair["subject_number"], pair["attractor_number"]) for pair in with_attractor)
    expected = 0 if stem in NO_ATTRACTOR else len(pairs) // 2 if stem == BLIMP else len(pairs)
    assert len(with_attractor) == expected
    assert len(set(cells.values())) <= 1
    assert len(cells) == (4 if expected else 0)


@pytest.mark.parametrize("stem", STEMS)
def test_each_pair_differs_in_the_verb_alone_and_says_so(stem):
    lexicon = read_lexicon(LEXICON)
    singular_of = {row.plural: row.singular for row in [*lexicon.predicates, *lexicon.relative_verbs]}
    for pair in rows(stem):
        good, bad = words(pair["sentence_good"]), words(pair["sentence_bad"])
        assert len(good) == len(bad)
        ((right, wrong),) = [(g, b) for g, b in zip(good, bad, strict=True) if g != b]
        forms = (singular_of[pair["verb"]], pair["verb"])
        assert (right, wrong) == (forms if pair["label"] == -1 else forms[::-1])
        assert pair["label"] == {"singular": -1, "plural": -2}[pair["subject_number"]]
        assert pair["construction"] == stem
        assert pair["match"] == (
            None if pair["attractor_number"] is None else pair["attractor_number"] == pair["subject_number"]
        )
        noun = next(row for row in lexicon.nouns if row.singular == pair["subject"])
        assert (noun.singular if pair["label"] == -1 else noun.plural) in [word.lower() for word in good]
        for sentence in (pair["sentence_good"], pair["sentence_bad"]):
            assert sentence[0].isupper() and sentence.endswith(".") and "  " not in sentence
            assert sentence.count(".") == 1


def test_paradigms_of_blimp_like_have_a_quarter_each():
    assert Counter(pair["paradigm"] for pair in rows(BLIMP)) == dict.fromkeys(PARADIGMS, 80)
    irregular = {row.singular for row in read_lexicon(LEXICON).nouns if row.inflection == "irregular"}
    subjects = {pair["subject"] for pair in rows(BLIMP) if pair["paradigm"] == "irregular_plural"}
    assert subjects <= irregular and {"mouse", "goose", "woman"} <= subjects


def test_attractors_carry_the_number_they_claim():
    lexicon = read_lexicon(LEXICON)
    plurals = {row.plural for row in lexicon.nouns}
    in_predicates = plurals & {word for row in lexicon.predicates for word in row.rest.split()}  # takes photographs
    counted = 0
    for pair in [pair for stem in STEMS for pair in rows(stem)]:
        sentence = set(words(pair["sentence_good"]))
        if not sentence & in_predicates:
            claimed = (pair["subject_number"] == "plural") + (pair["attractor_number"] == "plural")
            assert len(sentence & plurals) == claimed, pair["sentence_good"]
            counted += 1
    assert counted > 4000


def test_with_and_without_that_are_the_same_words():
    for stem in STEMS:
        if "_no_comp" in stem:
            with_that = [pair["sentence_good"].replace(" that ", " ") for pair in rows(stem.replace("_no_comp", ""))]
            assert with_that == [pair["sentence_good"] for pair in rows(stem)]


def test_every_tested_form_is_one_piece_of_the_masked_vocabulary(masked):
    forms = {
        word
        for stem in STEMS
        for pair in rows(stem)
        for word in {*words(pair["sentence_good"])} ^ {*words(pair["sentence_bad"])}
    }
    assert len(forms) > 80
    assert not {form for form in forms if len(masked.word(form, "middle").ids) != 1}


FINITE = {
    (form, row.rest): row
    for row in read_lexicon(LEXICON).predicates
    if row.subjects != ("animal",)  # they are subjects in blimp_like alone
    for form in (row.singular, row.plural)
}


def predicate(text: str) -> Predicate:
    verb, _, rest = text.strip(".").partition(" ")
    return FINITE[verb, rest]


@pytest.mark.parametrize("stem", ["vp_coord", "long_vp_coord"])
def test_what_passes_is_joined_to_what_passes(stem):
    """By another road than the generator: the two predicates are found again in the sentence."""
    aspects = Counter()
    for pair in rows(stem):
        sentence = pair["sentence_good"]
        first, second = next(  # an "and" may also stand within a predicate
            (predicate(before.split(maxsplit=2)[2]), predicate(after))
            for before, after in (
                (sentence[: found.start()], sentence[found.end() :]) for found in re.finditer(" and ", sentence)
            )
            if after.strip(".").partition(" ")[::2] in FINITE
        )
        assert {"passing", "lasting"} & set(first.marks) & set(second.marks), sentence
        joined = [*first.marks, *second.marks]
        assert not {"good", "bad"} <= set(joined) and joined.count("place") < 2 and joined.count("speech") < 2, sentence
        aspects.update(set(first.marks) & set(second.marks) & {"passing", "lasting"})
    assert min(aspects["passing"], aspects["lasting"]) > 40


@pytest.mark.parametrize("stem", STEMS)
def test_nothing_is_said_of_a_noun_that_it_does_not_suit(stem):
    exceptions = [row for row in read_lexicon(LEXICON).predicates if row.not_of]
    assert len(exceptions) > 20
    for pair in rows(stem):
        assert "postman" not in pair["subject"]
        for row in exceptions:
            if pair["subject"] in row.not_of and pair["verb"] == row.plural:
                assert not re.search(
                    rf"\b({row.singular}|{row.plural}) {row.rest}".rstrip() + r"\.", pair["sentence_good"]
                )


def test_no_verb_that_is_a_noun_follows_the_verb_of_an_object_relative():
    for stem in [stem for stem in STEMS if stem.startswith("obj_rel_across")]:
        for pair in rows(stem):
            good = pair["sentence_good"]
            found = [FINITE[verb, rest] for verb, rest in FINITE if good.endswith(f" {verb} {rest}".rstrip() + ".")]
            assert found and not any("noun" in row.marks for row in found), good


def test_left_contexts_of_simple_agreement_vary():
    assert len({" ".join(words(pair["sentence_good"])[:2]) for pair in rows("simple_agrmt")}) >= 100


def test_no_sentence_is_a_published_one(datasets):
    ours = {pair["sentence_good"].strip(".").lower() for stem in STEMS for pair in rows(stem)}
    published = {
        json.loads(line)["sentence_good"].strip(".").lower()
        for path in (datasets / "refining-tse").glob("*/*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    }
    assert published and not ours & published


def test_a_dealer_gives_each_word_once_before_any_twice():
    deal = dealer("seed")
    first, second = [deal("abcdef") for _ in range(6)], [deal("abcdef") for _ in range(6)]
    assert sorted(first) == sorted(second) == list("abcdef")
    again = dealer("seed")
    assert [again("abcdef") for _ in range(6)] == first


def test_another_seed_gives_other_pairs():
    lexicon = read_lexicon(LEXICON)
    one, other = (agreement_pairs(lexicon, "prep_anim", pairs=16, seed=seed) for seed in (1, 2))
    assert one != other
    assert one == agreement_pairs(lexicon, "prep_anim", pairs=16, seed=1)


BROKEN = {
    "unknown column": ("nouns.csv", lambda t: t.replace("inflection", "kind", 1), "line 1: the columns are"),
    "missing column": ("determiners.csv", lambda t: t.replace("singular,plural", "singular", 1), "line 1"),
    "missing value": ("nouns.csv", lambda t: t + "kite,,text,regular\n", "no value for plural"),
    "too few values": ("nouns.csv", lambda t: t + "kite,kites,text\n", "3 values for 4 columns"),
    "one form": ("nouns.csv", lambda t: t + "sheep,sheep,animal,regular\n", "'sheep' is both"),
    "form of another row": ("predicates.csv", lambda t: t + "intransitive,sing,sung,,person,,\n", "'sing' is both"),
    "unknown kind": ("predicates.csv", lambda t: t + "odd,hums,hum,,person,,\n", "kind is 'odd'"),
    "unknown inflection": ("nouns.csv", lambda t: t + "kite,kites,text,odd\n", "inflection is 'odd'"),
    "unknown mark": (
        "predicates.csv",
        lambda t: t + "intransitive,hums,hum,,person,odd,\n",
        "the mark 'odd' is unknown",
    ),
    "exception that is no noun": (
        "predicates.csv",
        lambda t: t + "intransitive,hums,hum,,person,,thieef\n",
        "not_of names 'thieef', which is no singular in nouns.csv (did you mean thief?); mend it or take it out.",
    ),
    "exception of another class": (
        "predicates.csv",
        lambda t: t + "intransitive,hums,hum,,person,,wolf\n",
        "not_of names 'wolf', which is of the class 'animal' and not of person, so it is no exception",
    ),
    "plural as an exception": (
        "predicates.csv",
        lambda t: t + "intransitive,hums,hum,,person,,thieves\n",
        "not_of names 'thieves', which is no singular in nouns.csv",
    ),
    "unknown class": ("prepositions.csv", lambda t: t + "above,star,person\n", "class 'star'"),
    "two words": ("nouns.csv", lambda t: t + "taxi driver,taxi drivers,person,regular\n", "single word"),
    "repeated row": ("determiners.csv", lambda t: t + "this,these\n", "the same row as line 3"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_lexicon_is_refused_with_file_and_line(lexicon_copy, name):
    file, breaking, message = BROKEN[name]
    text = (lexicon_copy / file).read_text(encoding="utf-8")
    broken = breaking(text)
    (lexicon_copy / file).write_text(broken, encoding="utf-8")
    line = 1 if message.startswith("line 1") else len(broken.splitlines())
    with pytest.raises(LitmusError) as error:
        read_lexicon(lexicon_copy)
    sentence = str(error.value)
    assert message in sentence
    assert f"{lexicon_copy / file}, line {line}:" in sentence
    assert "\n" not in sentence and sentence.endswith(".")


def test_a_lexicon_saved_by_a_spreadsheet_reads_the_same(lexicon_copy):
    for path in lexicon_copy.glob("*.csv"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n") + b",,\r\n")
    assert read_lexicon(lexicon_copy)[1:] == read_lexicon(LEXICON)[1:]


def test_missing_empty_and_undecodable_tables(lexicon_copy):
    nouns = lexicon_copy / "nouns.csv"
    nouns.write_text("singular,plural,class,inflection\n")
    with pytest.raises(LitmusError, match=r"nouns\.csv: this table has no rows"):
        read_lexicon(lexicon_copy)
    nouns.write_bytes(b"\xff\xfe")
    with pytest.raises(LitmusError, match=r"nouns\.csv: this file is not UTF-8"):
        read_lexicon(lexicon_copy)
    nouns.unlink()
    with pytest.raises(LitmusError, match=r"nouns\.csv: there is no such file"):
        read_lexicon(lexicon_copy)


def test_too_few_words_are_told(lexicon_copy):
    nouns = lexicon_copy / "nouns.csv"
    lines = nouns.read_text(encoding="utf-8").splitlines(keepends=True)
    nouns.write_text("".join(line for line in lines if ",irregular" not in line))
    predicates = lexicon_copy / "predicates.csv"  # exceptions that are gone would be refused
    head, *lines = predicates.read_text(encoding="utf-8").splitlines()
    predicates.write_text("\n".join([head, *(f"{line.rpartition(',')[0]}," for line in lines)]))
    lexicon = read_lexicon(lexicon_copy)
    with pytest.raises(LitmusError, match="no irregular noun of the class animal or child or person"):
        agreement_pairs(lexicon, BLIMP)
    with pytest.raises(LitmusError, match="different pairs; add words or ask for fewer"):
        agreement_pairs(lexicon, "simple_agrmt", pairs=160_000)


def command(*arguments: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "lib.templates", *map(str, arguments)], capture_output=True, text=True, cwd=DATA.parent
    )


def test_command_line(tmp_path, lexicon_copy):
    with (lexicon_copy / "determiners.csv").open("a") as file:
        file.write("another,other\n")
    run = command("agreement", "--out", tmp_path / "a", "--pairs", "32", "--seed", "7", "--lexicon", lexicon_copy)
    assert run.returncode == 0, run.stderr
    files = sorted(path.stem for path in (tmp_path / "a").glob("*.jsonl"))
    assert files == sorted(STEMS)
    written = [json.loads(line) for line in (tmp_path / "a" / "blimp_like.jsonl").read_text().splitlines()]
    assert len(written) == 32
    assert written == agreement_pairs(read_lexicon(lexicon_copy), BLIMP, pairs=32, seed=7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pairs", "100"], "--pairs 100: give a multiple of 16"),
        (["--pairs", "0"], "--pairs 0: give a multiple of 16"),
        (["--lexicon", "nowhere"], "there is no such file"),
    ],
)
def test_command_line_errors_are_one_sentence(tmp_path, arguments, message):
    run = command("agreement", "--out", tmp_path / "out", *arguments)
    assert run.returncode == 2
    assert run.stderr.startswith("error: ") and message in run.stderr and run.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("place", ["lexicon/nouns.csv", "lexicon/new.tab", "sentences.tsv"])
def test_items_are_never_written_over_what_they_are_made_from(place, tmp_path):
    shutil.copytree(DATA / "lexicon", tmp_path / "lexicon")
    sentences = shutil.copy(DATA / "items" / "long_distance" / "sentences.tsv", tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    options = ["--lexicon", str(tmp_path / "lexicon"), "--sentences", str(sentences), "--out", str(tmp_path / place)]
    done = CliRunner().invoke(app, ["long-distance", *options])
    assert done.exit_code == 2 and "what the items are made from; name another place" in done.output
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
