"""Published values and ours: what can be found here is found, what cannot is named with its reason."""

import csv
import shutil

import pandas as pd
import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from lib import hub, published, replicate, run
from lib.cloze.items import read_roles
from lib.errors import LitmusError
from lib.paths import DATA, NOTEBOOKS
from lib.replicate import Compared, Value

AWAY = "huggingface.co does not answer: no such host"
VALUE = Value("newman2021", "gpt2-xl", "TSE, Simple", 0.86, 0.01, "20_agreement", {"metric": "TSE"})


def called(*words: str) -> Result:
    app = typer.Typer()
    app.command()(replicate.main)
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def no_hub(monkeypatch):
    """No network; returns how often it was asked for a model."""
    asked = []
    monkeypatch.setattr(hub, "unreachable", lambda: AWAY)
    monkeypatch.setattr(hub, "kept", lambda source, revision="main": bool(asked.append(source)))
    return asked


# ---- what was published


def test_every_published_value_is_there_once():
    found = replicate.values()
    rows = sum(
        len(pd.read_csv(DATA / "reference" / f"{paper}.csv", keep_default_na=False)) for paper in replicate.PAPERS
    )
    assert len(found) == rows == len({(value.paper, value.model, value.what) for value in found})
    for value in found:
        assert 0 <= value.value <= 1 and value.unit in (0.1, 0.01, 0.001, 0.0001)
        assert bool(value.row) == bool(value.notebook) or value.paper == "gulordava2018"
        assert not value.notebook or (NOTEBOOKS / f"{value.notebook}.py").is_file()
    with pytest.raises(LitmusError, match=r"no paper newman2020 \(did you mean newman2021\?\)"):
        replicate.values(["newman2020"])


def test_where_the_values_of_a_paper_are_found():
    found = {(value.model, value.what): value for value in replicate.values()}
    mw = found["roberta-large", "MW, VP coordination"]
    assert (mw.value, mw.unit, mw.notebook) == (0.93, 0.01, "21_systematic_or_likely")
    assert mw.row == {"metric": "MW", "condition": "VP coordination", "side": "top", "cutoff": 1.0}
    assert mw.note == replicate.LONGER_LIST
    unnatural = found["bert-base-uncased", "true preferred in negative, NEG-136-NAT less natural"]
    assert unnatural.row == {"metric": "sensitivity", "condition": "natural, unlicensed", "polarity": "negative"}
    assert found["bert-base", "accuracy at 5, ROLE-1500"].row == {"metric": "accuracy@5", "condition": "ROLE-1500"}
    assert replicate.model_of(found["bert-base", "accuracy at 5, ROLE-1500"], {}) == "bert-base-uncased"
    assert replicate.model_of(found["gpt2", "adjunct_island"], {}) == "openai-community/gpt2-large"
    assert replicate.model_of(found["gpt2", "adjunct_island"], {"gpt2": "/mine"}) == "/mine"


# ---- what is said of a difference


@pytest.mark.parametrize(
    "ours, verdict",
    [(0.864, "equal"), (0.8651, "near"), (0.84, "near"), (0.839, "differs"), (None, "not compared")],
)
def test_a_verdict_goes_by_printed_decimals_then_by_tolerance(ours, verdict):
    assert Compared(VALUE, ours, 1.0, "", 0.02).verdict == verdict


def test_the_exit_code_is_of_what_was_compared():
    equal, differs = Compared(VALUE, 0.86, 1.0, ""), Compared(VALUE, 0.5, 1.0, "", 0.02)
    missing, failed = Compared(VALUE, None, None, "no network"), Compared(VALUE, None, None, "20 failed: see x")
    assert replicate.exit_code([equal, missing], complete=False) == 0
    assert replicate.exit_code([equal, missing], complete=True) == 1
    for compared in ([equal, differs], [equal, failed], [missing]):
        assert replicate.exit_code(compared, complete=False) == 1


def test_lines_say_value_ours_difference_and_reasons():
    compared = [Compared(VALUE, 0.851, 0.97, "", 0.02), Compared(VALUE._replace(note="a longer list"), 0.5, 1.0, "")]
    compared += [Compared(VALUE._replace(model=name), None, None, "no network") for name in ("a", "b", "b")]
    assert replicate.told_lines(compared) == [
        "newman2021  gpt2-xl  TSE, Simple  published 0.86    ours 0.8510  -0.0090  near  coverage 97%",
        "newman2021  gpt2-xl  TSE, Simple  published 0.86    ours 0.5000  -0.3600  differs  (a longer list)",
        "not compared: newman2021: a (1), b (2): no network",
        "5 published values: 0 equal, 1 near, 1 differs, 3 not compared",
    ]


# ---- here, without a hub


