"""Recorded scores: what a model said, written down and read again, gives the same numbers."""

import re

import numpy as np
import pandas as pd
import pytest
from cloze import SpellingModel, answers_of, item
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.cloze import metrics as cloze_metrics
from lib.cloze import recorded
from lib.cloze.answers import ask
from lib.errors import LitmusError

WORDS = ["chess", "golf", "tea", "##s", "oak", "a\nb"]
ITEMS = pd.DataFrame([
    item("0", "a", "x", "chess", ("chess",)), item("0", "b", "y, “z”", "chess", ("tea", "oak")),
    item("1", "a", "w", "zzq", ("zzq",)), item("1", "b", "w", "golf", ("oak",)),
])  # fmt: skip


def model(x, y, w=(0.1, 0.3, 0.2, 0.2, 0.1, 0.1)) -> SpellingModel:
    return SpellingModel(WORDS, {"x": x, "y, “z”": y, "w": w})


def metrics(answers: pd.DataFrame) -> list[pd.DataFrame]:
    """What an end user would see of all kinds."""
    compared = cloze_metrics.compare(answers, ["item"], "condition", "a", ["b"])
    return [
        cloze_metrics.accuracy(answers, ks=(1, 2, 3)), cloze_metrics.accuracy(answers, ks=(1,), count="per_row"),
        cloze_metrics.sensitivity(compared), cloze_metrics.mean_probabilities(answers),
        cloze_metrics.shares(cloze_metrics.tops_of_pairs(answers, "a", "b"), "same", "same"),
    ]  # fmt: skip


weights = st.lists(st.sampled_from([1, 2, 3, 5]), min_size=6, max_size=6).map(lambda w: [x / sum(w) for x in w])


@settings(deadline=None, max_examples=30)
@given(weights, weights)
def test_written_and_read_again_all_metrics_are_the_same(tmp_path_factory, x, y):
    answers = answers_of(model(x, y), *ITEMS.to_dict("records"))
    folder = tmp_path_factory.mktemp("recorded")
    recorded.write(answers, folder)
    assert recorded.found(folder)
    again, choices = ask(recorded.read(folder), ITEMS)
    assert choices["start_token"] == "as recorded"
    for expected, found in zip(metrics(answers), metrics(again), strict=True):
        reasons = found["reasons"].str.replace("unscorable", "unknown") if "reasons" in found else ""
        found = found.assign(reasons=reasons) if "reasons" in found else found
        pd.testing.assert_frame_equal(expected, found)


def test_the_published_three_steps(tmp_path):
    asked = model([0.3, 0.2, 0.1, 0.2, 0.1, 0.1], [0.1, 0.1, 0.1, 0.2, 0.1, 0.4])
    answers = answers_of(asked, *ITEMS.to_dict("records"))
    recorded.write_lists(ITEMS, tmp_path, "role", mask="[MASK]")
    assert (tmp_path / "role-contextlist").read_text() == "x [MASK]\ny, “z” [MASK]\nw [MASK]\nw [MASK]\n"
    assert (tmp_path / "role-targetlist").read_text() == "chess\nchess\nzzq\ngolf\n"
    recorded.write_responses(answers, tmp_path, "role", "tiny", k=3)
    predictions = (tmp_path / "modelpreds-role-tiny").read_text().splitlines()
    assert len(predictions) == 4 and predictions[1].startswith("a▁b ##s ") and predictions[0].startswith("chess ")
    assert (tmp_path / "modeltgtprobs-role-tiny").read_text().splitlines()[2] == "nan"
    read = recorded.read_responses(tmp_path, "role", "tiny")
    again = read.answers(ITEMS)
    np.testing.assert_allclose(again["probability"], answers["probability"], rtol=1e-12)
    assert list(again["reason"]) == ["", "", "unscorable", ""]
    assert read.identity["model"] == "tiny" and read.family == "recorded"


