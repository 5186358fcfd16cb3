"""Reading off distributions: against brute force written with sorted lists and sums, and by hand on small ones."""

import math

import numpy as np
import pytest
import tiny
import torch
from bench import agreement
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lib import metrics, scoring
from lib.errors import LitmusError
from lib.models import Gap, load
from lib.models.protocol import FilledBatch, Word
from lib.scoring import fill, read_off, record
from lib.store import Store

VOCABULARY = ["run", "runs", "be", "is", "Is", "Runs"]
GOOD = {"the keys": [0.4, 0.3, 0.15, 0.1, 0.03, 0.02], "a key": [0.02, 0.03, 0.1, 0.15, 0.3, 0.4]}
UNIFORM = [1 / 6] * 6


def read(probabilities, top=(), bottom=(), ids=None, arithmetic="float64"):
    """``read_off`` for one distribution, every item a word unless ``ids`` says which."""
    ids = range(len(probabilities)) if ids is None else ids
    words = [Word(str(i), (i,), "") for i in ids]
    with np.errstate(divide="ignore"):
        logs = torch.tensor(np.log(np.asarray(probabilities, dtype=np.float64))[None], dtype=torch.float32)
    return read_off(logs, words, record(len(words), len(top), len(bottom)), top, bottom, arithmetic)[0]


def prefix(descending, cutoff):
    """(items, mass without, mass with) of the smallest prefix whose mass reaches the cutoff, by going through it."""
    mass = 0.0
    for items, probability in enumerate(descending, 1):
        if mass + probability >= cutoff - 1e-12 or items == len(descending):
            return items, mass, mass + probability
        mass += probability


# --- half precision -------------------------------------------------------------------------------------------------


def test_case_3_equal_logits_of_half_precision_are_ties_that_are_counted_and_others_keep_their_difference():
    """Logits become float32 before the softmax: in bfloat16 their log-probabilities would fall together more often still."""
    half = load(str(tiny.folder("gpt2")), dtype="bfloat16")
    weights = half.network.get_output_embeddings().weight
    with torch.no_grad():
        weights[half.word("is").ids[0]] = weights[half.word("are").ids[0]]
    gaps = [Gap("The keys to the cabinet", ""), Gap("The author", "")]
    goods, bads = ["are", "like"], ["is", "likes"]
    fills = fill(half, gaps, [*goods, *bads])
    judged = metrics.minimal_pairs(fills, goods, bads)
    assert judged["tie"].tolist() == [True, False] and judged["correct"][0] == 0
    [summary] = metrics.summarise_pairs(judged.assign(template="x"), ["template"]).to_dict("records")
    assert (summary["ties"], summary["n"]) == (1, 2)
    with torch.inference_mode():
        ids = torch.tensor([half.tokenizer(gaps[1].left)["input_ids"]])
        logits = half.network(ids).logits[0, -1]
    of_forms = [half.word(form).ids[0] for form in ("like", "likes")]
    expected, rounded = (torch.log_softmax(of, dim=0)[of_forms].float() for of in (logits.float(), logits))
    found = np.array([judged["log_probability_good"][1], judged["log_probability_bad"][1]])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(found - rounded.numpy()).max() > 1e-3  # else this test shows nothing
    assert fills.choices["dtype"] == "bfloat16"


# --- by hand --------------------------------------------------------------------------------------------------------


def test_ranks_and_cumulative_mass_by_hand():
    found = read([0.1, 0.5, 0.25, 0.15])
    assert found["rank"].tolist() == [4, 1, 2, 3]
    assert found["cumulative_mass"] == pytest.approx([1, 0.5, 0.75, 0.9])
    assert np.exp(found["log_probability"]) == pytest.approx([0.1, 0.5, 0.25, 0.15])


def test_equal_probabilities_share_the_better_rank():
    found = read([0.2, 0.4, 0.2, 0.2])
    assert found["rank"].tolist() == [2, 1, 2, 2]
    assert found["cumulative_mass"] == pytest.approx([0.6, 0.4, 0.6, 0.6])  # what outranks it, and itself


