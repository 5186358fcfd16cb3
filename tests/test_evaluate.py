"""Evaluation of pairs: every mode against a brute-force oracle, recorded scores, and every flag of the command."""

import errno
import math
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from typer import Typer
from typer.testing import CliRunner

from lib import evaluate, formats
from lib.errors import LitmusError
from lib.models import Gap, load
from lib.models.recurrent import RecurrentNetwork, save
from lib.paths import DATA, ROOT

WORDS = ["The", "the", "keys", "key", "are", "is", "here", "laugh", "laughs", "to", "cabinet", "cabinets", "author", "authors",
         ".", ","]  # fmt: skip
PAIRS = """pattern	form	form_alt	sent	len_prefix	kind
across	are	is	The keys to the cabinet are here . <eos>	5	a
across	is	are	The key to the cabinets is here . <eos>	5	b
simple	laughs	laugh	The author laughs . <eos>	2	a
simple	laugh	laughs	The authors laugh . <eos>	2	b
simple	are	is	The author , are here . <eos>	3	b
"""
HEADER = "pattern\tform\tform_alt\tsent\tlen_prefix\n"
SEVERAL = """pattern	sent	sent_alt
P	The keys are here .	The keys is here .
P	The author laughs .	The authors is here .
Q	The author laughs .	The author laughs .
"""


@pytest.fixture
def pairs(tmp_path) -> pd.DataFrame:
    return formats.read(written(tmp_path, PAIRS))


def written(folder: Path, text: str = PAIRS, name: str = "pairs.tab") -> Path:
    (folder / name).write_text(text)
    return folder / name


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """An LSTM of random weights, wide enough that errors show, with its words."""
    torch.manual_seed(0)
    network = RecurrentNetwork("LSTM", len(WORDS) + 2, 8, 8, 2)
    for weight in network.parameters():
        torch.nn.init.uniform_(weight, -1, 1)
    return save(tmp_path_factory.mktemp("lstm"), network, ["<unk>", "<eos>", *WORDS])


@dataclass
class Fake(tiny.FakeModel):
    """A model written down in a test, which also spells."""

    def spelling(self, ids):
        return [self.vocabulary[i] for i in ids]


def test_a_judgement_worked_out_by_hand(tmp_path):
    """Right, wrong, tie, unscorable; the likeliest word of each place; accuracy 1/3 with one tie, 3 of 4 scored."""
    text = "pattern\tform\tform_alt\tsent\tlen_prefix\n"
    text += (
        "P\tare\tis\tkeys are\t1\nP\tare\tis\tcabinets are\t1\nQ\tare\tis\tpilots are\t1\nQ\tswim\tis\tkeys swim\t1\n"
    )
    table = formats.read(written(tmp_path, text))
    model = Fake(
        ["are", "is", "here"], {"keys": [0.6, 0.3, 0.1], "cabinets": [0.2, 0.3, 0.5], "pilots": [0.4, 0.4, 0.2]}
    )
    judged = evaluate.evaluate(model, table)
    np.testing.assert_array_equal(judged["correct"], [1, 0, 0, np.nan])
    assert judged["tie"].tolist() == [False, False, True, False]
    assert judged["reason"].tolist() == ["", "", "", "unknown"]
    assert judged["prediction"].tolist() == ["are", "here", "are", "are"]
    assert judged["mode"].unique() == ["target-word"] and judged["start_token"].unique() == ["never"]
    np.testing.assert_allclose(judged["log_probability_good"][:2], [math.log(0.6), math.log(0.2)], rtol=1e-6)
    np.testing.assert_allclose(judged["prediction_log_probability"][1], math.log(0.5), rtol=1e-6)
    assert judged["rank_bad"].tolist()[:2] == [2, 2] and pd.isna(judged["rank_good"][3])
    found = evaluate.summary(judged).set_index("pattern")
    assert found["value"].tolist() == [0.5, 0.0]
    assert found[["n", "scored", "ties"]].to_numpy().tolist() == [[2, 2, 0], [2, 1, 1]]
    assert found["coverage"].tolist() == [1.0, 0.5]
    low, high = found.loc["P", ["low", "high"]]
    assert (round(low, 4), round(high, 4)) == (0.0945, 0.9055)  # Wilson, 1 of 2


