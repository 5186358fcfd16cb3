"""Reading items and verb lists: every way of being wrong has its sentence, and what is right comes out as published."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib import formats, items, metrics, scoring
from lib.errors import LitmusError
from lib.experiments import experiments_of
from lib.models.protocol import Gap
from lib.paths import DATA

GOOD = '{"sentence_good": "the authors laugh", "sentence_bad": "the authors laughs", "label": -2}'
PUBLISHED_FILES = 19
ANY_PATH = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def pair(good: object = "the authors laugh", bad: object = "the authors laughs", label: object = -2, **more) -> str:
    return json.dumps({"sentence_good": good, "sentence_bad": bad, "label": label, **more})


def file_of(folder: Path, *lines: str, name: str = "mine.jsonl") -> Path:
    path = folder / name
    path.write_bytes("\n".join([*lines, ""]).encode())
    return path


def one_sentence(error: pytest.ExceptionInfo, *parts: str) -> None:
    """The message is one line that names all of ``parts`` and says after a semicolon what to do."""
    message = str(error.value)
    assert "\n" not in message and message.endswith(".") and "; " in message
    assert all(part in message for part in parts), message


# ---- item files


WRONG_LINES = {
    "unequal lengths": (pair(bad="the authors all laughs"), "3 and 4 words"),
    "no difference": (pair(bad="the authors laugh"), "differ in no word"),
    "no difference but punctuation": (pair("the authors laugh.", "the authors laugh!"), "differ in no word"),
    "two differences": (pair(bad="the author laughs"), "differ in 2 words"),
    "no words": (pair("...", "!"), "differ in no word"),
    "bad JSON": ('{"sentence_good": "the', "not valid JSON", "character 19"),
    "JSON too deep": ("[" * 100_000, "not valid JSON"),
    "number too long": (f'{{"label": {"9" * 5000}}}', "not valid JSON"),
    "not an object": ('["the authors laugh"]', "not a JSON object"),
    "null": ("null", "not a JSON object"),
    "label 3": (pair(label=3), "label 3", "-2", "-1"),
    "label true": (pair(label=True), "label True"),
    "label as text": (pair(label="-2"), "label '-2'"),
    "label as decimal": (pair(label=-2.0), "label -2.0"),
    "label NaN": (pair(label=float("nan")), "label nan"),
    "label null": (pair(label=None), "label None"),
    "of BLiMP": (
        '{"sentence_good": "a b", "sentence_bad": "a c", "UID": "x"}',
        "lacks the field 'label' (a BLiMP paradigm, which 24_blimp reads?)",
    ),
    "label missing": ('{"sentence_good": "a b", "sentence_bad": "a c"}', "lacks the field 'label'"),
    "sentence missing": ('{"sentence_good": "a b", "label": -1}', "lacks the field 'sentence_bad'"),
    "sentence a list": (pair(good=["the", "authors"]), "'sentence_good' is not text"),
    "sentence null": (pair(bad=None), "'sentence_bad' is not text"),
    "half a character": (pair(good="the \ud83d laugh", bad="the \ud83d laughs"), "half of a character"),
    "half a character beside": (pair(subject="\udfff"), "half of a character"),
}


@pytest.mark.parametrize("case", WRONG_LINES)
def test_a_wrong_line_is_named_with_file_line_and_what_is_wrong(case, tmp_path):
    wrong, *parts = WRONG_LINES[case]
    path = file_of(tmp_path, GOOD, "", wrong, GOOD)
    with pytest.raises(LitmusError) as error:
        items.read_agreement(path)
    one_sentence(error, f"{path}, line 3", *parts)


WRONG_FILES = {
    "empty file": (b"", "holds no items"),
    "only blank lines": (b"\n  \n\t\n", "holds no items"),
    "not UTF-8": (b"\xff\xfe{\x00", "not UTF-8", "byte 0"),
    "Latin-1": ('{"sentence_good": "caf\u00e9'.encode("latin-1"), "not UTF-8", "byte 22"),
    "byte-order mark": (b"\xef\xbb\xbf" + GOOD.encode(), "line 1", "byte-order mark", "without BOM"),
    "Windows line ends": (f"{GOOD}\r\n{GOOD}\r\n".encode(), "line 1", "Windows line end", "Unix line ends"),
    "one Windows line end": (f"{GOOD}\n{GOOD}\r\n{GOOD}\n".encode(), "line 2", "Windows line end"),
    "old Mac line ends": (f"{GOOD}\r{GOOD}\r".encode(), "line 1", "line ends of old Macs", "Unix line ends"),
    "UTF-16 without a mark": (GOOD.encode("utf-16-le"), "line 1", "null characters", "UTF-8"),
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_a_wrong_file_is_named_with_what_to_do(case, tmp_path):
    content, *parts = WRONG_FILES[case]
    path = tmp_path / "mine.jsonl"
    path.write_bytes(content)
    with pytest.raises(LitmusError) as error:
        items.read_agreement(path)
    one_sentence(error, str(path), *parts)


@pytest.mark.parametrize("read", [items.read_agreement, items.read_verbs])
def test_a_missing_file_and_a_folder_are_told_apart(read, tmp_path):
    with pytest.raises(LitmusError) as error:
        read(tmp_path / "missing.jsonl")
    one_sentence(error, "There is no file", "missing.jsonl")
    with pytest.raises(LitmusError) as error:
        read(tmp_path)
    one_sentence(error, str(tmp_path), "directory")


def test_a_row_comes_out_prepared_with_its_place_and_its_extras(tmp_path):
    line = pair(
        " the author, near Bob's guards, laughs ...", " the author, near Bob's guards, laugh ...", -1,
        subject_number="singular", attractor_number="plural", match=False, subject="author", unknown="left out",
    )  # fmt: skip
    [row] = items.read_agreement(file_of(tmp_path, "", line)).to_dict("records")
    assert row == {
        "file": "mine", "line": 2, "label": -1, "number": "singular",
        "sentence_good": " the author, near Bob's guards, laughs ...",
        "sentence_bad": " the author, near Bob's guards, laugh ...",
        "left": "the author, near Bob's guards,", "good": "laughs", "bad": "laugh", "right": "",
        "subject_number": "singular", "attractor_number": "plural", "match": False, "subject": "author",
    }  # fmt: skip


def test_punctuation_goes_from_both_ends_only_and_all_white_space_is_one():
    split = items.split_at_difference(
        "«The  cat's\tdog-house\u00a0IS, old»?!", "«The  cat's\tdog-house\u00a0ARE, old»?!"
    )
    assert split == ("«The cat's dog-house", "IS,", "ARE,", "old»")
    assert items.split_at_difference("'(Does it rain?)'", "'(Do it rain?)'") == ("", "Does", "Do", "it rain")
    assert items.split_at_difference("laughs", "laugh") == ("", "laughs", "laugh", "")


def test_other_line_separators_stay_within_their_item(tmp_path):
    """JSON may hold U+2028, U+0085 and the like as they are; only a line feed ends a line."""
    sentences = ["the\u2028authors laugh", "the\u2028authors laughs", "a\u0085b is", "a\u0085b are"]
    lines = [
        json.dumps({"sentence_good": a, "sentence_bad": b, "label": -1}, ensure_ascii=False)
        for a, b in zip(sentences[::2], sentences[1::2], strict=True)
    ]
    table = items.read_agreement(file_of(tmp_path, *lines))
    assert table["left"].tolist() == ["the authors", "a b"]
    assert table["line"].tolist() == [1, 2]


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=12)
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8), lambda inner: (
    st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*items.FIELDS, *items.EXTRAS]), inner, max_size=4)
), max_leaves=6)  # fmt: skip
ROWS = st.fixed_dictionaries({field: JSON | TEXT for field in items.FIELDS}).map(json.dumps)


@ANY_PATH
@given(
    st.binary(max_size=60)
    | st.lists(TEXT | JSON.map(json.dumps) | ROWS, max_size=4).map(lambda t: "\n".join(t).encode())
)
def test_no_bytes_crash_the_item_reader(tmp_path, content):
    path = tmp_path / "any.jsonl"
    path.write_bytes(content)
    try:
        table = items.read_agreement(path)
    except LitmusError as error:
        assert str(path) in str(error)
    else:
        assert len(table) > 0 and (table["good"] != table["bad"]).all()


@given(st.lists(st.text("abc.,' ", max_size=6), max_size=6), st.lists(st.text("abc.,' ", max_size=6), max_size=6))
def test_split_puts_both_sentences_together_again(good, bad):
    good, bad = " ".join(good), " ".join(bad)
    try:
        left, right_form, wrong_form, right = items.split_at_difference(good, bad, "here")
    except LitmusError as error:
        assert str(error).startswith("here: ")
        return
    for sentence, form in ((good, right_form), (bad, wrong_form)):
        words = sentence.strip(".,'").split()
        assert [*left.split(), form, *right.split()] == words
    assert right_form != wrong_form


# ---- gaps


def table_of(*splits: tuple[str, str, str, str]) -> pd.DataFrame:
    return pd.DataFrame(splits, columns=["left", "good", "bad", "right"])


def test_gaps_are_capitalised_where_asked_and_end_in_a_full_stop():
    table = table_of(("the iPod of", "is", "are", "old"), ("élan", "is", "are", ""), ("", "does", "do", "it rain"))
    assert items.gaps(table, capitalise=True) == [
        Gap("The iPod of", "old."), Gap("Élan", "."), Gap("", "it rain."),
    ]  # fmt: skip
    assert items.gaps(table, capitalise=False, full_stop=False)[0] == Gap("the iPod of", "old")


@dataclass
class Cased:
    cased: bool


def test_whether_to_capitalise_follows_the_model_or_the_choice():
    found = [items.capitalises(choice, Cased(cased)) for choice in ("auto", "yes", "no") for cased in (True, False)]
    assert found == [True, False, True, True, False, False]
    with pytest.raises(LitmusError) as error:
        items.capitalises("maybe", Cased(True))
    one_sentence(error, "'maybe'", "'auto'")


# ---- samples


def test_a_sample_is_drawn_by_its_seed_and_stays_in_file_order():
    table = pd.DataFrame({"row": range(100)})
    drawn = items.sample(table, 10, seed=1)["row"].tolist()
    assert drawn == items.sample(table, 10, seed=1)["row"].tolist() == sorted(set(drawn))
    assert drawn != items.sample(table, 10, seed=2)["row"].tolist()
    assert items.sample(table, 3, "first")["row"].tolist() == [0, 1, 2]
    for limit in (0, 100, 101):
        assert items.sample(table, limit)["row"].tolist() == list(range(100))


def test_every_row_has_the_same_chance_to_be_drawn():
    """4,000 draws of 1 of 4: each row about 1,000 times; five standard deviations (27) are 137."""
    table = pd.DataFrame({"row": range(4)})
    times = np.bincount([items.sample(table, 1, seed=seed)["row"].iloc[0] for seed in range(4000)])
    assert (abs(times - 1000) < 137).all()


@pytest.mark.parametrize(("limit", "how", "part"), [(-1, "seeded", "-1"), (1, "random", "'random'")])
def test_a_sample_that_makes_no_sense_is_refused(limit, how, part):
    with pytest.raises(LitmusError) as error:
        items.sample(pd.DataFrame({"row": [1, 2]}), limit, how)
    one_sentence(error, part)


def test_read_pairs_says_whether_the_pairs_are_all_there_are(tmp_path):
    path = file_of(tmp_path, *[pair(f"word{i} is", f"word{i} are", -1) for i in range(5)])
    files = items.agreement_files(chosen=[str(path)])
    assert files.drop(columns="path").to_dict("records") == [{"template": "mine", "construction": "mine"}]
    table, said = items.read_pairs(files)
    assert (len(table), said) == (5, "all")
    assert items.read_pairs(files, 5)[1] == "all"
    table, said = items.read_pairs(files, 2, seed=7)
    assert (len(table), said) == (2, "2 pairs per construction, drawn with seed 7")
    table, said = items.read_pairs(files, 2, "first")
    assert (table["line"].tolist(), said) == ([1, 2], "first 2 pairs per construction")


# ---- which files


def test_chosen_files_keep_their_template_when_their_name_is_known():
    files = items.agreement_files(
        Path("/nonexistent"), ["x/long_vp_coord_all.jsonl", "y/prep_anim.jsonl", "z/own.jsonl"]
    )
    assert files["template"].tolist() == ["VP coordination", "Across prepositional phrase", "own"]
    assert files["construction"].tolist() == ["long_vp_coord", "prep_anim", "own"]


@pytest.mark.parametrize("published", [None, Path("/nonexistent")])
def test_without_published_data_our_own_items_are_used(published):
    files = items.agreement_files(published)
    assert set(files["path"]) == set(items.OURS.glob("*.jsonl"))
    assert items.verb_list("", published) == DATA / "verbs.csv"
    assert items.verb_list("mine.csv", published) == Path("mine.csv")


def test_published_data_are_used_where_they_are_and_none_is_left_out(datasets):
    files = items.agreement_files(datasets)
    assert set(files["path"]) == {path for path in (datasets / "refining-tse").rglob("*.jsonl")}
    assert len(files) == PUBLISHED_FILES and files["construction"].is_unique
    ours = items.agreement_files()
    assert list(dict.fromkeys(files["template"])) == list(dict.fromkeys(ours["template"]))
    assert files["template"].nunique() == 10
    assert items.verb_list("", datasets) == datasets / "refining-tse" / "verbs" / "combined_verb_list.csv"


# ---- published items: rows, gap contexts, left contexts


@dataclass
class Reader:
    """A model without a mind, for counting contexts: sees both sides, or the left one only."""

    causal: bool
    name = "reader"
    identity = {"dtype": "none"}  # noqa: RUF012
    vocabulary_size = 1

    def seen(self, gap: Gap) -> Gap:
        return Gap(gap.left, "") if self.causal else gap

    def fill(self, gaps, start_token):
        return iter(())


def contexts_of(pairs: pd.DataFrame, causal: bool) -> pd.DataFrame:
    return metrics.distinct_contexts(scoring.fill(Reader(causal), items.gaps(pairs, True), []), pairs["label"])


def test_case_10_simple_agreement_has_140_rows_100_gap_contexts_and_20_left_contexts(datasets):
    pairs = items.read_agreement(datasets / "refining-tse" / "ML" / "simple_agrmt_all.jsonl")
    found = [contexts_of(pairs, causal) for causal in (False, True)]
    assert [len(pairs), *map(len, found)] == [140, 100, 20]
    assert [table["rows"].sum() for table in found] == [140, 140]
    assert not pd.concat(found)["both_labels"].any()


def test_eleven_left_contexts_of_blimp_carry_both_labels_and_the_first_row_decides(datasets):
    files = sorted((datasets / "refining-tse" / "blimp").glob("*.jsonl"))
    pairs = pd.concat([items.read_agreement(path) for path in files], ignore_index=True)
    contexts = contexts_of(pairs, causal=True)
    assert (len(files), len(contexts), contexts["both_labels"].sum()) == (4, 2768, 11)
    first = pairs.assign(left=[gap.left for gap in items.gaps(pairs, True)]).drop_duplicates("left")
    assert contexts["label"].tolist() == first["label"].tolist()


# ---- verb lists

HEADER = "idx,sing,plur,freq"
WRONG_VERBS = {
    "one form": ("_,runs,,_", "line 3", "both forms"),
    "blank form": ("_, ,run,_", "line 3", "both forms"),
    "too few cells": ("_,runs,run", "line 3", HEADER),
    "too many cells": ("_,runs,run,1,2", "line 3", HEADER),
    "the same form twice": ("_,put,put,_", "line 3", "'put'", "does not inflect"),
    "an open quotation mark": ('_,"runs,run,_', "line 3", "quotes"),
}


@pytest.mark.parametrize("case", WRONG_VERBS)
def test_a_wrong_verb_is_named_with_file_line_and_what_is_wrong(case, tmp_path):
    wrong, *parts = WRONG_VERBS[case]
    path = file_of(tmp_path, HEADER, "_,walks,walk,_", wrong)
    with pytest.raises(LitmusError) as error:
        items.read_verbs(path)
    one_sentence(error, str(path), *parts)


WRONG_LISTS = {
    "empty": ("", "line 1", "'sing'"),
    "only a header": (HEADER, "holds no verbs"),
    "no header": ("_,runs,run,_\n_,walks,walk,_", "line 1", "'sing'", HEADER),
    "no plural": ("idx,sing,freq\n_,runs,_", "'plur'"),
    "byte-order mark": (f"\ufeff{HEADER}\n_,runs,run,_\n", "line 1", "byte-order mark", "without BOM"),
    "Windows line ends": (f"{HEADER}\r\n_,runs,run,_\r\n", "line 1", "Windows line end", "Unix line ends"),
}


@pytest.mark.parametrize("case", WRONG_LISTS)
def test_a_wrong_list_is_named_with_what_to_do(case, tmp_path):
    content, *parts = WRONG_LISTS[case]
    path = tmp_path / "verbs.csv"
    path.write_bytes(content.encode())
    with pytest.raises(LitmusError) as error:
        items.read_verbs(path)
    one_sentence(error, str(path), *parts)


def test_case_8_lemmas_are_their_two_forms_and_repeats_count_once(tmp_path):
    """The published reader keys on idx: of these rows it would keep one."""
    path = file_of(tmp_path, HEADER, "_,runs,run,12.5", '_,"walks", walk ,_', "_,runs,run,3", "_,runs,rune,")
    table = items.read_verbs(path)
    assert table[["singular", "plural"]].to_numpy().tolist() == [["runs", "run"], ["walks", "walk"], ["runs", "rune"]]
    assert table["line"].tolist() == [2, 3, 5]
    np.testing.assert_equal(table["frequency"].to_numpy(), [12.5, np.nan, np.nan])
    assert not table["ambiguous"].any()


def test_columns_may_stand_in_any_order_and_others_are_allowed(tmp_path):
    table = items.read_verbs(file_of(tmp_path, "plur , note, sing", "run,x,runs"))
    assert table[["singular", "plural"]].to_numpy().tolist() == [["runs", "run"]]


def test_case_9_a_form_in_both_columns_marks_both_its_rows(tmp_path):
    table = items.read_verbs(file_of(tmp_path, HEADER, "_,refocuseses,refocuses,_", "_,a,b,_", "_,refocuses,refocus,_"))
    assert table["ambiguous"].tolist() == [True, False, True]


def test_the_published_list_has_1951_lemmas_two_of_them_ambiguous(datasets):
    table = items.read_verbs(items.verb_list("", datasets))
    assert len(table) == 1951 and table["frequency"].isna().all()
    ambiguous = table[table["ambiguous"]]
    assert ambiguous["plural"].tolist() == ["refocuses", "refocus"]
    assert table[table["plural"] == "have"]["singular"].tolist() == ["haves"]  # wrong, but ambiguous with nothing


def test_our_own_list_reads_clean():
    table = items.read_verbs(DATA / "verbs.csv")
    assert len(table) >= 1500 and not table["ambiguous"].any()
    assert dict(zip(table["plural"], table["singular"], strict=True)).items() >= {
        "have": "has", "do": "does", "go": "goes", "quiz": "quizzes", "veto": "vetoes", "radio": "radios",
    }.items()  # fmt: skip


@ANY_PATH
@given(
    st.binary(max_size=60)
    | st.lists(TEXT | st.lists(TEXT, min_size=4, max_size=4).map(",".join), max_size=4).map(
        lambda lines: "\n".join([HEADER, *lines]).encode()
    )
)
def test_no_bytes_crash_the_verb_reader(tmp_path, content):
    path = tmp_path / "any.csv"
    path.write_bytes(content)
    try:
        table = items.read_verbs(path)
    except LitmusError as error:
        assert str(path) in str(error)
    else:
        assert len(table) > 0 and (table["singular"] != table["plural"]).all()


def test_count_by_counts_kinds_in_order_of_appearance_missing_ones_too():
    table = pd.DataFrame({"a": ["y", "x", "y"], "b": [None, 1, None]})
    counted = items.count_by(table, ["a", "b"])
    assert counted["a"].tolist() == ["y", "x"] and counted["items"].tolist() == [2, 1]


@pytest.mark.parametrize(
    ("marks", "said"),
    [
        ({"match": True}, "has match only; give subject_number, attractor_number, match together"),
        ({"subject_number": 7, "attractor_number": None, "match": None}, "'subject_number' is 7; use one of"),
        ({"subject_number": "plural", "attractor_number": None, "match": "maybe"}, "'match' is 'maybe'; use one of"),
        ({"subject_number": "plural", "attractor_number": "plural", "match": 1}, "'match' is 1; use one of"),
    ],
)
def test_attractors_are_marked_whole_or_not_at_all(tmp_path, marks, said):
    with pytest.raises(LitmusError, match="mine.jsonl, line 1.*" + re.escape(said)):
        items.read_agreement(file_of(tmp_path, pair("The cat sleeps.", "The cat sleep.", -1, **marks)))


def test_half_of_a_published_set_is_refused_and_none_of_it_is_no_set(tmp_path):
    assert items.origin(items.agreement_files(tmp_path)["path"], tmp_path) == "our own items"
    (tmp_path / "refining-tse" / "ML").mkdir(parents=True)
    (tmp_path / "refining-tse" / "ML" / "prep_anim_all.jsonl").write_text("{}\n")
    with pytest.raises(
        LitmusError, match=r"18 of 19 agreement files are missing in .*simple_agrmt_all.jsonl; complete them"
    ):
        items.agreement_files(tmp_path)


def test_origin_is_told_from_the_files_read(datasets):
    own, theirs = items.OURS / "simple_agrmt.jsonl", datasets / "refining-tse" / "ML" / "simple_agrmt_all.jsonl"
    assert items.origin([own], None) == items.origin([own], datasets) == "our own items"
    assert items.origin([theirs], datasets) == "published: refining-tse"
    assert items.origin([theirs, own], datasets) == "published: refining-tse, and our own items"


def test_a_published_file_that_was_cut_is_not_called_published(datasets, tmp_path):
    names = ["simple_agrmt_all.jsonl", "sent_comp_all.jsonl"]
    (tmp_path / "refining-tse" / "ML").mkdir(parents=True)
    paths = [tmp_path / "refining-tse" / "ML" / name for name in names]
    for path in paths:
        path.write_bytes((datasets / path.relative_to(tmp_path)).read_bytes())
    assert items.origin(paths, tmp_path) == "published: refining-tse"
    paths[1].write_bytes(paths[1].read_bytes().rpartition(b"\n{")[0])
    assert items.origin(paths, tmp_path) == (
        "changed: refining-tse (1 of 2 files not as published, first sent_comp_all.jsonl; make data gets them anew)"
    )


def test_files_that_cannot_be_told_apart_are_refused(tmp_path):
    path, other = file_of(tmp_path, GOOD), tmp_path / "other"
    other.mkdir()
    (tmp_path / "link.jsonl").symlink_to(path)
    namesake = file_of(other, GOOD)
    for again in (path, other / ".." / path.name, tmp_path / "link.jsonl"):
        with pytest.raises(LitmusError) as error:
            items.agreement_files(chosen=[str(path), str(again)])
        one_sentence(error, "are one file", "name it once")
    for alike in (namesake, file_of(other, GOOD, name="mine_all.jsonl")):
        with pytest.raises(LitmusError) as error:
            items.agreement_files(chosen=[str(path), str(alike)])
        one_sentence(error, str(alike), "both called mine", "rename one")


def test_pairs_that_repeat_others_all_count_and_are_told(tmp_path, capsys):
    path = file_of(tmp_path, GOOD, GOOD, pair("the author laughs", "the author laugh", -1), GOOD)
    pairs, _ = items.read_pairs(items.agreement_files(chosen=[str(path)]))
    assert len(pairs) == 4
    assert capsys.readouterr().out == "mine: repeated pairs: 2 (first in line 2); each counts.\n"
    items.read_pairs(items.agreement_files(chosen=[str(file_of(tmp_path, GOOD))]))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "read", [items.read_agreement, items.read_verbs, formats.read, formats.read_templates, experiments_of]
)
def test_what_may_never_end_is_not_read(read, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe", tmp_path / "link", Path("/dev/zero")):
        with pytest.raises(LitmusError) as error:
            read(path)
        one_sentence(error, str(path), "a pipe or a device")


def test_verbs_that_repeat_are_told_and_those_that_contradict_refused(tmp_path, capsys):
    head = "idx,sing,plur,freq"
    assert len(items.read_verbs(file_of(tmp_path, head, "1,works,work,5", "2,works,work,5", name="verbs.csv"))) == 1
    assert capsys.readouterr().out == "verbs.csv: repeated verbs: 1; each counts once.\n"
    with pytest.raises(LitmusError) as error:
        items.read_verbs(file_of(tmp_path, head, "1,works,work,5", "2,runs,run,5", "3,work,works,5"))
    one_sentence(error, "lines 2 and 4 call 'works' the singular of 'work' and its plural")
