"""Reading minimal pairs, what is left out, and the controls for length and for frequent words."""

import json
import shutil
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest

from lib import blimp, charts, metrics, published, sentences
from lib.errors import LitmusError
from lib.models.protocol import TokenScores
from lib.paths import DATA

GOOD = {
    "sentence_good": "The cat sleeps.", "sentence_bad": "The cat sleep.", "field": "morphology",
    "linguistics_term": "subject_verb_agreement", "UID": "mine", "pairID": "0",
}  # fmt: skip


def file_of(folder, *rows, name="mine.jsonl"):
    path = folder / name
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


@dataclass
class Scorer:
    """A model whose sentence scores a test writes down: a log-probability for each white-space word."""

    values: dict[str, float]
    asked: list[str] = field(default_factory=list)
    name, revision, family = "scorer", "main", "causal"
    identity = {"model": "scorer", "dtype": "float32"}  # noqa: RUF012

    def score(self, texts, start_token="auto"):
        self.asked += texts
        return [self.scored(text) for text in texts]

    def scored(self, text):
        pieces, spans, at = text.split(), [], 0
        for piece in pieces:
            start = text.index(piece, at)
            at = start + len(piece)
            spans.append((start, at))
        return TokenScores(
            text, pieces, spans, np.array([self.values.get(piece.strip(".?"), np.nan) for piece in pieces])
        )


# ---- reading