def test_masked_target_is_the_masked_models_own_distribution(pairs):
    model = tiny.model("bert-cased")
    judged = evaluate.evaluate(model, pairs)
    for row in judged.iloc[:4].itertuples():
        text = f"{row.left} [MASK] {row.right}"
        encoded = model.tokenizer(text, return_tensors="pt")
        at = encoded["input_ids"][0].tolist().index(model.tokenizer.mask_token_id)
        with torch.inference_mode():
            oracle = model.network(**encoded).logits[0, at].log_softmax(-1)
        for form, found in ((row.good, row.log_probability_good), (row.bad, row.log_probability_bad)):
            [token] = model.tokenizer.encode(form, add_special_tokens=False)
            np.testing.assert_allclose(found, oracle[token], atol=1e-4)
        assert row.prediction == model.spelling([int(oracle.argmax())])[0]
    assert judged["mode"].unique() == ["masked-target"]


def test_a_target_that_opens_its_sentence_is_asked_as_the_file_writes_it(tmp_path, checkpoint):
    """*the* and *The* are two words to a cased model, and the file says which one it means."""
    text = HEADER + "P\tthe\tThe\tthe keys are here .\t0\nP\tThe\tkeys\tThe keys are here .\t0\n"
    table = formats.read(written(tmp_path, text))
    masked = tiny.model("bert-cased")
    encoded = masked.tokenizer("[MASK] keys are here.", return_tensors="pt")
    with torch.inference_mode():
        distribution = masked.network(**encoded).logits[0, 1].log_softmax(-1)
    judged = evaluate.evaluate(masked, table)
    ids = masked.tokenizer.convert_tokens_to_ids(["the", "The"])
    wanted = [float(distribution[token]) for token in ids]
    assert wanted[0] != pytest.approx(wanted[1], abs=1e-3)
    np.testing.assert_allclose(
        judged.loc[0, ["log_probability_good", "log_probability_bad"]].astype(float), wanted, atol=1e-4
    )
    np.testing.assert_allclose(judged.loc[1, "log_probability_good"], wanted[1], atol=1e-4)

    for start_state in ("eos", "carry"):
        recurrent = load(str(checkpoint), start_state=start_state)
        [batch] = (
            list(recurrent.at(["the keys are here ."], [0]))
            if start_state == "carry"
            else list(recurrent.fill([Gap("", "")]))
        )
        if batch.log_probabilities is None:  # nothing comes before the very first word under carry
            assert batch.reason
            continue
        wanted = batch.log_probabilities[0, [2 + WORDS.index("the"), 2 + WORDS.index("The")]].tolist()
        row = evaluate.evaluate(recurrent, table).loc[0, ["log_probability_good", "log_probability_bad"]].astype(float)
        np.testing.assert_allclose(row, wanted, atol=1e-5)


def test_a_form_of_several_pieces_that_opens_its_sentence_has_no_score(tmp_path):
    text = HEADER + "P\tthe\tThe\tthe keys are here .\t0\nP\tare\tis\tthe keys are here .\t2\n"
    judged = evaluate.evaluate(
        tiny.model("bert-cased"), formats.read(written(tmp_path, text)), target_policy="whole_word"
    )
    assert judged["reason"].tolist() == ["opens_text", ""]


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_whole_sentences_are_the_networks_own_loss(pairs, reduction):
    model = tiny.model("gpt2")
    judged = evaluate.evaluate(model, pairs, "whole-sentence", start_token="always", reduction=reduction)
    for row in judged.itertuples():
        for sentence, found in (
            (row.sentence_good, row.log_probability_good),
            (row.sentence_bad, row.log_probability_bad),
        ):
            ids = torch.tensor([[model.tokenizer.bos_token_id, *model.tokenizer.encode(sentence)]])
            with torch.inference_mode():
                loss = model.network(input_ids=ids, labels=ids).loss.item()
            np.testing.assert_allclose(found, -loss * (ids.shape[1] - 1 if reduction == "sum" else 1), atol=1e-3)
    assert "prediction" not in judged and judged["reduction"].unique() == [reduction]
    assert "<eos>" not in "".join(judged["sentence_good"])