def test_ranks_are_known_down_to_the_end_of_the_list():
    """An expected word that was never scored counts by its place in the list; below the list nothing is known."""
    known = recorded.Recorded("api", {("x", "chess"): -1.0}, {"x": [("golf", np.nan), ("oak", np.nan)]})
    items = pd.DataFrame([item("0", "a", "x", "chess", ("oak",)), item("1", "a", "x ", "chess", ("chess",)),
                          item("2", "a", "unheard", "chess", ("chess",))])  # fmt: skip
    answers = known.answers(items)
    assert list(answers["context_number"]) == [0, 0, 1] and list(answers["reason"]) == ["", "", "not_recorded"]
    found = cloze_metrics.accuracy(answers, ks=(1, 2, 3), count="per_row").set_index("k")
    assert list(found["scored"]) == [2, 2, 1] and list(found["successes"]) == [0, 1, 1]
    assert found.loc[3, "reasons"] == "rank_unknown 1, not_recorded 1"
    assert answers["top_pieces"][2] == ()


def test_scores_without_predictions_give_sensitivity_and_no_accuracy(tmp_path):
    (tmp_path / "scores.csv").write_text('context,candidate,log_probability\nx,chess,-1\n"y, “z”",chess,-2\n')
    answers = recorded.read(tmp_path, "api").answers(ITEMS[ITEMS["item"] == "0"])
    compared = cloze_metrics.compare(answers, ["item"], "condition", "a", ["b"])
    assert compared["higher"][0] == 1 and compared["margin"][0] == pytest.approx(np.exp(-1) - np.exp(-2))
    assert cloze_metrics.accuracy(answers)["scored"].sum() == 0
    assert cloze_metrics.tops_of_pairs(answers, "a", "b")["reason"][0] == "no_prediction"


SCORES = "context,candidate,log_probability\n"
PREDICTIONS = "context,rank,piece,log_probability\n"
WRONG = [
    ({}, "There is no file"),
    ({"scores.csv": "context,candidate\n"}, "scores.csv, line 1 names no column 'log_probability'"),
    ({"scores.csv": f"{SCORES}x,chess,0.3\n"}, "scores.csv, line 2: '0.3' is no log-probability"),
    ({"scores.csv": f"{SCORES}x,chess,many\n"}, "scores.csv, line 2: 'many' is no log-probability"),
    ({"scores.csv": f"{SCORES}x,chess,-1\nx ,chess,-2\n"}, "scores.csv, line 3 contradicts an earlier line"),
    ({"scores.csv": f"{SCORES}x,chess\n"}, "scores.csv, line 2 has more or fewer cells"),
    ({"scores.csv": f'{SCORES}x,"chess,-1\n'}, "is not CSV in UTF-8"),
    ({"scores.csv": SCORES, "predictions.csv": f"{PREDICTIONS}x,0,a,\n"}, "line 2: the rank '0' is no whole number"),
    ({"scores.csv": SCORES, "predictions.csv": f"{PREDICTIONS}x,2,a,\n"}, "the ranks of 'x' are not 1 to 1"),
    ({"scores.csv": SCORES, "predictions.csv": f"{PREDICTIONS}x,1,a,\nx,1,b,\n"}, "line 3 contradicts an earlier"),
]


@pytest.mark.parametrize(("files", "sentence"), WRONG, ids=[sentence[:40] for _, sentence in WRONG])
def test_every_wrong_record_is_told_in_one_sentence(tmp_path, files, sentence):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(LitmusError, match=re.escape(sentence)) as found:
        recorded.read(tmp_path)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(("file", "text", "sentence"), [
    ("modeltgtprobs-role-tiny", "0.5\n2\n", "line 2: '2' is no probability"),
    ("modeltgtprobs-role-tiny", "0.5\n", "has 1 lines and role-contextlist 2"),
    ("modelpreds-role-tiny", "chess\ngolf\n", "line 2 contradicts an earlier line about 'x'"),
])  # fmt: skip
def test_published_files_that_do_not_belong_together_are_told(tmp_path, file, text, sentence):
    texts = {"role-contextlist": "x\nx\n", "role-targetlist": "chess\ngolf\n", "modelpreds-role-tiny": "tea\ntea\n",
             "modeltgtprobs-role-tiny": "0.5\n0.1\n", file: text}  # fmt: skip
    for name, content in texts.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(LitmusError, match=re.escape(sentence)):
        recorded.read_responses(tmp_path, "role", "tiny")
