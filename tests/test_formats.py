"""Formats: published files read, converted and written back; every wrong line named; no bytes crash a reader."""

import pickle
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import formats
from lib.errors import LitmusError
from lib.paths import DATA

ORIGINAL = ("agreement/English/generated.tab", "evaluation_output/English/best_model.tab")
GAP = ["sentence_good", "sentence_bad", "left", "good", "bad", "right"]
HEADER = "pattern\tconstr_id\tsent_id\tform\tclass\tlen_prefix\tsent"
TWO = (
    f"{HEADER}\nP\t0\t0\tare\tcorrect\t2\tThe keys ran here . <eos>\nP\t0\t0\tis\twrong\t2\tThe keys ran here . <eos>\n"
)


def file(folder: Path, text: str, name: str = "pairs.tab") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def refusal(path: Path) -> str:
    with pytest.raises(LitmusError) as refused:
        formats.read(path)
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", ORIGINAL)
def test_published_files_are_written_back_byte_for_byte(datasets, tmp_path, name):
    source = datasets / "colorless-green" / name
    table = formats.read(source)
    assert len(table) == 410 and set(table["format"]) == {"original"}
    formats.write(table, tmp_path / "again.tab")
    assert (tmp_path / "again.tab").read_bytes() == source.read_bytes()


def test_case_56_the_form_goes_where_len_prefix_says(datasets):
    table = formats.read(datasets / "colorless-green" / ORIGINAL[0])
    others = table["sent"].str.split().str.get(6).where(table["len_prefix"] == "6").dropna()
    first = table.iloc[0]
    assert first["left"] == "An agreeable insight executed in fifty" and first["good"] == "represents"
    assert first["sentence_good"].startswith("An agreeable insight executed in fifty represents there add billion")
    assert "surrounds" in first["sent"] and "surrounds" not in first["sentence_good"] + first["sentence_bad"]
    generated = table[table["type"] == "generated"]
    in_place = [row.sent.split()[int(row.len_prefix)] for row in generated.itertuples()]
    assert sum(word != form for word, form in zip(in_place, generated["form"], strict=True)) == 364
    assert len(generated) == 369 and len(others) > 10


def test_case_57_quoted_cells(datasets, tmp_path):
    table = formats.read(datasets / "colorless-green" / ORIGINAL[0])
    assert 'add billion " weapons " in the' in table.iloc[0]["sentence_good"]
    assert not table["sent"].str.startswith('"An').any()
    sentences = pd.concat([table["sent"], table["sent"]])
    assert sentences.str.contains('"').sum() > 0 and not sentences.str.contains('""').any()


def test_case_60_pattern_belongs_to_the_name_of_a_pair(datasets, tmp_path):
    table = formats.read(datasets / "colorless-green" / ORIGINAL[0])
    assert not table.duplicated(["pattern", "constr_id", "sent_id"]).any()
    assert table.duplicated(["constr_id", "sent_id"]).any() and table["item"].is_unique
    twice = TWO + TWO.split("\n", 1)[1]
    assert "line 4 is a second correct row of pattern P" in refusal(file(tmp_path, twice))
    assert "line 2: pattern P" in (message := refusal(file(tmp_path, TWO.rsplit("\n", 2)[0] + "\n")))
    assert "has no wrong row" in message


def test_case_65_end_and_spaces(tmp_path):
    """With and without <eos>, one space or two, ASCII white space only."""
    rows = ["are\tis\tThe keys are here . <eos>\t2", "are\tis\tThe  keys  are here .\t2",
            "are\tis\tThe\u00a0other keys are here .\t2"]  # fmt: skip
    text = "pattern\tform\tform_alt\tsent\tlen_prefix\n" + "".join(f"P\t{row}\n" for row in rows)
    table = formats.read(path := file(tmp_path, text))
    assert table["sentence_bad"].tolist()[:2] == ["The keys is here ."] * 2
    assert table["left"].tolist() == ["The keys", "The keys", "The\u00a0other keys"]
    assert formats.text_of(table).encode() == path.read_bytes()
    assert "line 2: <eos> stands inside" in refusal(
        file(tmp_path, text.replace("here . <eos>", "<eos> here ."), "inside.tab")
    )