def loop(model, texts, places, state=None):
    """Log-probabilities before one word of each text, by a plain loop over the network; ``state`` None: fresh each time."""
    found = []
    network, id_of = model.network, model.id_of
    carried = None
    hidden = None
    for text, place in zip(texts, places, strict=True):
        words = text.split()[: place if state != "carry" else None]
        ids = [id_of.get(word, id_of["<unk>"]) for word in words]
        if state == "eos":
            ids, place = [id_of["<eos>"], *ids], place + 1
        outputs = [] if hidden is None or state != "carry" else [hidden]
        for token in ids:
            logits, carried = network(torch.tensor([[token]]), carried)
            outputs.append(logits[0, 0].log_softmax(-1))
        at = place - 1 if state != "carry" or hidden is None else place
        found.append(outputs[at])
        hidden = outputs[-1]
        carried = carried if state == "carry" else None
    return found


@pytest.mark.parametrize("start_state", ["eos", "zero", "carry"])
@torch.inference_mode()
def test_cases_63_and_64_recurrent_models_start_as_named(pairs, checkpoint, start_state):
    """Equal to a plain loop for each start state; the order of the file changes numbers under carry and nowhere else."""
    model = load(str(checkpoint), start_state=start_state)
    judged = evaluate.evaluate(model, pairs)
    places = [int(place) for place in pairs["len_prefix"]]
    for row, oracle in zip(judged.itertuples(), loop(model, pairs["sent"], places, start_state), strict=True):
        expected = [oracle[model.id_of[form]].item() for form in (row.good, row.bad)]
        np.testing.assert_allclose([row.log_probability_good, row.log_probability_bad], expected, atol=1e-5)
        assert row.prediction == model.vocabulary[int(oracle.argmax())]
    assert judged["start_state"].unique() == [start_state]
    backwards = evaluate.evaluate(model, pairs.iloc[::-1]).iloc[::-1]
    same = np.allclose(judged["log_probability_good"], backwards["log_probability_good"], atol=1e-6)
    assert same == (start_state != "carry")


def test_case_64_a_first_word_has_a_score_where_something_comes_before_it(tmp_path, checkpoint):
    text = "pattern\tform\tform_alt\tsent\tlen_prefix\nP\tkeys\tkey\tkeys are here .\t0\n"
    table = formats.read(written(tmp_path, text))
    model = load(str(checkpoint), start_state="eos")
    [row] = evaluate.evaluate(model, table).itertuples()
    with torch.inference_mode():
        [oracle] = loop(model, table["sent"], [0], "eos")
    np.testing.assert_allclose(row.log_probability_good, oracle[model.id_of["keys"]], atol=1e-5)
    assert evaluate.evaluate(model, table, "whole-sentence")["scorable"].all()
    zero = evaluate.evaluate(load(str(checkpoint), start_state="zero"), table)
    assert zero["reason"].tolist() == ["empty_context"] and zero["correct"].isna().all()


def test_case_65_a_form_that_the_vocabulary_lacks_is_told(tmp_path, checkpoint):
    table = formats.read(written(tmp_path, PAIRS.replace("laughs\tlaugh\t", "laughs\tguffaw\t")))
    for start_state in ("eos", "carry"):
        judged = evaluate.evaluate(load(str(checkpoint), start_state=start_state), table)
        assert judged["reason"].tolist() == ["", "", "unknown", "", ""]
        assert np.isnan(judged["correct"][2]) and evaluate.summary(judged)["coverage"].tolist() == [1.0, 2 / 3]


def test_pairs_without_a_target_keep_their_reason(tmp_path):
    table = formats.read(written(tmp_path, SEVERAL))
    model = tiny.model("gpt2")
    judged = evaluate.evaluate(model, table, "target-word")
    assert judged["reason"].tolist()[1:] == ["several_words", "identical"]
    assert judged["scorable"].tolist() == [True, False, False]
    sentences = evaluate.evaluate(model, table)
    assert sentences["mode"].unique() == ["whole-sentence"]
    assert sentences["reason"].tolist() == ["", "", "identical"]
    none = evaluate.evaluate(model, table.iloc[1:], "target-word")
    assert not none["scorable"].any() and np.isnan(evaluate.summary(none)["value"]).all()