def test_a_constant_model_ranks_everything_first():
    assert read(UNIFORM)["rank"].tolist() == [1] * 6


def test_items_without_any_probability():
    found = read([0.75, 0, 0.25, 0], top=[1.0], bottom=[1e-9, 0.5])
    assert found["rank"].tolist() == [1, 3, 2, 3]
    assert found["log_probability"][[1, 3]].tolist() == [-math.inf] * 2
    assert found["cumulative_mass"] == pytest.approx([0.75, 1, 1, 1])
    assert found["top"].tolist() == [[4, 1, 1]]
    assert found["bottom"] == pytest.approx(np.array([[3, 0, 0.25], [4, 0.25, 1]]))


def test_prefixes_by_hand():
    """Sorted .5 .25 .15 .1: .6 is crossed by the second, .9 reached by the third; from below .1 .25 .5 1."""
    found = read([0.1, 0.5, 0.25, 0.15], top=[0.4, 0.6, 0.95, 1.0], bottom=[0.01, 0.2, 0.6, 1.0])
    assert found["top"] == pytest.approx(np.array([[1, 0, 0.5], [2, 0.5, 0.75], [4, 0.9, 1], [4, 0.9, 1]]), abs=1e-6)
    assert found["bottom"] == pytest.approx(np.array([[1, 0, 0.1], [2, 0.1, 0.25], [4, 0.5, 1], [4, 0.5, 1]]), abs=1e-6)


def test_a_cutoff_of_one_is_the_whole_vocabulary_however_small_its_last_items():
    found = read([1 - 3e-12, 1e-12, 1e-12, 1e-12], top=[1.0], bottom=[1.0])
    assert found["top"][0, 0] == found["bottom"][0, 0] == 4


def test_a_cutoff_below_the_least_item_takes_one_item():
    found = read([0.1, 0.5, 0.25, 0.15], top=[1e-9], bottom=[1e-9])
    assert found["top"] == pytest.approx(np.array([[1, 0, 0.5]]))
    assert found["bottom"] == pytest.approx(np.array([[1, 0, 0.1]]))


def test_the_likeliest_words_come_in_order_and_fewer_where_the_vocabulary_is_small():
    found = read([0.1, 0.5, 0.25, 0.15])
    assert found["likeliest"].tolist() == [1, 2, 3, 0] + [-1] * (scoring.LIKELIEST - 4)
    assert np.exp(found["likeliest_log_probability"][:4]) == pytest.approx([0.5, 0.25, 0.15, 0.1])
    assert np.isnan(found["likeliest_log_probability"][4:]).all()


def test_words_of_several_pieces_or_none_have_no_numbers():
    words = [Word("run", (0,), ""), Word("re-run", (1, 0), ""), Word("日", (), "unknown")]
    found = read_off(torch.tensor([GOOD["the keys"]]).log(), words, record(3, 0, 0))[0]
    assert (
        np.isnan(found["log_probability"]).tolist()
        == np.isnan(found["cumulative_mass"]).tolist()
        == [False, True, True]
    )
    assert found["rank"].tolist() == [1, 0, 0]


def test_no_words_at_all():
    found = read(UNIFORM, top=[0.5], ids=[])
    assert found["log_probability"].shape == (0,)
    assert found["top"] == pytest.approx(np.array([[3, 2 / 6, 0.5]]), abs=1e-6)


def test_rows_do_not_disturb_each_other():
    words = [Word(str(i), (i,), "") for i in range(6)]
    logs = torch.tensor([*GOOD.values(), UNIFORM]).log()
    together = read_off(logs, words, record(6, 1, 1), [0.7], [0.2])
    for row in range(3):
        alone = read_off(logs[row : row + 1], words, record(6, 1, 1), [0.7], [0.2])[0]
        assert alone.tobytes() == together[row].tobytes()