def test_the_two_published_layouts_of_the_english_set_say_the_same(datasets):
    folder = datasets / "colorless-green" / "agreement" / "English"
    tab, gold = formats.read(folder / "generated.tab"), formats.read(folder / "generated.gold")
    columns = [*GAP, "pattern", "constr_id", "sent_id", "type", "item"]
    pd.testing.assert_frame_equal(tab[columns], gold[columns])
    pd.testing.assert_frame_equal(gold, formats.read(folder / "generated.text"))


def test_original_to_both_others_and_there_and_back(datasets, tmp_path):
    original = formats.read(datasets / "colorless-green" / ORIGINAL[0])
    formats.write(original, tmp_path / "word.tab", "word-focused")
    formats.write(original, tmp_path / "sentence.tab", "sentence-focused")
    word, sentence = formats.read(tmp_path / "word.tab"), formats.read(tmp_path / "sentence.tab")
    pd.testing.assert_frame_equal(word[GAP], original[GAP])
    pd.testing.assert_frame_equal(sentence[GAP], original[GAP])
    assert formats.text_of(word, "sentence-focused") == (tmp_path / "sentence.tab").read_text()
    assert formats.text_of(sentence, "word-focused") == (tmp_path / "word.tab").read_text()
    assert word["sent"].str.endswith(" <eos>").all()
    with pytest.raises(LitmusError, match="original format"):
        formats.converted(word, "original")


def test_sentences_that_differ_in_more_stay_sentences(tmp_path):
    text = "pattern\tsent\tsent_alt\nP\tThe key is here.\tThe keys is here.\nQ\tHe was and is.\tThey was and are.\n"
    table = formats.read(path := file(tmp_path, text))
    assert table[["left", "good", "bad", "right"]].to_numpy().tolist() == [["The", "key", "keys", "is here."], [""] * 4]
    assert formats.text_of(table).encode() == path.read_bytes()
    with pytest.raises(LitmusError, match=r"pairs.tab, line 3: the sentences do not differ in exactly one word"):
        formats.text_of(table, "word-focused")
    assert formats.text_of(table.head(1), "word-focused").splitlines()[1] == "P\tkey\tkeys\tThe key is here.\t1"


def test_punctuation_at_the_target_goes_to_the_right(tmp_path):
    text = (
        'pattern\tsent\tsent_alt\nP\tThe keys laugh."\tThe keys laughs."\nP\tThey walk, and go.\tThey walks, and go.\n'
    )
    table = formats.read(file(tmp_path, text))
    assert table[["left", "good", "bad", "right"]].to_numpy().tolist() == [
        ["The keys", "laugh", "laughs", '."'], ["They", "walk", "walks", ", and go."],
    ]  # fmt: skip
    word = formats.read(file(tmp_path, formats.text_of(table, "word-focused"), "word.tab"))
    assert word["form"].tolist() == ['laugh."', "walk,"]
    assert word["sentence_bad"].tolist() == table["sentence_bad"].tolist()


def test_linzen_layout_of_four_columns(tmp_path):
    file(tmp_path, "the keys to the cabinet are here . <eos>\nthe town is small .\n", "set.text")
    file(tmp_path, "5\tare\tis\t1\n2\tis\tare\t0\n", "set.gold")
    file(tmp_path, "5\n2\n", "set.eval")
    table = formats.read(tmp_path / "set.gold")
    assert table["pattern"].tolist() == ["1 attractor", "0 attractors"]
    assert table["sentence_bad"].tolist() == ["the keys to the cabinet is here .", "the town are small ."]
    file(tmp_path, "5\n3\n", "set.eval")
    assert "set.eval, line 2 does not say the same place" in refusal(tmp_path / "set.text")
    file(tmp_path, "5\tare\tis\t1\n", "set.gold")
    assert "(line 2)" in refusal(tmp_path / "set.text")
    file(tmp_path, "5\tare\n2\tis\tare\t0\n", "set.gold")
    assert "set.gold, line 1 has 2 columns" in refusal(tmp_path / "set.text")
    (tmp_path / "set.gold").unlink()
    assert "There is no file" in refusal(tmp_path / "set.text")