def test_modes_that_make_no_sense_are_refused_in_words(pairs, tmp_path):
    several = formats.read(written(tmp_path, SEVERAL))
    assert evaluate.mode_for("masked", "", pairs) == "masked-target"
    assert evaluate.mode_for("recurrent", "carry", pairs) == "target-word"
    assert evaluate.mode_for("causal", "", several) == "whole-sentence"
    for family, state, mode, told in (
        ("masked", "", "target-word", "would see the target word"),
        ("causal", "", "masked-target", "nothing to mask"),
        ("recurrent", "eos", "masked-target", "nothing to mask"),
        ("recurrent", "carry", "whole-sentence", "would not start alike"),
        ("causal", "", "target-words", "did you mean target-word"),
    ):
        with pytest.raises(LitmusError, match=told):
            evaluate.mode_for(family, state, pairs, mode)


@pytest.mark.parametrize(
    "column, original, generated",
    [("hidden650_batch128_dropout0.2_lr20.0", (33, 41), (265, 369)), ("freq", (27, 41), (157, 369))],
)
def test_recorded_scores_of_the_published_lstm_and_the_frequency_baseline(datasets, column, original, generated):
    """33/41 and 265/369 for the LSTM; .659 and .425 for the more frequent form."""
    table = formats.read(datasets / "colorless-green" / "evaluation_output" / "English" / "best_model.tab")
    found = evaluate.summary(evaluate.recorded(table, column), ["type"]).set_index("type")
    for kind, (right, n) in (("original", original), ("generated", generated)):
        assert found.loc[kind, "value"] == right / n and found.loc[kind, "n"] == n
    assert found["ties"].tolist() == [0, 0]
    if column == "freq":
        assert [round(value, 3) for value in found["value"]] == [0.425, 0.659]


def test_the_committed_facts_are_those_of_the_published_file(datasets):
    table = formats.read(evaluate.long_distance_file(published=datasets))
    facts = pd.read_csv(DATA / "reference" / "gulordava2018.csv")
    assert len(facts) == 24 and not facts.duplicated(["model", "type", "pattern", "attractors"]).any()
    columns = {"best LSTM": "hidden650_batch128_dropout0.2_lr20.0", "frequency": "freq"}
    for row in facts.itertuples():
        judged = evaluate.recorded(table, columns[row.model]).query("type == @row.type")
        judged = judged if row.pattern == "all" else judged.query("pattern == @row.pattern")
        judged = judged if row.attractors == "all" else judged.query("n_attr == @row.attractors")
        assert (row.right, row.pairs) == (judged["correct"].sum(), len(judged)), row
        assert row.value == round(row.right / row.pairs, 4)


def test_our_own_set_is_used_where_no_published_one_is(tmp_path):
    own = evaluate.long_distance_file(published=tmp_path)
    assert own == evaluate.long_distance_file() and evaluate.long_distance_file("mine.tab") == Path("mine.tab")
    table = formats.read(own)
    assert (table["type"] == "original").sum() >= 40
    assert (table.groupby(["pattern", "constr_id"])["type"].value_counts().unstack()["generated"] == 9).all()


def test_kinds_and_an_example_that_the_model_can_score(tmp_path):
    head = "pattern\tconstr_id\tsent_id\tform\tclass\ttype\tn_attr\tlen_prefix\tsent\n"
    rows = [
        ("0", "0", "original", "0", "keys"),
        ("0", "1", "generated", "0", "pilots"),
        ("1", "0", "original", "1", "keys"),
        ("1", "1", "generated", "1", "the pilots"),
        ("1", "2", "generated", "1", "pilots"),
        ("2", "0", "original", "2", "keys"),
    ]
    text = head
    for construction, sentence, kind, attractors, subject in rows:
        for form, right in (("are", "correct"), ("is" if construction != "2" else "zz", "wrong")):
            cells = [
                "P",
                construction,
                sentence,
                form,
                right,
                kind,
                attractors,
                str(len(subject.split())),
                f"{subject} are",
            ]
            text += "\t".join(cells) + "\n"
    pairs = evaluate.read_long_distance(written(tmp_path, text))
    assert pairs["kind"].tolist() == ["sense", "nonsense", "sense", "nonsense", "nonsense", "sense"]
    assert pairs["sentence"].tolist() == ["P:0", "P:0", "P:1", "P:1", "P:1", "P:2"]
    model = Fake(["are", "is"], {})
    chosen = evaluate.example(model, pairs)
    assert chosen[["kind", "sent_id", "sentence"]].to_numpy().tolist() == [
        ["sense", "0", "P:1"],
        ["nonsense", "1", "P:1"],
    ]
    assert evaluate.example(Fake(["zz"], {}), pairs).empty
    plain = evaluate.read_long_distance(written(tmp_path, PAIRS, "plain.tab"))
    assert set(plain["kind"]) == {"given"} and plain["sentence"].is_unique
    assert len(evaluate.example(Fake(["are", "is"], {}), plain)) == 1