def test_float32_mass_may_miss_the_whole_vocabulary_as_the_published_code_does():
    """A float32 softmax that sums to .99999: a cutoff of 1 is never reached and takes all that there is."""
    exact = read([0.5, 0.3, 0.19999], top=[0.8, 1.0])
    single = read([0.5, 0.3, 0.19999], top=[0.8, 1.0], arithmetic="float32")
    assert exact["top"][1, 2] == 1
    assert single["top"][1, 2] == pytest.approx(0.99999, abs=1e-7)
    assert single["top"][0, 0] == 2


# --- against brute force --------------------------------------------------------------------------------------------

weights = arrays(
    np.float32, st.integers(1, 60), elements=st.sampled_from([0, 1e-6, 0.001, 0.01, 0.5, 1, 1, 2, 7, 1000])
)
distributions = weights.filter(lambda w: w.sum() > 0).map(lambda w: w.astype(np.float64) / w.sum(dtype=np.float64))
cutoff_lists = st.lists(st.floats(1e-6, 1), min_size=1, max_size=8).map(sorted)


@settings(max_examples=200, deadline=None)
@given(distributions)
def test_ranks_and_masses_are_those_of_a_sorted_list(probabilities):
    found = read(probabilities)
    exact = np.exp(found["log_probability"].astype(np.float64))
    for i, probability in enumerate(exact):
        above = exact[exact > probability]
        assert found["rank"][i] == len(above) + 1
        assert found["cumulative_mass"][i] == pytest.approx((above.sum() + probability) / exact.sum(), abs=1e-6)


@settings(max_examples=200, deadline=None)
@given(distributions, cutoff_lists)
def test_prefixes_are_those_of_a_loop(probabilities, cutoffs):
    found = read(probabilities, top=cutoffs, bottom=cutoffs)
    exact = np.exp(found["log_probability"].astype(np.float64))
    exact = np.sort(exact / exact.sum())
    for side, ordered in (("top", exact[::-1]), ("bottom", exact)):
        for row, cutoff in zip(found[side], cutoffs, strict=True):
            items, without, with_item = prefix(ordered, cutoff)
            if cutoff == 1 and side == "top":
                items, without = len(exact), 1 - exact[0]
            near = abs(ordered[: int(row[0])].sum() - cutoff) < 1e-9 or abs(with_item - cutoff) < 1e-9
            if not near:  # a mass that lands on the cutoff may round either way
                assert row == pytest.approx([items, without, with_item], abs=1e-9)


@settings(max_examples=200, deadline=None)
@given(distributions, cutoff_lists)
def test_what_holds_of_all_prefixes(probabilities, cutoffs):
    found = read(probabilities, top=cutoffs, bottom=cutoffs)
    for side in ("top", "bottom"):
        items, without, with_item = found[side].T
        assert (np.diff(items) >= 0).all()
        assert (items >= 1).all() and (items <= len(probabilities)).all()
        assert (without < np.array(cutoffs) + 1e-12).all()
        assert (with_item >= np.array(cutoffs) - 1e-12).all()
        assert (without <= with_item).all()


@settings(max_examples=100, deadline=None)
@given(distributions)
def test_cumulative_mass_grows_with_rank(probabilities):
    found = read(probabilities)
    order = np.argsort(found["rank"], kind="stable")
    assert (np.diff(found["cumulative_mass"][order]) >= -1e-6).all()
    best = found["rank"] == 1
    np.testing.assert_allclose(found["cumulative_mass"][best], np.exp(found["log_probability"][best]), atol=1e-6)


def test_both_arithmetics_agree_where_a_distribution_sums_to_one():
    probabilities = np.random.default_rng(0).dirichlet(np.full(500, 0.1))
    cutoffs = [0.1, 0.5, 0.9]
    one, other = (read(probabilities, cutoffs, [0.01, 0.1], arithmetic=a) for a in ("float64", "float32"))
    for field in ("top", "bottom", "cumulative_mass"):
        np.testing.assert_allclose(one[field], other[field], atol=1e-5)


