"""Whole sentences: numbers worked out by hand, real tiny models against plain sums, and scores that are kept."""

import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from bench import sentences as bench
from test_store import run

from lib import sentences
from lib.errors import LitmusError
from lib.models.masked import words_of
from lib.models.protocol import TokenScores
from lib.sentences import difference, minimal_pairs, reduce, score, words
from lib.store import Store

NAN = float("nan")


def scores(text: str, values: list[float], **more) -> TokenScores:
    """One token a white-space word, with these log-probabilities."""
    spans, start = [], 0
    for word in text.split():
        start = text.index(word, start)
        spans.append((start, start + len(word)))
        start += len(word)
    return TokenScores(text, text.split(), spans, np.array(values), **more)


class Told:
    """A model that knows the scores of some sentences, and remembers which it was asked."""

    name, revision, family, cased, vocabulary_size = "told", "main", "causal", True, 10

    def __init__(self, known: dict[str, list[float] | str], first_unscored: bool = False):
        self.known, self.first_unscored, self.asked = known, first_unscored, []

    @property
    def identity(self) -> dict[str, str]:
        return {"model": self.name, "dtype": "float32"}

    def score(self, texts, start_token):
        self.asked += texts
        return [
            TokenScores(text, [], [], np.array([]), known) if isinstance(known := self.known[text], str)
            else scores(text, known, first_unscored=self.first_unscored) for text in texts
        ]  # fmt: skip