def test_the_commands_help_does_not_wait_for_heavy_imports():
    code = "import sys, lib.evaluate; assert not {'torch', 'transformers', 'altair', 'scipy'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_a_column_without_numbers_scores_nothing_and_says_why(pairs):
    judged = evaluate.recorded(pairs, "kind")
    assert not judged["scorable"].any() and set(judged["reason"]) == {"no_number"}
    with pytest.raises(LitmusError, match=r"no column 'kinds' in pairs.tab \(did you mean kind\?\)"):
        evaluate.recorded(pairs, "kinds")


# --- The command ------------------------------------------------------------------------------------------------------


def command(*words):
    app = Typer(add_completion=False)
    app.command()(evaluate.main)
    return CliRunner().invoke(app, [str(word) for word in words])


def rows(result) -> pd.DataFrame:
    assert result.exit_code == 0, result.stderr
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert len({len(line) for line in lines}) == 1
    return pd.DataFrame(lines[1:], columns=lines[0])


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LITMUS_CACHE", str(tmp_path / "cache"))


def test_rows_go_to_the_output_and_the_summary_to_the_error_stream(tmp_path):
    result = command("--data", written(tmp_path), "--model", tiny.folder("bert-cased"))
    table = rows(result)
    assert table.columns[:6].tolist() == [
        "correct", "pattern", "good", "bad", "log_probability_good", "log_probability_bad",
    ]  # fmt: skip
    assert table["pattern"].tolist() == ["across"] * 2 + ["simple"] * 3 and set(table["correct"]) <= {"0", "1", ""}
    assert (
        "masked-target" in result.stderr and "accuracy" in result.stderr and "pattern" not in result.stderr.split()[0]
    )
    told = [line.split() for line in result.stderr.splitlines()]
    assert [line[1] for line in told if line[:1] == ["all"]] == ["5"]


def test_a_column_named_twice_in_by_counts_once(tmp_path):
    file, model = written(tmp_path), tiny.folder("bert-cased")
    once, twice = (command("--data", file, "--model", model, "--by", by) for by in ("pattern", "pattern, pattern"))
    assert twice.exit_code == 0 and twice.stdout == once.stdout
    told = once.stderr[once.stderr.index("accuracy") :]
    assert twice.stderr.endswith(told)


def test_a_summary_without_a_scored_pair_is_a_table_and_no_warning(capsys, recwarn, tmp_path):
    table = formats.read(written(tmp_path, SEVERAL)).iloc[1:]
    evaluate._tell(evaluate.evaluate(tiny.model("gpt2"), table, "target-word"), ["pattern"], "title")
    told = capsys.readouterr().err
    assert "nan" not in told.lower() and [line.split() for line in told.splitlines() if " all " in f" {line} "] == [
        ["all", "2", "0", "0", "0.0"]
    ]
    assert not [
        warning for warning in recwarn if "fillna" in str(warning.message) or "fill value" in str(warning.message)
    ]


@pytest.mark.parametrize(
    "flag",
    [
        ("--mode", "whole-sentence"),
        ("--start-token", "always"),
        ("--limit", "1"),
        ("--mode", "whole-sentence", "--per-word"),
        ("--dtype", "bfloat16"),
    ],
)
def test_case_91_every_flag_changes_the_output(tmp_path, flag):
    base = ["--data", written(tmp_path), "--model", tiny.folder("gpt2")]
    plain, changed = command(*base), command(*base, *flag)
    assert rows(plain).to_csv() != rows(changed).to_csv()


@pytest.mark.parametrize("flag", [("--reduction", "mean"), ("--per-word",), ("--start-token", "never")])
def test_case_91_flags_of_whole_sentences(tmp_path, flag):
    base = ["--data", written(tmp_path), "--model", tiny.folder("gpt2"), "--mode", "whole-sentence"]
    plain, changed = rows(command(*base)), rows(command(*base, *flag))
    values = [table.filter(like="log_probability").astype(float) for table in (plain, changed)]
    assert values[0].shape != values[1].shape or not np.allclose(*values)