def test_marvin_and_linzen_as_table_pickle_and_jsonl(datasets, tmp_path):
    cases = {"sing_MS_MV": [("the author laughs", "the author laugh")],
             "past": [("no author ever laughed", "the author ever laughed", "an author ever laughed")]}  # fmt: skip
    pickled = tmp_path / "made_up.pickle"
    pickled.write_bytes(pickle.dumps(cases))
    table = formats.read(pickled)
    assert table["pattern"].tolist() == ["made_up--sing_MS_MV", "made_up--past", "made_up--past"]
    assert table[["good", "bad"]].to_numpy().tolist() == [["laughs", "laugh"], ["no", "the"], ["no", "an"]]
    sheet = "test case\tgrammatical\tungrammatical\nmade_up--a\tthe author laughs.\tthe author laugh.\n"
    [row] = formats.read(file(tmp_path, sheet, "sample_sents.txt")).to_dict("records")
    assert (row["pattern"], row["left"], row["good"], row["bad"], row["right"]) == (
        "made_up--a", "the author", "laughs", "laugh", ".",
    )  # fmt: skip
    published = formats.read(datasets / "refining-tse" / "ML" / "simple_agrmt_all.jsonl")
    assert len(published) == 140 and set(published["pattern"]) == {"simple_agrmt"}
    again = formats.read(file(tmp_path, formats.text_of(published, "word-focused"), "word.tab"))
    pd.testing.assert_frame_equal(again[GAP], published[GAP])


class Hostile:
    def __reduce__(self):
        return Path.touch, (Path("hostile"),)