def pairs(*rows: tuple[str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["good", "bad"])


# --- one number -----------------------------------------------------------------------------------------------------


def test_sum_and_mean_by_hand():
    of_three = scores("a b c", [-1, -2, -6])
    assert (reduce(of_three), reduce(of_three, "mean")) == (-9, -3)


def test_case_43_a_first_token_with_nothing_before_it_is_left_out_and_not_zero():
    of_three = scores("a b c", [NAN, -2, -6], first_unscored=True)
    assert (reduce(of_three), reduce(of_three, "mean")) == (-8, -4)
    assert np.isnan(reduce(scores("a", [NAN], first_unscored=True)))


def test_an_unknown_token_leaves_a_sentence_without_a_number_unless_it_is_left_out():
    of_three = scores("a b c", [-1, NAN, -6])
    assert np.isnan(reduce(of_three))
    assert reduce(of_three, unknown="leave_out") == -7


def test_a_sentence_that_was_not_scored_has_no_number():
    assert np.isnan(reduce(TokenScores("", [], [], np.array([]), "empty")))


def test_a_reduction_that_does_not_exist_is_refused():
    with pytest.raises(LitmusError, match="'median' is no reduction"):
        reduce(scores("a", [-1]), "median")


# --- pairs ----------------------------------------------------------------------------------------------------------

KNOWN = {"the cat runs": [-1, -2, -3], "the cat run": [-1, -2, -4], "they run": [-1, -2.5], "long": "too_long"}


def test_pairs_by_hand():
    found = minimal_pairs(Told(KNOWN), pairs(("the cat runs", "the cat run"), ("the cat run", "the cat runs")))
    assert found["correct"].tolist() == [1, 0]
    assert found["margin"].tolist() == [1, -1]
    assert found["log_probability_good"].tolist() == [-6, -7]
    assert found["tokens_good"].tolist() == [3, 3]
    assert found["scorable"].all() and not found["tie"].any()
    assert found[["start_token", "masked_method", "reduction", "dtype"]].iloc[0].tolist() == [
        "auto",
        "",
        "sum",
        "float32",
    ]


def test_case_1_and_2_a_tie_is_no_success():
    found = minimal_pairs(Told({"a b": [-2, -3], "b a": [-1, -4]}), pairs(("a b", "b a"), ("b a", "a b")))
    assert found["tie"].all() and (found["correct"] == 0).all() and found["scorable"].all()


def test_case_48_margins_that_another_machine_could_turn_are_flagged():
    known = {"a": [-1], "b": [-1.00005], "c": [-1.001]}
    found = minimal_pairs(Told(known), pairs(("a", "b"), ("b", "a"), ("a", "c")))
    assert found["near_tie"].tolist() == [True, True, False]
    assert not found["tie"].any()


def test_case_4_a_pair_of_one_sentence_is_unscorable():
    found = minimal_pairs(Told(KNOWN), pairs(("they run", "they run")))
    assert (found["reason"][0], found["scorable"][0]) == ("identical", False)
    assert np.isnan(found["correct"][0]) and not found["tie"][0]


def test_case_17_sum_and_mean_may_disagree_on_sentences_of_different_length():
    pair = pairs(("the cat run", "they run"))
    by_sum, by_mean = (minimal_pairs(Told(KNOWN), pair, reduction=r) for r in ("sum", "mean"))
    assert (by_sum["correct"][0], by_mean["correct"][0]) == (0, 0)
    pair = pairs(("the cat runs", "they run"))
    known = KNOWN | {"the cat runs": [-1, -1.5, -1.5]}
    by_sum, by_mean = (minimal_pairs(Told(known), pair, reduction=r) for r in ("sum", "mean"))
    assert (by_sum["correct"][0], by_mean["correct"][0]) == (0, 1)
    assert (by_sum["reduction"][0], by_mean["reduction"][0]) == ("sum", "mean")


def test_reasons_stand_beside_and_the_rest_goes_on():
    found = minimal_pairs(Told(KNOWN), pairs(("long", "they run"), ("the cat runs", "the cat run")))
    assert found["reason"].tolist() == ["too_long", ""]
    assert found["correct"].isna().tolist() == [True, False]


def test_case_12_unknown_words_count_only_where_both_sentences_hold_them():
    known = {"the zzq runs": [-1, NAN, -3], "the zzq run": [-1, NAN, -4], "the cat runs": [-1, -2, -3]}
    found = minimal_pairs(Told(known), pairs(("the zzq runs", "the zzq run"), ("the cat runs", "the zzq runs")))
    assert found["reason"].tolist() == ["", "unknown"]
    assert found["unknown"].tolist() == [1, 0]
    assert found["correct"].tolist()[0] == 1 and np.isnan(found["correct"][1])
    assert found["tokens_good"].tolist() == [2, 3]


def test_two_unknown_words_are_not_the_same_word():
    """Both are one piece of the vocabulary; what the model says of it is about neither."""
    model = tiny.model("bert-cased")
    found = minimal_pairs(model, pairs(("the 日 walks", "the 本 walks"), ("the 日 walks", "the 日 walks")))
    assert found["reason"].tolist() == ["unknown", "identical"]


def test_case_43_pairs_that_differ_in_an_unscored_first_token_are_compared_by_the_rest():
    known = {"Keys are here": [NAN, -1, -2], "Key are here": [NAN, -2, -2]}
    found = minimal_pairs(Told(known, first_unscored=True), pairs(("Keys are here", "Key are here")), "never")
    assert (found["correct"][0], found["reason"][0], found["unknown"][0]) == (1, "", 0)


def test_no_pairs():
    assert len(minimal_pairs(Told({}), pairs())) == 0


def test_other_columns_and_the_index_stay():
    table = pairs(("the cat runs", "the cat run")).assign(uid="x").set_axis([7])
    found = minimal_pairs(Told(KNOWN), table)
    assert found.index.tolist() == [7] and found["uid"].tolist() == ["x"]


# --- words ----------------------------------------------------------------------------------------------------------


def test_case_20_a_word_is_the_sum_of_its_pieces():
    text = "the souvenir fell."
    spans = [(0, 3), (3, 7), (7, 9), (9, 12), (12, 17), (17, 18)]
    table = words(TokenScores(text, ["x"] * 6, spans, np.log([1 / 2, 1 / 4, 1 / 2, 1, 1 / 8, 1 / 2])), critical=(4, 12))
    assert table["word"].tolist() == ["the", "souvenir", "fell."]
    assert table["pieces"].tolist() == [1, 3, 2]
    assert table["bits"].tolist() == pytest.approx([1, 3, 4])
    assert table["critical"].tolist() == [False, True, False]


@pytest.mark.parametrize("bare", [(4, 4), (3, 4)], ids=["trimmed", "whole"])
def test_case_20_a_space_that_is_a_piece_of_its_own_belongs_to_the_word_behind_it(bare):
    """Wherever its offsets say it stands; one put first by the tokenizer to the first word, one at the end to the last."""
    spans = [(0, 0), (0, 3), bare, (4, 5), (5, 6)]
    table = words(TokenScores("the a ", ["x"] * 5, spans, np.log([1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32])))
    assert table["word"].tolist() == ["the", "a"] and table["pieces"].tolist() == [2, 3]
    assert table["bits"].tolist() == pytest.approx([3, 12])


def test_words_without_a_score_and_sentences_without_one():
    assert np.isnan(words(scores("a b", [NAN, -1], first_unscored=True))["bits"][0])
    assert len(words(TokenScores("a b", [], [], np.array([]), "too_long"))) == 0


@pytest.mark.parametrize(
    ("one", "other", "region"),
    [("the cat runs home", "the cat run home", "runs"), ("a b c", "a c", "b"), ("a c", "a b c", ""),
     ("x y", "p q r", "x y"), ("same", "same", ""), ("a a a", "a a", "a")],
)  # fmt: skip
def test_the_critical_region_is_what_the_other_sentence_lacks(one, other, region):
    start, end = difference(one, other)
    assert one[start:end] == region


def test_punctuation_at_the_edges_is_apart_from_words_and_inside_them_is_not():
    text = '"Well-known," can\'t end.'
    spans = [(i, i + 1) for i in range(len(text)) if text[i] != " "]
    numbers = words_of(text, spans)
    by_word: dict[int, str] = {}
    for (start, end), number in zip(spans, numbers, strict=True):
        by_word[number] = by_word.get(number, "") + text[start:end]
    assert list(by_word.values()) == ['"', "Well-known", ",", '"', "can't", "end", "."]


# --- real models ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*tiny.MASKED, *tiny.CAUSAL])
def test_scores_come_in_order_and_each_distinct_sentence_once(name, monkeypatch):
    model, asked = tiny.model(name), []
    plain = type(model).score
    monkeypatch.setattr(
        type(model), "score", lambda self, texts, *a, **k: asked.extend(texts) or plain(self, texts, *a, **k)
    )
    texts = ["The keys are small.", "the authors laugh", "The keys are small."]
    found = score(model, texts)
    assert [s.sentence for s in found] == texts
    assert sorted(asked) == sorted(set(texts))
    [alone] = plain(model, texts[1:2], **({"method": "within_word_l2r"} if model.family == "masked" else {}))
    np.testing.assert_allclose(found[1].log_probabilities, alone.log_probabilities, atol=1e-4)


@pytest.mark.parametrize("name", ["bert-cased", "gpt2"])
def test_what_is_kept_is_the_same_number_for_number(name, tmp_path):
    model = tiny.model(name)
    texts = ["The keys are small.", "Does the farmer walk?", ""]
    first, again = (score(model, texts, "never", store=Store(model.identity, tmp_path)) for _ in range(2))
    for one, two in zip(first, again, strict=True):
        assert (one.sentence, one.pieces, one.spans, one.reason) == (two.sentence, two.pieces, two.spans, two.reason)
        assert one.first_unscored == two.first_unscored
        np.testing.assert_array_equal(one.log_probabilities, two.log_probabilities)


def test_only_new_sentences_are_asked_and_another_choice_is_asked_anew(tmp_path, monkeypatch):
    model = Told(KNOWN)
    store = Store(model.identity, tmp_path)
    score(model, ["they run"], store=store)
    score(model, ["the cat run", "they run", "long"], store=store)
    assert model.asked == ["they run", "long", "the cat run"]
    score(model, ["they run", "long"], store=store)  # a refusal is not kept
    assert model.asked[3:] == ["long"]
    score(model, ["they run"], "never", store=store)
    monkeypatch.setattr(sentences, "code_version", lambda: "changed")
    score(model, ["they run"], store=store)
    assert model.asked[4:] == ["they run", "they run"]


def test_a_masked_method_is_part_of_the_key_and_a_start_token_is_not(tmp_path, monkeypatch):
    model, asked = tiny.model("bert-cased"), []
    plain = type(model).score
    monkeypatch.setattr(
        type(model), "score", lambda self, texts, *a, **k: asked.extend(texts) or plain(self, texts, *a, **k)
    )
    store = Store(model.identity, tmp_path)
    one = score(model, ["the zebra walk"], masked_method="original", store=store)
    two = score(model, ["the zebra walk"], masked_method="within_word_l2r", store=store)
    assert len(asked) == 2 and not np.allclose(one[0].log_probabilities, two[0].log_probabilities, atol=0.01)
    score(model, ["the zebra walk"], "never", masked_method="original", store=store)
    assert len(asked) == 2


def test_case_63_a_state_that_is_carried_on_is_asked_in_order_and_nothing_is_kept(tmp_path):
    class Carrying(Told):
        identity = {"model": "told", "dtype": "float32", "start_state": "carry"}  # noqa: RUF012

    model = Carrying(KNOWN)
    for _ in range(2):
        score(model, ["they run", "the cat run", "they run"], store=Store(model.identity, tmp_path))
    assert model.asked == ["they run", "the cat run", "they run"] * 2


class Slow(Told):
    """It takes a moment for each chunk and writes down what it was asked, so that a killed process can be looked into."""

    def __init__(self, note: Path):
        super().__init__({text: [-1.0, -float(number)] for number, text in enumerate(MANY)})
        self.note = note

    def score(self, texts, start_token):
        time.sleep(0.02)
        with self.note.open("a") as file:
            file.writelines(f"{text}\n" for text in texts)
        return super().score(texts, start_token)


MANY = [f"sentence {number}" for number in range(30 * sentences.CHUNK)]
SCORER = """
    import os
    from test_sentences import MANY, Path, Slow, Store, score
    os.environ["LITMUS_QUIET"] = "1"
    print("ready", flush=True)
    score(Slow(Path(sys.argv[2])), MANY, store=Store({"m": "1"}, Path(sys.argv[1])))
"""


def test_case_77_a_kill_at_any_moment_costs_a_chunk_at_most_and_no_sentence_is_kept_twice(tmp_path):
    note = tmp_path / "asked"
    for moment in (0.05, 0.3):
        process = run(SCORER, tmp_path, note)
        process.stdout.readline()
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
    model, store = Slow(note), Store({"m": "1"}, tmp_path)
    for _ in range(2):
        found = score(model, MANY, store=store)
        assert [scored.log_probabilities[1] for scored in found] == [-float(number) for number in range(len(MANY))]
    lines = note.read_text().splitlines()
    assert len(set(lines)) == len(MANY)
    assert len(lines) - len(MANY) <= 2 * sentences.CHUNK  # each kill: the chunk that was asked and not yet kept


def test_two_processes_score_the_same_sentences_at_once(tmp_path):
    processes = [run(SCORER, tmp_path, tmp_path / str(number)) for number in range(2)]
    for process in processes:
        assert process.communicate(timeout=300) == ("ready\n", "")
    model = Slow(tmp_path / "after")
    score(model, MANY, store=Store({"m": "1"}, tmp_path))
    assert not (tmp_path / "after").exists()


def test_a_run_that_stops_goes_on_from_the_last_kept_chunk(tmp_path, monkeypatch):
    class Stopped(Told):
        def score(self, texts, start_token):
            if self.asked:
                raise KeyboardInterrupt
            return super().score(texts, start_token)

    monkeypatch.setattr(sentences, "CHUNK", 2)
    texts = ["a", "b", "c", "d", "e"]
    known = {text: [-1.0] for text in texts}
    with pytest.raises(KeyboardInterrupt):
        score(Stopped(known), texts, store=Store({"m": "1"}, tmp_path))
    after = Told(known)
    score(after, texts, store=Store({"m": "1"}, tmp_path))
    assert after.asked == ["c", "d", "e"]


# --- the bench ------------------------------------------------------------------------------------------------------

PAIRS = [("The keys are small.", "The keys is small."), ("The author laughs", "The author laugh"), ("Keys", "Cabinets")]


@pytest.mark.parametrize("other", [bench.plain_causal, bench.with_cache])
def test_the_loops_of_the_bench_and_ours_give_the_same_numbers(other):
    """Else a ratio of their times would say nothing."""
    model = tiny.model("gpt2")
    np.testing.assert_allclose(other(model, PAIRS), bench.ours(model, PAIRS), atol=1e-4)


def test_both_ways_to_a_masked_target_give_the_same_numbers():
    items = pd.DataFrame({
        "left": ["The keys to the cabinet", "The author"], "right": ["on the table", "small"],
        "good": ["are", "is"], "bad": ["is", "are"],
    })  # fmt: skip
    model = tiny.model("bert-cased")
    np.testing.assert_allclose(
        bench.plain_masked_target(model, items), bench.our_masked_target(model, items), atol=1e-4
    )


def test_tokens_are_counted_as_they_are_fed_and_distinct_beginnings_by_hand():
    model = tiny.model("gpt2")
    with bench.Counted().watching(model.network) as counted:
        model.network(torch.tensor([[1, 2, 3]]))
        model.network(input_ids=torch.tensor([[1, 2]]))
    assert counted.tokens == 5 and counted.seconds >= 0
    assert len(model.tokenizer("The keys are")["input_ids"]) == 3
    assert bench.distinct_beginnings(model, [("The keys are", "The keys is")]) == 3  # the start, The, keys