def test_case_91_masked_method(tmp_path):
    text = (
        PAIRS.replace(" here", " young")
        .replace("author laughs", "souvenir laughs")
        .replace("authors laugh", "souvenir laugh")
    )
    base = ["--data", written(tmp_path, text), "--model", tiny.folder("bert-cased"), "--mode", "whole-sentence"]
    plain, changed = rows(command(*base)), rows(command(*base, "--masked-method", "original"))
    assert plain["log_probability_good"][2] != changed["log_probability_good"][2]  # souvenir: several pieces
    assert plain["log_probability_good"][0] == changed["log_probability_good"][0]


def test_case_91_target_policy(tmp_path):
    """Forms of several pieces are unscorable under single_token, and scored by the chain rule under sum_l2r."""
    text = PAIRS.replace("laughs\tlaugh\t", "souvenirs\tsouvenir\t")
    base = ["--data", written(tmp_path, text), "--model", tiny.folder("gpt2")]
    plain, changed = rows(command(*base)), rows(command(*base, "--target-policy", "sum_l2r"))
    assert plain["reason"][2] == "several_pieces" and changed["reason"][2] == "" and changed["flag"][2] != ""
    model = tiny.model("gpt2")
    left, form = (model.tokenizer.encode(text) for text in ("The author", " souvenirs"))
    with torch.inference_mode():
        steps = model.network(torch.tensor([[*left, *form]])).logits[0].log_softmax(-1)
    oracle = sum(steps[len(left) + i - 1, token].item() for i, token in enumerate(form))
    np.testing.assert_allclose(float(changed["log_probability_good"][2]), oracle, rtol=1e-4)
    assert changed["line"].tolist() == plain["line"].tolist()


def test_case_91_vocabulary_and_start_state(tmp_path, checkpoint):
    """Other words in the rows of the same weights are other predictions."""
    base = ["--data", written(tmp_path), "--model", checkpoint]
    plain = rows(command(*base))
    words = ["<unk>", "<eos>", *WORDS[::-1]]
    (tmp_path / "other.txt").write_text("\n".join(words) + "\n")
    other = rows(command(*base, "--vocab", tmp_path / "other.txt"))
    assert plain["log_probability_good"].tolist() != other["log_probability_good"].tolist()
    for start_state in ("zero", "carry"):
        changed = rows(command(*base, "--start-state", start_state))
        assert changed["start_state"].tolist() == [start_state] * 5
        assert plain["log_probability_good"].tolist() != changed["log_probability_good"].tolist()


def test_case_91_seed_revision_device_out_by_and_column(tmp_path):
    text = PAIRS.splitlines()[0] + "\n" + "".join(
        f"P\tare\tis\tThe keys{' here' * n} are .\t{2 + n}\t{n}\n" for n in range(8)
    )  # fmt: skip
    base = ["--data", written(tmp_path, text), "--model", tiny.folder("gpt2")]
    drawn = [tuple(rows(command(*base, "--limit", "3", "--seed", seed))["item"]) for seed in (0, 0, 1, 2)]
    assert drawn[0] == drawn[1] and len(set(drawn)) > 1 and {len(items) for items in drawn} == {3}
    assert "error: The device 'abacus' cannot be used here" in command(*base, "--device", "abacus").stderr
    assert "float32 on cpu" in command(*base, "--device", "cpu").stderr
    shutil.copytree(tiny.folder("gpt2"), tmp_path / "series" / "step7")
    assert "(step7)" in command(*base[:-1], tmp_path / "series", "--revision", "step7").stderr
    done = command(*base, "--out", tmp_path / "rows.tsv")
    assert done.stdout == "" and (tmp_path / "rows.tsv").read_text() == command(*base).stdout
    by = command("--data", tmp_path / "pairs.tab", "--column", "kind", "--by", "kind,pattern").stderr
    assert "kind pattern" in by and "accuracy" in by and len(by.strip().splitlines()) == 2 + 8 + 1
    judged = rows(command("--data", tmp_path / "pairs.tab", "--column", "kind"))
    assert judged["mode"].unique() == ["column kind"]