def test_a_pair_as_it_is_read(tmp_path):
    [row] = blimp.read_paradigm(file_of(tmp_path, GOOD)).to_dict("records")
    assert row == {
        "file": "mine", "line": 1, "pair": "0", "paradigm": "mine", "phenomenon": "subject_verb_agreement",
        "field": "morphology", "good": "The cat sleeps.", "bad": "The cat sleep.", "words_good": 3, "words_bad": 3,
        "release": "other", "excluded": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    "second, words",
    [
        ('{"sentence_good": ', "line 2 is not valid JSON"),
        ("[1]", "line 2 is not a JSON object"),
        ({key: value for key, value in GOOD.items() if key != "UID"}, "line 2 lacks the field 'UID'"),
        (GOOD | {"sentence_bad": 3}, "line 2: 'sentence_bad' is 3"),
        (GOOD | {"sentence_good": "  "}, "line 2: 'sentence_good' is '  '"),
        (GOOD | {"pairID": 1}, "line 2: 'pairID' is 1"),
        (GOOD | {"field": "phonology", "pairID": "1"}, "line 2 has the field 'phonology'"),
        (GOOD | {"UID": "yours", "pairID": "1"}, "line 2 has the UID 'yours'"),
        (GOOD | {"linguistics_term": "binding", "pairID": "1"}, "line 2 has the linguistics_term 'binding'"),
        (GOOD, "line 2 repeats the pairID 0"),
        ('{"sentence_good": "\\ud83d"}', "line 2 holds half of a character"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path, second, words):
    path = file_of(tmp_path, GOOD, second)
    with pytest.raises(LitmusError) as told:
        blimp.read_paradigm(path)
    assert str(told.value).startswith(f"{path}, {words}") and str(told.value).endswith(".")


def test_files_without_pairs_or_with_one_paradigm_twice_are_refused(tmp_path):
    with pytest.raises(LitmusError, match=r"empty\.jsonl holds no pairs"):
        blimp.read_paradigm(file_of(tmp_path, name="empty.jsonl"))
    both = [file_of(tmp_path, GOOD), file_of(tmp_path, GOOD, name="again.jsonl")]
    with pytest.raises(LitmusError, match="both hold the paradigm mine"):
        blimp.read_pairs(both)
    same = file_of(tmp_path, GOOD | {"sentence_bad": GOOD["sentence_good"]}, name="same.jsonl")
    with pytest.raises(LitmusError, match="no pair that is not excluded"):
        blimp.read_pairs([same])
    with pytest.raises(LitmusError, match="'typo' is no kind of pair to exclude"):
        blimp.read_pairs([same], exclude=["typo"])


def test_case_04_identical_pairs_are_left_out_and_counted_before_a_sample_is_drawn(tmp_path):
    rows = [GOOD | {"pairID": str(i)} | ({"sentence_bad": GOOD["sentence_good"]} if i == 3 else {}) for i in range(6)]
    path = file_of(tmp_path, *rows)
    kept, left_out, words = blimp.read_pairs([path])
    assert list(kept["pair"]) == ["0", "1", "2", "4", "5"] and words == "all"
    assert left_out[["line", "pair", "excluded"]].to_dict("records") == [
        {"line": 4, "pair": "3", "excluded": "identical"}
    ]
    drawn, left_out, words = blimp.read_pairs([path], limit=5)
    assert len(drawn) == 5 and len(left_out) == 1 and words == "all"
    drawn, _, words = blimp.read_pairs([path], limit=2, seed=1)
    assert len(drawn) == 2 and words == "2 pairs per paradigm, drawn with seed 1"
    drawn, _, words = blimp.read_pairs([path], limit=2, how="first")
    assert list(drawn["pair"]) == ["0", "1"] and words == "first 2 pairs per paradigm"


def test_case_04_an_identical_pair_that_is_kept_is_no_success(tmp_path):
    path = file_of(tmp_path, GOOD | {"sentence_bad": GOOD["sentence_good"]})
    kept, left_out, _ = blimp.read_pairs([path], exclude=[])
    assert len(kept) == 1 and left_out.empty
    [row] = sentences.minimal_pairs(Scorer({"The": -1.0, "cat": -1.0, "sleeps": -1.0}), kept).to_dict("records")
    assert not row["scorable"] and row["reason"] == "identical" and np.isnan(row["correct"])


def test_cases_01_and_02_a_model_without_preferences_scores_nothing_and_all_are_ties():
    pairs, _, _ = blimp.read_pairs(blimp.paradigm_files(), limit=5)
    constant = Scorer(
        dict.fromkeys({word.strip(".?") for text in [*pairs["good"], *pairs["bad"]] for word in text.split()}, -5.0)
    )
    summary = metrics.summarise_pairs(sentences.minimal_pairs(constant, pairs), ["paradigm"])
    assert (summary["value"] == 0).all() and (summary["ties"] == summary["scored"]).all()
    assert (summary["scored"] == 5).all()


# ---- published files


@pytest.fixture(scope="module")
def published_pairs(datasets):
    """All pairs of the published release, identical ones among them: read once."""
    return blimp.read_pairs(blimp.paradigm_files(datasets), exclude=[])[0]


def test_case_04_seven_published_pairs_are_the_same_string_twice(datasets):
    files = blimp.paradigm_files(datasets)
    kept, left_out, words = blimp.read_pairs(files)
    assert len(files) == kept["paradigm"].nunique() == 67 and len(kept) == 66_993 and words == "all"
    found = left_out.groupby("paradigm")["pair"].apply(list).to_dict()
    assert found == {"passive_1": ["324", "810"], "principle_A_case_2": ["105", "287", "372", "816", "967"]}
    assert (kept["release"] == "published").all()
    assert kept.groupby("field")["paradigm"].nunique().to_dict() == {
        "morphology": 18, "semantics": 9, "syntax": 26, "syntax_semantics": 14
    }  # fmt: skip
    assert kept["phenomenon"].nunique() == 13


def test_case_17_pairs_of_two_lengths_are_known_as_such(published_pairs):
    unequal = published_pairs[blimp.longer(published_pairs, "words") != "neither"]
    assert len(unequal) == 3945 and unequal["paradigm"].nunique() == 14


def test_case_72_known_mistakes_go_when_asked_and_only_from_the_published_release(datasets, tmp_path):
    path = datasets / "blimp" / "determiner_noun_agreement_with_adjective_1.jsonl"
    kept, left_out, _ = blimp.read_pairs([path])
    assert len(kept) == 1000 and left_out.empty
    kept, left_out, _ = blimp.read_pairs([path], exclude=["identical", "mistake"])
    assert len(kept) == 977 and {"37", "84"} <= set(left_out["pair"])
    assert left_out["good"].str.contains("out in the open").all()
    changed = tmp_path / path.name
    changed.write_text(path.read_text("utf-8").rstrip("\n") + "\n" * 2, encoding="utf-8")
    assert blimp.read_pairs([changed], exclude=["mistake"])[1].empty


def test_case_72_the_list_holds_what_its_reasons_say(published_pairs):
    wrong = blimp.mistakes()
    joined = wrong.merge(published_pairs, on=["paradigm", "pair"])
    assert len(joined) == len(wrong) == 179 and not wrong.duplicated(["paradigm", "pair"]).any()
    before_noun = joined["reason"].str.startswith("the good sentence is ungrammatical")
    assert joined.loc[before_noun, "good"].str.contains(r"out in the open \w").all() and before_noun.sum() == 161
    assert joined.loc[~before_noun, ["good", "bad"]].apply(lambda text: text.str.contains("unsuprising")).all(axis=None)


def test_trap_the_older_release_of_the_distractor_file_is_told_from_blimps_own(datasets):
    name = "distractor_agreement_relative_clause.jsonl"
    older, newer = (blimp.read_paradigm(datasets / folder / name) for folder in ("refining-tse/blimp", "blimp"))
    assert (older["release"] == "other").all() and (newer["release"] == "published").all()
    assert not set(older["good"]) & set(newer["good"])


def test_half_of_the_published_files_is_refused(datasets, tmp_path):
    (tmp_path / "blimp").mkdir()
    shutil.copy(datasets / "blimp" / "wh_island.jsonl", tmp_path / "blimp")
    with pytest.raises(LitmusError, match=r"66 of 67 paradigms of BLiMP are missing"):
        blimp.paradigm_files(tmp_path)


def test_a_published_paradigm_that_was_cut_is_refused(datasets, tmp_path):
    shutil.copytree(datasets / "blimp", tmp_path / "blimp")
    assert len(blimp.paradigm_files(tmp_path)) == 67
    cut = tmp_path / "blimp" / "wh_island.jsonl"
    cut.write_bytes(cut.read_bytes().rpartition(b"\n{")[0])
    said = r"1 of 67 paradigms of BLiMP in .* are not as published, first blimp/wh_island.jsonl; get them anew by make data"
    with pytest.raises(LitmusError, match=said):
        blimp.paradigm_files(tmp_path)


def test_pairs_that_repeat_others_all_count_and_are_told(tmp_path, capsys):
    first, second = (blimp.OURS / "anaphor_gender_agreement.jsonl").read_text().splitlines()[:2]
    again = json.dumps(json.loads(first) | {"pairID": "900"})
    (tmp_path / "mine.jsonl").write_text("\n".join([first, second, again]))
    assert len(blimp.read_pairs([tmp_path / "mine.jsonl"])[0]) == 3
    assert capsys.readouterr().out == "mine: repeated pairs: 1 (first in line 3); each counts.\n"


def test_without_published_files_our_own_are_used(tmp_path):
    assert blimp.paradigm_files(tmp_path) == blimp.paradigm_files() == sorted(blimp.OURS.glob("*.jsonl"))
    assert blimp.paradigm_files(tmp_path, ["a.jsonl"]) == [blimp.Path("a.jsonl")]


# ---- published values


def test_case_72_published_values_are_those_of_the_released_results():
    values = blimp.reference()
    listed = {blimp.Path(row.file).stem for row in published.listed() if row.set == "blimp"}
    assert set(values.index) == listed and values.notna().all(axis=None)
    # The means that the released summary gives itself, and people's mean as the paper prints it.
    assert values.mean().round(4).to_dict() == {
        "people": 0.8855, "gpt2": 0.8302, "transformer-xl": 0.6963, "lstm": 0.6981, "5-gram": 0.6124
    }  # fmt: skip
    assert values.loc["inchoative"].to_dict() == {
        "people": 0.82, "gpt2": 0.659, "transformer-xl": 0.543, "lstm": 0.653, "5-gram": 0.509
    }  # fmt: skip
    long = pd.read_csv(DATA / "reference" / "warstadt2020.csv")
    text = (DATA / "reference" / "README.md").read_text("utf-8")
    assert all(f"`{name}`" in text for name in [*long, *long["who"].unique()])


# ---- controls


def test_own_words_are_those_that_the_other_sentence_lacks():
    assert blimp.own_words("The boys play.", "The boy play.") == ("boys", "boy")
    assert blimp.own_words("Only Ann ever sang.", "Even Ann ever sang.") == ("only", "even")
    assert blimp.own_words("Whose car did he see?", "Whose did he see car?") == ("", "")
    assert blimp.own_words("She does not see.", "She doesn't see.") == ("does not", "doesn't")
    assert blimp.own_words("Ann left.", "Ann left him.") == ("", "him")


def test_likelier_words_are_compared_behind_a_carrier_and_each_is_asked_once():
    pairs = pd.DataFrame(
        [
            ("The boys play.", "The boy play."),
            ("The boy plays.", "The boys plays."),
            ("He sleeps here.", "He rests here."),
            ("Whose car did he see?", "Whose did he see car?"),
            ("A zyx ran.", "A boy ran."),
        ],
        columns=["good", "bad"],
    )
    model = Scorer({"and": -99.0, "boys": -2.0, "boy": -1.0, "sleeps": -3.0, "rests": -3.0})
    assert list(blimp.likelier_words(model, pairs)) == ["bad", "good", "neither", "same words", "unknown"]
    assert sorted(model.asked) == ["and boy", "and boys", "and rests", "and sleeps", "and zyx"]


def test_which_sentence_is_longer():
    table = pd.DataFrame({"tokens_good": [3, 4, 5], "tokens_bad": [3, 5, 4]})
    assert list(blimp.longer(table, "tokens")) == ["neither", "bad", "good"]


# ---- checks and comparisons


def judgements(*rows, reduction="sum"):
    columns = ["log_probability_good", "tokens_good", "scorable", "correct", "tie"]
    return pd.DataFrame(rows, columns=columns).assign(reduction=reduction)


def test_case_52_a_model_that_knows_nothing_is_told_so():
    fine = judgements((-2 * np.log(2), 2, True, 1.0, False), (-4 * np.log(2), 1, True, 0.0, False))
    # Six bits over three tokens; of four words a guess costs two bits, of five more.
    assert blimp.surprisal_check(fine, 5) == (
        "A token of the good sentences costs 2.0 bits on average, a blind guess would cost 2.3."
    )
    assert blimp.surprisal_check(fine, 4).startswith("**A token of the good sentences costs 2.0 bits")
    by_mean = judgements((-1 * np.log(2), 2, True, 1.0, False), (-4 * np.log(2), 1, True, 0.0, False), reduction="mean")
    assert blimp.surprisal_check(by_mean, 5) == blimp.surprisal_check(fine, 5)
    unscored = pd.concat([fine, judgements((np.nan, 0, False, np.nan, False))])
    assert blimp.surprisal_check(unscored, 5) == blimp.surprisal_check(fine, 5)


def test_judgements_that_another_choice_turns():
    base = judgements(*[(-1.0, 1, True, value, False) for value in (1.0, 1.0, 0.0, 0.0, 1.0)])
    other = base.assign(correct=[1.0, 0.0, 1.0, 1.0, np.nan], scorable=[True, True, True, True, False])
    turned = blimp.turned(base, {"other": other, "same": base})
    assert turned.to_numpy().tolist() == [
        ["other", "wrong", 1], ["other", "right", 2], ["same", "wrong", 0], ["same", "right", 0],
    ]  # fmt: skip
    found = blimp.accuracies({"base": base, "other": other}).set_index("condition")
    assert found["value"].to_dict() == {"base": 0.6, "other": 0.75}
    assert found["coverage"].to_dict() == {"base": 1.0, "other": 0.8}
    assert set(found["metric"]) == {"accuracy"}


def test_charts_of_paradigms_and_of_turned_judgements_draw_what_the_table_says():
    table = pd.DataFrame(
        {"condition": ["a", "b", "c"], "kind": ["x", "y", "x"], "value": [0.2, 0.9, 0.4], "low": 0.1, "high": 0.95,
         "published": [0.9, np.nan, 0.8]}
    )  # fmt: skip
    chart = charts.grouped_intervals(table, "kind").to_dict()
    assert chart["facet"]["row"]["sort"] == ["y", "x"] and "Hollow diamond" in chart["title"]
    [rows] = chart["datasets"].values()
    assert [row["value"] for row in rows] == [0.2, 0.9, 0.4]
    assert chart["spec"]["layer"][0]["encoding"]["y"]["sort"] == ["b", "c", "a"]
    turned = pd.DataFrame({"choice": ["m", "m"], "became": ["wrong", "right"], "pairs": [3, 1]})
    chart = charts.flips(turned).to_dict()
    [rows] = chart["datasets"].values()
    assert [row["signed"] for row in rows] == [-3, 1] and "m: 1 become right, 3 wrong." in chart["description"]


def test_a_state_that_is_carried_from_pair_to_pair_is_refused():
    model = Scorer({})
    blimp.check_order(model)
    model.identity = model.identity | {"start_state": "carry"}
    with pytest.raises(LitmusError, match="choose 'eos' or 'zero'"):
        blimp.check_order(model)