# --- fill -----------------------------------------------------------------------------------------------------------


def fake(**reasons: str) -> tiny.FakeModel:
    return tiny.FakeModel(VOCABULARY, GOOD | {"": UNIFORM} | reasons)


def test_each_distinct_context_is_asked_once():
    model = fake()
    gaps = [Gap("the keys", "here"), Gap("a key", ""), Gap("the keys", "there"), Gap("the keys", "here")]
    fills = fill(model, gaps, ["run", "runs"])
    assert model.asked == [Gap("the keys", ""), Gap("a key", "")]
    assert fills.contexts == model.asked
    assert fills.context_of.tolist() == [0, 1, 0, 0]
    assert np.exp(fills.at("log_probability", ["run", "run", "runs", "runs"])) == pytest.approx([0.4, 0.02, 0.3, 0.3])
    assert fills.at("rank", ["run", "run", "runs", "runs"]).tolist() == [1, 6, 2, 2]
    assert fills.vocabulary_size == 6
    assert fills.choices == {
        "start_token": "never", "target_policy": "single_token", "dtype": "float32", "mass_arithmetic": "float64",
        "start_state": "",
    }  # fmt: skip


def test_a_form_asked_twice_is_one_column():
    fills = fill(fake(), [Gap("a key", "")], ["run", "is", "run"])
    assert fills.forms.index.tolist() == ["run", "is"]
    assert fills.columns(["is", "run", "is"]).tolist() == [1, 0, 1]


def test_a_form_at_the_start_of_a_text_is_another_item_than_inside():
    fills = fill(
        tiny.FakeModel(VOCABULARY, {"": GOOD["a key"], "a key": GOOD["a key"]}),
        [Gap("", "x"), Gap("a key", "")],
        ["runs"],
    )
    assert np.exp(fills.at("log_probability", ["runs", "runs"])) == pytest.approx([0.4, 0.03])  # Runs, runs
    assert fills.forms.loc["runs", ["pieces_start", "pieces_middle"]].tolist() == [1, 1]


def test_reasons_of_contexts_and_of_forms():
    model = fake(endless="too_long")
    gaps = [Gap("endless", ""), Gap("a key", ""), Gap("a key", ""), Gap("a key", ""), Gap("", ""), Gap("", "")]
    forms = ["run", "run", "run-runs", "日", "be", "is"]
    fills = fill(model, gaps, [*forms, "be"])
    assert fills.reason(forms) == [
        "too_long",
        "",
        "several_pieces",
        "unknown",
        "unknown",
        "",
    ]  # "Be" is no item, "Is" is
    assert np.isnan(fills.at("log_probability", forms)).tolist() == [True, False, True, True, True, False]
    assert fills.context_reason.tolist() == ["too_long", "", ""]
    assert np.isnan(fills.values["likeliest_log_probability"][0]).all()
    assert fills.forms.loc["run-runs", ["pieces_middle", "reason_middle"]].tolist() == [2, "several_pieces"]


def test_a_distribution_that_is_not_a_number_is_a_reason(tmp_path):
    model = tiny.FakeModel(VOCABULARY, {"a key": GOOD["a key"], "overflow": [float("nan")] * 6})
    store = Store(model.identity, tmp_path)
    for _ in range(2):  # and it is not kept
        fills = fill(model, [Gap("overflow", ""), Gap("a key", "")], ["run"], store=store)
        assert fills.reason(["run", "run"]) == ["not_a_number", ""]
    assert model.asked.count(Gap("overflow", "")) == 2


def test_the_first_gaps_alone():
    fills = fill(fake(), [Gap("the keys", ""), Gap("a key", "")], ["run"])
    assert np.exp(fills.first(1).at("log_probability", ["run"])) == pytest.approx([0.4])