@pytest.mark.parametrize(
    "flags, told",
    [
        (["--model", "gpt2-tiny", "--mode", "masked-target"], "nothing to mask"),
        (["--model", "gpt2-tiny", "--start-state", "zero"], "--start-state has no meaning for a causal model"),
        (["--model", "gpt2-tiny", "--vocab", "x"], "--vocab has no meaning"),
        (["--model", "gpt2-tiny", "--per-word"], "--per-word has no meaning"),
        (["--model", "gpt2-tiny", "--reduction", "mean"], "--reduction has no meaning"),
        (["--model", "gpt2-tiny", "--mode", "whole-sentence", "--reduction", "max"], "'max' is no reduction"),
        (["--model", "gpt2-tiny", "--masked-method", "original"], "--masked-method has no meaning"),
        (["--model", "gpt2-tiny", "--target-policy", "any"], "'any' is no target policy"),
        (["--model", "gpt2-tiny", "--start-token", "sometimes"], "'sometimes' is no start-token policy"),
        (["--model", "gpt2-tiny", "--by", "patern"], "no column 'patern' (did you mean pattern?)"),
        (["--model", "gpt2-tiny", "--limit", "-1"], "A limit of -1"),
        (["--model", "gpt2-tiny", "--out", "/nonexistent/rows"], "/nonexistent/rows cannot be written"),
        (["--column", "freq"], "no column 'freq'"),
        (["--column", "len_prefix", "--mode", "target-word"], "--mode has no meaning for the numbers of a column"),
        (["--column", "len_prefix", "--dtype", "float16"], "--dtype has no meaning"),
        (["--column", "len_prefix", "--per-word"], "--per-word has no meaning"),
        ([], "Name what judges the pairs"),
    ],
)
def test_mistakes_end_in_one_sentence(flags, told, tmp_path):
    words = [tiny.folder("gpt2") if word == "gpt2-tiny" else word for word in flags]
    result = command("--data", written(tmp_path), *words)
    assert result.exit_code == 2 and result.stdout == ""
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ") and told in last


@pytest.mark.parametrize(
    "out, why",
    [
        ("nowhere/rows.tsv", "No such file or directory"),
        ("pairs.tab/rows.tsv", "Not a directory"),
        (".", "Is a directory"),
        ("x" * 300, "File name too long"),
        ("/proc/litmus", "No such file or directory"),
    ],
)
def test_rows_that_cannot_be_written_are_told_before_the_model_is_loaded(out, why, tmp_path, monkeypatch):
    def load(*_, **__):
        raise LitmusError("the model was loaded")

    monkeypatch.setattr("lib.models.load", load)
    base = ["--data", written(tmp_path), "--model", "gpt2"]
    result = command(*base, "--out", tmp_path / out)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert result.stderr.endswith(f" cannot be written ({why}); name another file.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tab"]
    assert command(*base, "--out", tmp_path / "rows.tsv").stderr == "error: the model was loaded\n"


def test_rows_of_before_stay_where_the_model_cannot_be_loaded(tmp_path):
    (tmp_path / "rows.tsv").write_text("earlier")
    result = command("--data", written(tmp_path), "--model", tmp_path / "nothing", "--out", tmp_path / "rows.tsv")
    assert result.exit_code == 2
    assert (tmp_path / "rows.tsv").read_text() == "earlier"


NUMBERS = HEADER.strip() + "\tscore\tscore_alt\n" + "P\tare\tis\tThe keys are\t2\t2\t1\n"


def test_the_file_of_pairs_is_never_written_over(tmp_path):
    file = written(tmp_path, NUMBERS)
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "hard").hardlink_to(file)
    for out in (file, tmp_path / "link", tmp_path / "hard", tmp_path / "." / "pairs.tab"):
        result = command("--data", file, "--column", "score", "--out", out)
        assert result.exit_code == 2 and "is a file that this command reads; name another one." in result.stderr
    assert file.read_text() == NUMBERS


def test_rows_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    base = ["--data", written(tmp_path, NUMBERS), "--column", "score", "--out", tmp_path / "rows.tsv"]
    (tmp_path / "rows.tsv").write_text("earlier")
    write = Path.write_text

    def full(path, text, **options):
        write(path, text[:5], **options)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        result = command(*base)
    assert result.exit_code == 2 and "cannot be written (No space left on device)" in result.stderr
    assert (tmp_path / "rows.tsv").read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pairs.tab", "rows.tsv"]
    assert command(*base).exit_code == 0 and (tmp_path / "rows.tsv").read_text().startswith("correct\t")