@pytest.mark.parametrize("content", [Hostile(), {"case": [(Hostile(), "b")]}, {"case": ["a", 1]}, [], {}, {"a": [[]]}])
def test_a_hostile_or_wrong_pickle_is_refused_and_runs_nothing(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x.pickle").write_bytes(pickle.dumps(content))
    assert refusal(Path("x.pickle")).startswith("x.pickle")
    assert not Path("hostile").exists()


@pytest.mark.parametrize(
    "change, told",
    [
        (("len_prefix\t", "length\t"), "the header of no known format (nearest: original, which also has len_prefix)"),
        (("\tcorrect", "\tright"), "line 2: the class 'right' is neither"),
        (("are\tcorrect\t2", "are\tcorrect\t5"), "line 3 has another len_prefix than line 2"),
        (("\t2\tThe", "\t5\tThe"), "line 2: len_prefix is '5', but the sentence has 5 words"),
        (("\t2\tThe", "\t-1\tThe"), "line 2: len_prefix is '-1'"),
        (("\tis\twrong", "\tis not\twrong"), "line 3: the form 'is not' is not one word"),
        (("\tis\twrong", "\t\twrong"), "line 3: the form '' is not one word"),
        (("wrong\t2\tThe keys ran", "wrong\t2\tThe keys sat"), "line 3 has another sent than line 2"),
        (("The keys ran here . <eos>", "<eos>"), "line 2 has an empty sentence"),
        (("\tThe keys", '\t"The keys'), "line 2 is not a row of a quoted tab-separated file"),
        (("P\t0\t0\tis", "P\t0\tis"), "line 3 has 6 cells, the header 7"),
        (("sent_id\tform", "constr_id\tform"), "'constr_id' is empty or stands there twice"),
        (("constr_id", "line"), "nearest: original, which also has constr_id"),
        (("<eos>\n", "<eos>\r\n"), "line 2 has a Windows line end"),
        ((TWO, HEADER + "\n"), "holds no pairs"),
        ((TWO, ""), "holds no pairs"),
    ],
)  # fmt: skip
def test_each_mistake_is_told_with_its_line(change, told, tmp_path):
    message = refusal(path := file(tmp_path, TWO.replace(*change)))
    assert str(path) in message and told in message


def test_a_column_of_ours_is_refused_in_a_file_of_pairs_alone(tmp_path):
    """A file of another kind, such as one of cloze items, is told what a file of pairs has."""
    assert "line 2: the column name 'line' is one of Litmus' own; rename it" in refusal(
        file(tmp_path, "\npattern\tsent\tsent_alt\tline\nP\ta\tb\t1\n")
    )
    assert "line 1 is the header of no known format" in refusal(file(tmp_path, "item\tcontext\ttarget\n1\ta\tb\n"))


@pytest.mark.parametrize("pattern", ["", " ", "all"])
def test_a_pattern_names_a_kind_of_pairs(pattern, tmp_path):
    path = file(tmp_path, TWO.replace("\nP\t", f"\n{pattern}\t"))
    assert f"{path}, line 2: the pattern is '{pattern}'" in refusal(path)


def test_a_cell_may_be_as_long_as_its_file(tmp_path):
    long = "x" * 200_000  # more than the csv module takes by itself
    table = formats.read(file(tmp_path, TWO.replace("The keys", f"The {long}")))
    assert table["left"][0] == f"The {long}"


def test_columns_of_ones_own_stay_and_come_in_pairs_where_they_differ(tmp_path):
    text = TWO.replace("sent\n", "sent\tscore\tnote\n").replace("<eos>\nP", "<eos>\t-1.5\tx\nP")
    text = text.removesuffix("\n") + "\t-2.5\tx\n"
    table = formats.read(path := file(tmp_path, text))
    assert table[["score", "score_alt", "note"]].iloc[0].tolist() == ["-1.5", "-2.5", "x"] and "note_alt" not in table
    assert formats.text_of(table).encode() == path.read_bytes()


def test_pairs_whose_rows_lie_apart_are_written_where_they_were(tmp_path):
    head, first, second = TWO.strip().split("\n")
    lines = [head, first, second.replace("P\t0", "P\t1"), first.replace("P\t0", "P\t1"), second]
    table = formats.read(path := file(tmp_path, "\n".join(lines) + "\n"))
    assert len(table) == 2
    assert formats.text_of(table).encode() == path.read_bytes()


def test_our_own_files_are_written_back_unchanged():
    own = sorted(path for path in (DATA / "items").rglob("*.t*") if _known(path))
    for path in own:
        assert formats.text_of(formats.read(path)).encode() == path.read_bytes(), path


def _known(path: Path) -> bool:
    header = path.open(encoding="utf-8").readline().rstrip("\n").split("\t")
    return any(set(formats.HEADERS[name]) <= set(header) for name in formats.FORMATS)


WORD = st.text("ab é\"'.,\u00a0\u2028|", min_size=1, max_size=4).map(lambda text: text.replace(" ", "x"))
PAIR = st.tuples(st.lists(WORD, min_size=1, max_size=5), WORD, WORD, st.integers(0, 4), st.booleans())


@given(pairs=st.lists(PAIR, min_size=1, max_size=4))
def test_conversion_loses_nothing(pairs, tmp_path_factory):
    """Word-focused to sentence-focused and back: the same cells, whatever words they hold."""
    rows = []
    for words, form, other, at, ends in pairs:
        words = [*words[: at % len(words)], form, *words[at % len(words) + 1 :]]
        sent = " ".join(words) + (" <eos>" if ends else "")
        rows.append({"pattern": "P", "form": form, "form_alt": other if other != form else form + "s", "sent": sent,
                     "len_prefix": str(at % len(words))})  # fmt: skip
    folder = tmp_path_factory.mktemp("round")
    path = file(folder, formats._as_text(list(rows[0]), [list(row.values()) for row in rows]), "word.tab")
    word = formats.read(path)
    assert formats.text_of(word).encode() == path.read_bytes()
    formats.write(word, folder / "sentence.tab", "sentence-focused")
    sentence = formats.read(folder / "sentence.tab")
    assert formats.text_of(sentence).encode() == (folder / "sentence.tab").read_bytes()
    assert formats.text_of(sentence, "word-focused").encode() == path.read_bytes()


@given(
    content=st.binary(max_size=200),
    suffix=st.sampled_from([".tab", ".jsonl", ".pickle", ".gold", ".txt"]),
    kind=st.integers(0, 4),
)
def test_no_bytes_crash_a_reader(content, suffix, kind, tmp_path_factory):
    starts = [
        b"",
        TWO.encode(),
        b"pattern\tsent\tsent_alt\nP\t",
        b"2\tare\tis\t0\n",
        pickle.dumps({"a": [("b", "c")]})[:-1],
    ]
    folder = tmp_path_factory.mktemp("bytes")
    (folder / f"x{suffix}").write_bytes(starts[kind] + content)
    (folder / "x.text").write_bytes(b"The keys are here .\n" + content)
    try:
        table = formats.read(folder / f"x{suffix}")
    except LitmusError as error:
        assert str(error).count("\n") == 0
    else:
        assert set(formats.PAIR) <= set(table.columns) and len(table)