def test_no_gaps_and_no_forms():
    assert len(fill(fake(), [], ["run"]).values) == 0
    assert fill(fake(), [Gap("a key", "")], []).values["log_probability"].shape == (1, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"target_policy": "first_piece"},
            "'first_piece' is no target policy; choose one of single_token, whole_word, ",
        ),
        ({"mass_arithmetic": "decimal"}, "'decimal' is no mass arithmetic"),
        ({"cutoffs_top": [0.5, 0]}, "above 0 and up to 1; 0 is not"),
        ({"cutoffs_top": [1.2]}, "1.2 is not"),
        ({"cutoffs_bottom": [-0.1]}, "-0.1 is not"),
        ({"cutoffs_bottom": [float("nan")]}, "nan is not"),
    ],
)
def test_choices_that_do_not_exist_are_refused_before_the_model_is_asked(options, message):
    model = fake()
    with pytest.raises(LitmusError) as caught:
        fill(model, [Gap("a key", "")], ["run"], **options)
    assert message in str(caught.value)
    assert model.asked == []


def test_a_start_token_policy_that_does_not_exist_is_refused():
    with pytest.raises(LitmusError, match="'perhaps' is no start-token policy"):
        fill(tiny.model("gpt2"), [Gap("The keys", "")], ["are"], start_token="perhaps")


@pytest.mark.parametrize("name", [*tiny.MASKED, *tiny.CAUSAL])
def test_a_real_model_read_off_as_a_loop_would(name):
    model = tiny.model(name)
    gaps = [
        Gap("The keys to the cabinet", "on the table."),
        Gap("The author near the senators", "."),
        Gap("The key", "x"),
    ]
    forms = ["are", "is", "laughs", "zebra", "日"]
    fills = fill(model, gaps, forms, cutoffs_top=[0.5, 1.0], cutoffs_bottom=[0.01])
    for batch in model.fill([model.seen(gap) for gap in gaps], "never"):
        for i, row in enumerate(batch.rows):
            logs = batch.log_probabilities[i].double().numpy()
            record = fills.values[fills.context_of[row]]
            for form in forms:
                ids, column = model.word(form).ids, fills.forms.loc[form, "column"]
                if len(ids) != 1:
                    assert np.isnan(record["log_probability"][column])
                    continue
                assert record["log_probability"][column] == pytest.approx(logs[ids[0]], abs=1e-5)
                assert record["rank"][column] == (logs > logs[ids[0]]).sum() + 1
            assert record["likeliest"][0] == logs.argmax()
            ordered = np.sort(np.exp(logs) / np.exp(logs).sum())
            assert record["top"][0] == pytest.approx(prefix(ordered[::-1], 0.5), abs=1e-6)
            assert record["bottom"][0] == pytest.approx(prefix(ordered, 0.01), abs=1e-6)
            assert record["top"][1, 0] == model.vocabulary_size


# --- kept scores ----------------------------------------------------------------------------------------------------


TWO_GAPS = (Gap("the keys", ""), Gap("a key", ""))


def kept_fill(model, store, gaps=TWO_GAPS, forms=("run", "runs"), **options):
    return fill(model, gaps, forms, store=store, **options)


def test_what_is_kept_is_not_asked_again(tmp_path):
    first, again = fake(), fake()
    one = kept_fill(first, Store(first.identity, tmp_path), cutoffs_top=[0.5])
    two = kept_fill(again, Store(again.identity, tmp_path), cutoffs_top=[0.5])
    assert len(first.asked) == 2 and again.asked == []
    assert one.values.tobytes() == two.values.tobytes()
    assert one.forms.equals(two.forms) and one.choices == two.choices


def test_only_new_contexts_are_asked(tmp_path):
    model = fake()
    store = Store(model.identity, tmp_path)
    kept_fill(model, store, [Gap("a key", "")])
    fills = kept_fill(model, store, [Gap("", "x"), Gap("the keys", ""), Gap("a key", "")])
    assert model.asked == [Gap("a key", ""), Gap("", ""), Gap("the keys", "")]
    assert np.exp(fills.at("log_probability", ["run"] * 3))[1:] == pytest.approx([0.4, 0.02])