def test_rows_go_through_a_link_and_into_a_device(tmp_path):
    base = ["--data", written(tmp_path, NUMBERS), "--column", "score", "--out"]
    (tmp_path / "link").symlink_to(tmp_path / "rows.tsv")
    assert command(*base, tmp_path / "link").exit_code == 0
    assert (tmp_path / "link").is_symlink() and (tmp_path / "rows.tsv").read_text().startswith("correct\t")
    assert command(*base, "/dev/null").exit_code == 0 and Path("/dev/null").is_char_device()


def test_one_file_of_pairs_and_each_pair_of_it_once(tmp_path):
    file = written(tmp_path, NUMBERS)
    for words, said in ((["--data", file, "--data", file], "is given 2 times"), (["--data", ""], "is empty")):
        result = command(*words, "--column", "score")
        assert result.exit_code == 2 and f"error: --data {said}, and it takes one file of pairs;" in result.stderr
    twice = pd.concat([formats.read(file), formats.read(file)], ignore_index=True)
    with pytest.raises(LitmusError, match=r"pairs.tab, line 2 is there twice: a file is named twice"):
        evaluate.sampled(twice, 0, 0)


def test_pairs_that_repeat_others_all_count_and_are_told(tmp_path):
    result = command("--data", written(tmp_path, NUMBERS + NUMBERS.splitlines()[1] + "\n"), "--column", "score")
    assert len(rows(result)) == 2
    assert result.stderr.endswith("repeated: 1 pairs that stand in the file before; each counts\n")
    assert "repeated" not in command("--data", written(tmp_path, NUMBERS), "--column", "score").stderr


@pytest.mark.parametrize("name", ["mode", "correct", "tie", "dtype", "log_probability_good"])
@pytest.mark.parametrize("mode", ["target-word", "whole-sentence"])
def test_a_column_of_the_file_is_never_replaced(name, mode, tmp_path):
    file = written(tmp_path, PAIRS.replace("kind", name))
    refused = command("--data", file, "--model", tiny.folder("gpt2"), "--mode", mode, "--by", name)
    assert refused.exit_code == 2
    assert refused.stderr == (
        f"error: The column '{name}' of pairs.tab has the name of one that a judgement adds; rename it.\n"
    )
    of_numbers = command("--data", file, "--column", "len_prefix")
    assert (of_numbers.exit_code == 2) == (name in evaluate.OF_NUMBERS)


def test_every_column_that_a_judgement_adds_is_known(pairs):
    causal, masked = (load(Path(tiny.folder(name))) for name in ("gpt2", "bert-cased"))
    judged = [
        evaluate.evaluate(causal, pairs, "target-word", target_policy="sum_l2r"),
        evaluate.evaluate(causal, pairs, "whole-sentence"),
        evaluate.evaluate(masked, pairs, "masked-target"),
        evaluate.evaluate(masked, pairs, "whole-sentence"),
    ]
    assert {column for table in judged for column in table if column not in pairs} == evaluate.JUDGED
    assert set(evaluate.recorded(pairs, "len_prefix")) - set(pairs) == evaluate.OF_NUMBERS


def test_a_place_with_another_word_than_the_forms_is_told(tmp_path):
    """Off by one, a form goes to where another word stood; published files do so on purpose."""
    off = PAIRS.replace("here . <eos>\t5\ta", "here . <eos>\t4\ta")
    told = command("--data", written(tmp_path, off), "--column", "len_prefix").stderr
    assert "replaced: 1 pairs hold another word than their forms at len_prefix (first: line 2, 'cabinet')\n" in told
    assert "replaced" not in command("--data", written(tmp_path), "--column", "len_prefix").stderr


def test_the_summary_holds_nothing_that_a_terminal_obeys(tmp_path):
    file = written(tmp_path, NUMBERS.replace("P\t", "P\x1b[31m\t"), "pairs\x1b[2J.tab")
    result = command("--data", file, "--column", "score")
    assert result.exit_code == 0 and "\x1b" not in result.stdout + result.stderr
    assert "P\\x1b[31m" in result.stderr and "pairs\\x1b[2J.tab" in result.stderr


def test_an_ascii_terminal_gets_every_row(tmp_path):
    file = written(tmp_path, NUMBERS.replace("P\t", "na\u00efve\t"))
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    words = [sys.executable, "-m", "lib.evaluate", "--data", str(file), "--column", "score"]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "na\\xefve" in done.stdout, done.stderr