def test_recorded_scores_come_out_as_printed_and_models_are_named_with_the_reason(
    datasets, no_hub, tmp_path, monkeypatch
):
    monkeypatch.setenv("LITMUS_DATASETS", str(datasets))
    said = called("--reports", str(tmp_path))
    assert said.exit_code == 0, said.stderr
    with (tmp_path / "values.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    compared = [row for row in rows if row["verdict"] != "not compared"]
    assert len(compared) == 24 and {row["paper"] for row in compared} == {"gulordava2018"}
    assert {row["verdict"] for row in compared} == {"equal"}
    assert all(row["why"] for row in rows if row["verdict"] == "not compared")
    assert f"not on this machine, and {AWAY}" in said.stdout
    assert "not compared: warstadt2020: transformer-xl (67): transformers no longer holds it" in said.stdout
    assert "24 equal, 0 near, 0 differs" in said.stdout.splitlines()[-2]
    assert called("--reports", str(tmp_path), "--complete", "--papers", "gulordava2018").exit_code == 0


def test_a_recorded_score_that_differs_is_told(datasets, tmp_path, monkeypatch):
    monkeypatch.setenv("LITMUS_DATASETS", str(datasets))
    real = replicate.values
    monkeypatch.setattr(replicate, "values", lambda papers: [v._replace(value=v.value - 0.001) for v in real(papers)])
    said = called("--papers", "gulordava2018", "--reports", str(tmp_path))
    assert said.exit_code == 1
    assert "24 differs" in said.stdout and said.stderr.startswith("error: not everything agrees")


def test_missing_data_is_said_in_words(datasets, no_hub, tmp_path, monkeypatch):
    monkeypatch.setenv("LITMUS_DATASETS", str(datasets))
    few = tmp_path / "sets" / "lm-diagnostics"
    shutil.copytree(datasets / "lm-diagnostics", few)
    (few / "ROLE-88" / "ROLE-88.tsv").write_text("another text\n")
    said = called("--papers", "ettinger2020", "--datasets", str(tmp_path / "sets"), "--reports", str(tmp_path))
    assert said.exit_code == 1
    assert (
        "1 of 8 files of the set lm-diagnostics are not in" in said.stdout and "as published: make data" in said.stdout
    )
    monkeypatch.delenv("LITMUS_DATASETS")
    monkeypatch.setattr(published, "PUBLISHED", tmp_path / "nothing")
    said = called("--papers", "gulordava2018 ettinger2020", "--reports", str(tmp_path))
    assert said.exit_code == 1
    assert "there is no published data: make data, or name its folder by LITMUS_DATASETS" in said.stdout
    assert "0 equal, 0 near, 0 differs, 40 not compared" in said.stdout


@pytest.mark.parametrize(
    "words, told",
    [
        (
            ["--models", "gpt3-xl"],
            "no value of these papers is of the model gpt3-xl (did you mean gpt2-xl?); there are: ",
        ),
        (["--given", "gpt2-xl"], "--given takes MODEL=NAME, and gpt2-xl is not of that form."),
        (["--given", "gpt4=mine"], "no value of these papers is of the model gpt4 (did you mean gpt2?)"),
        (["--papers", "nobody"], "there is no paper nobody; there are: newman2021, "),
    ],
)
def test_wrong_usage_is_one_sentence(words, told):
    said = called(*words)
    assert said.exit_code == 2
    assert said.stderr.startswith(f"error: {told}") and said.stderr.count("\n") == 1


def test_what_can_be_had(no_hub, tmp_path):
    assert replicate.unobtainable("distilbert-mlm") == replicate.unobtainable(str(tmp_path)) == ""
    assert replicate.unobtainable("gpt2") == f"not on this machine, and {AWAY}"
    assert replicate.unobtainable("./no/folder/here") == "there is no folder ./no/folder/here"
    assert no_hub == ["openai-community/gpt2"]


# ---- a model through a real notebook


def test_a_model_runs_through_the_notebook_and_its_values_are_those_of_the_paper(datasets, tmp_path, monkeypatch):
    """Scores made so that 38 of the 44 role pairs are right and an expected word is among the five of 33 of 88 sentences:
    .864 and .375, what the paper printed of the large model."""
    monkeypatch.setenv("LITMUS_DATASETS", str(datasets))
    roles = read_roles(datasets / "lm-diagnostics" / "ROLE-88" / "ROLE-88.tsv")
    pairs = list(dict.fromkeys(roles["item"]))
    scores, predictions = [], []
    for at, row in enumerate(roles.itertuples()):
        better = (row.condition == "a") == (pairs.index(row.item) < 38)
        scores.append([row.context, row.candidate, -1.0 if better else -2.0])
        words = [row.expected[0] if at < 33 else "zebra", "yak", "wombat", "viper", "urchin"]
        predictions += [[row.context, rank, word, -rank] for rank, word in enumerate(words, start=1)]
    folder = tmp_path / "recorded"
    folder.mkdir()
    pd.DataFrame(scores, columns=["context", "candidate", "log_probability"]).to_csv(folder / "scores.csv", index=False)
    pd.DataFrame(predictions, columns=["context", "rank", "piece", "log_probability"]).to_csv(
        folder / "predictions.csv", index=False
    )
    root = tmp_path / "root"
    (root / "notebooks").mkdir(parents=True)
    shutil.copy(NOTEBOOKS / "31_roles.py", root / "notebooks")
    (root / "data").mkdir()
    shutil.copy(DATA / "models.csv", root / "data")
    wanted = [value for value in replicate.values(["ettinger2020"]) if value.notebook == "31_roles"]
    wanted = [value for value in wanted if value.model == "bert-large-uncased"]
    given = {"bert-large-uncased": str(folder)}
    found = replicate.from_models(wanted, given, root / "reports", root=root)
    assert [(row.published.value, row.verdict) for row in found] == [(0.864, "equal"), (0.375, "equal")], found
    assert [row.ours for row in found] == [38 / 44, 33 / 88]
    out = run.page(root / "reports", str(folder), "31_roles")
    assert out.with_suffix(".html").exists()
    broken = replicate.from_models(wanted, {"bert-large-uncased": str(root)}, root / "reports", root=root)
    assert [row.why.split(":")[0] for row in broken] == ["31_roles failed"] * 2