@pytest.mark.parametrize(
    "change",
    [
        {"forms": ("runs", "run")}, {"forms": ("run",)}, {"cutoffs_top": [0.5]}, {"cutoffs_bottom": [0.5]},
        {"start_token": "auto"}, {"mass_arithmetic": "float32"},
    ],
)  # fmt: skip
def test_another_method_is_asked_anew(change, tmp_path):
    model = fake()
    store = Store(model.identity, tmp_path)
    kept_fill(model, store)
    kept_fill(model, store, **change)
    assert len(model.asked) == 4


def test_other_code_is_asked_anew(tmp_path, monkeypatch):
    model = fake()
    store = Store(model.identity, tmp_path)
    kept_fill(model, store)
    monkeypatch.setattr(scoring, "code_version", lambda: "changed")
    kept_fill(model, store)
    assert len(model.asked) == 4


def test_a_run_that_stops_half_way_goes_on_from_there(tmp_path):
    class Stopped(tiny.FakeModel):
        def fill(self, gaps, start_token="never"):
            batches = super().fill(gaps, start_token)
            yield next(batches)
            raise KeyboardInterrupt

    gaps = [Gap(name, "") for name in ("one", "two", "three", "four", "five")]
    probabilities = {gap.left: GOOD["a key"] for gap in gaps}
    model, after = Stopped(VOCABULARY, probabilities), tiny.FakeModel(VOCABULARY, probabilities)
    with pytest.raises(KeyboardInterrupt):
        kept_fill(model, Store(model.identity, tmp_path), gaps)
    fills = kept_fill(after, Store(after.identity, tmp_path), gaps)
    assert after.asked == gaps[:3]  # the first batch, the last two, was kept
    assert np.exp(fills.at("log_probability", ["run"] * 5)) == pytest.approx([0.02] * 5)


def test_refused_contexts_are_not_kept(tmp_path):
    model = fake(endless="too_long")
    store = Store(model.identity, tmp_path)
    for _ in range(2):
        assert kept_fill(model, store, [Gap("endless", "")]).reason(["run"]) == ["too_long"]
    assert len(model.asked) == 2


def test_a_batch_on_any_order_of_rows_lands_where_it_belongs():
    class Shuffled(tiny.FakeModel):
        def fill(self, gaps, start_token="never"):
            logs = torch.tensor([self.probabilities[gap.left] for gap in gaps]).log()
            order = [2, 0, 1]
            yield FilledBatch(order, logs[order], "")

    gaps = [Gap("the keys", ""), Gap("", ""), Gap("a key", "")]
    fills = fill(Shuffled(VOCABULARY, GOOD | {"": UNIFORM}), gaps, ["run", "runs"])
    assert np.exp(fills.at("log_probability", ["runs"] * 3)) == pytest.approx([0.3, 1 / 6, 0.03])


# --- the bench ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_the_loops_of_the_bench_and_ours_give_the_same_numbers(seed):
    """Else a ratio of their times would say nothing."""
    logits, ids = agreement.made_up(contexts=5, vocabulary=400, verbs=30, seed=seed)
    log_probabilities = torch.log_softmax(logits, dim=1)
    found = agreement.as_arrays(agreement.ours(log_probabilities, *agreement.prepared(ids)))
    assert found["EW"].shape == (5, 19)
    assert 0 < np.isnan(found["EW"]).mean() < 1  # some contexts are invalid at some cutoffs
    for loop in (agreement.lemma_loop, agreement.plain_loop, agreement.tuned_loop):
        assert agreement.largest_difference(found, loop(log_probabilities.numpy(), ids)) < 1e-6


def test_the_bench_would_notice_a_difference():
    scores = {"EW": np.array([[0.5, np.nan]])}
    assert agreement.largest_difference(scores, {"EW": np.array([[0.25, np.nan]])}) == 0.25
    with pytest.raises(AssertionError):
        agreement.largest_difference(scores, {"EW": np.array([[0.5, 0.5]])})
