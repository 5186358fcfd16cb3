"""What a notebook leaves behind: whole or not at all, the same in every format, and with its origin."""

import csv
import datetime
import hashlib
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import results
from lib.errors import LitmusError
from lib.paths import ROOT
from lib.run import notebook_path, page, parameters_of
from lib.store import Store

ITEMS = pd.DataFrame({
    "item": ["a-1", "a-2", "b-1"],
    "context": ["The keys", "Łódź, \"quoted\"\nand broken", "NA"],
    "log_probability": [-1.25, np.nan, -0.1],
    "rank": [1, 2, 3],
    "match": [True, None, False],
}, index=[7, 7, 9])  # fmt: skip
PROVENANCE = {"parameters": {"model": "org/tiny", "revision": "main", "limit": 3}, "family": "causal", "seconds": 1.5}


def write(out: Path | str, items: pd.DataFrame = ITEMS, **changed) -> Path | None:
    given = {
        "notebook": "20_agreement", "title": "Agreement", "items": items,
        "summary": pd.DataFrame({"condition": ["Simple"], "value": [np.float64(0.5)], "low": [np.nan], "n": [np.int64(3)]}),
        "headline": {"metric": "TSE", "value": np.float32(0.5), "low": np.nan, "high": float("inf"), "n": np.int64(3)},
        "data": {"name": "our own items", "sample": "all", "sha256": {}}, "choices": {"start_token": "never"},
        "sources": ["newman2021"], "provenance": PROVENANCE,
    }  # fmt: skip
    return results.write(str(out), **(given | changed))


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


# ---- writing and reading


def test_what_is_written_is_read_again(tmp_path):
    path = write(tmp_path / "org--tiny" / "20_agreement")
    assert path == tmp_path / "org--tiny" / "20_agreement.json"
    assert listing(path.parent) == ["20_agreement.csv", "20_agreement.json", "20_agreement.parquet"]
    found = results.read(path)
    assert found["model"] == "org/tiny" and found["revision"] == "main" and found["family"] == "causal"
    assert found["summary"] == [{"condition": "Simple", "value": 0.5, "low": None, "n": 3}]
    assert found["headline"] == {"metric": "TSE", "value": 0.5, "low": None, "high": None, "n": 3}
    assert found["provenance"] == PROVENANCE and found["choices"] == {"start_token": "never"}
    table = pd.read_parquet(path.with_suffix(".parquet"))
    assert list(table) == ["model", "revision", "diagnostic", *ITEMS]
    assert set(table["diagnostic"]) == {"20_agreement"} and set(table["model"]) == {"org/tiny"}
    assert table["context"].tolist() == ITEMS["context"].tolist()
    np.testing.assert_array_equal(table["log_probability"], ITEMS["log_probability"])
    assert table["match"].tolist() == [True, None, False]


def test_the_csv_has_what_the_parquet_has(tmp_path):
    path = write(tmp_path / "x")
    whole = pd.read_parquet(path.with_suffix(".parquet"))
    with path.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == list(whole)
    assert rows == [["" if pd.isna(cell) else str(cell) for cell in row] for row in whole.to_numpy(dtype=object)]


def test_case_15_no_number_is_rounded_on_its_way_to_a_file(tmp_path):
    exact = -3.2000000000000006
    path = write(tmp_path / "x", ITEMS.assign(margin=exact), headline={"value": exact})
    assert set(pd.read_parquet(path.with_suffix(".parquet"))["margin"]) == {exact}
    assert set(pd.read_csv(path.with_suffix(".csv"))["margin"]) == {exact}
    assert results.read(path)["headline"]["value"] == exact


def test_the_json_is_strict(tmp_path):
    """NaN and Infinity are no JSON: browsers, R and jq refuse them."""

    def refuse(word: str):
        raise AssertionError(f"{word} in the JSON")

    json.loads(write(tmp_path / "x").read_text(encoding="utf-8"), parse_constant=refuse)


def test_arrays_tuples_and_missing_values_become_plain(tmp_path):
    odd = {
        "array": np.array([1.5, np.nan]),
        "tuple": (1, None),
        "missing": pd.NA,
        "series": pd.Series([1, 2]),
        "no": np.True_,
    }
    found = results.read(write(tmp_path / "x", headline=odd))
    assert found["headline"] == {
        "array": [1.5, None],
        "tuple": [1, None],
        "missing": None,
        "series": [1, 2],
        "no": True,
    }


def test_nothing_is_written_without_a_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert write("") is None
    assert listing(tmp_path) == []


def test_items_may_be_none_and_may_bring_the_columns_that_every_result_has(tmp_path):
    path = write(tmp_path / "empty", items=ITEMS.iloc[:0])
    assert len(pd.read_parquet(path.with_suffix(".parquet"))) == 0
    path = write(tmp_path / "named", items=ITEMS.assign(model="another"))
    assert set(pd.read_parquet(path.with_suffix(".parquet"))["model"]) == {"org/tiny"}


@pytest.mark.parametrize("mixed", [[1, "a", 2.5], [[1], "a", None], [{"a": 1}, {"b": "c"}, {"a": "d"}]])
def test_a_column_of_mixed_kinds_becomes_text_and_loses_no_run(mixed, tmp_path):
    path = write(tmp_path / "x", items=ITEMS.assign(item=mixed))
    found = pd.read_parquet(path.with_suffix(".parquet"))["item"]
    assert [None if pd.isna(cell) else cell for cell in found] == [None if c is None else str(c) for c in mixed]


@pytest.mark.parametrize("failing", ["to_parquet", "to_csv"])
def test_a_failure_on_the_way_leaves_the_results_of_before_as_they_were(failing, tmp_path, monkeypatch):
    write(tmp_path / "x")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(self, target, **options):
        Path(target).write_text("half a fi")
        raise OSError("no space left on device")

    monkeypatch.setattr(pd.DataFrame, failing, fail)
    with pytest.raises(OSError, match="no space"):
        write(tmp_path / "x", items=ITEMS.assign(rank=0))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_json_does_not_know_is_found_before_anything_is_written(tmp_path):
    with pytest.raises(TypeError):
        write(tmp_path / "x", headline={"value": object()})
    assert listing(tmp_path) == []


@pytest.mark.parametrize(
    "content", [None, b"", b'{"notebook": ', b"[]", b'{"name": "package"}', b"\xff", b"[" * 100_000]
)
def test_what_is_no_result_is_refused_by_name(content, tmp_path):
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LitmusError) as error:
        results.read(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_the_damage_of_a_result_is_told_and_results_of_before_had_no_checksums(tmp_path):
    path = write(tmp_path / "x")
    table, spreadsheet = path.with_suffix(".parquet"), path.with_suffix(".csv")
    assert results.damage(path) == ""
    whole = table.read_bytes()
    table.write_bytes(whole[:-1])
    assert results.damage(path) == "x.parquet not as written"
    spreadsheet.unlink()
    assert results.damage(path) == "x.parquet and x.csv not as written"
    spreadsheet.touch()
    record = results.read(path)
    path.write_text(json.dumps({name: part for name, part in record.items() if name != "tables"}), encoding="utf-8")
    assert results.damage(path) == ""
    spreadsheet.unlink()
    spreadsheet.mkdir()
    assert results.damage(path) == "x.csv not as written"
    path.write_text("{", encoding="utf-8")
    assert results.damage(path) == "x.json is no whole result"


# ---- spreadsheets


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x")'])
def test_text_that_a_spreadsheet_would_run_is_made_harmless_in_the_csv_only(formula, tmp_path):
    path = write(tmp_path / "x", items=pd.DataFrame({"context": [formula, "a=b"], "margin": [-1.5, 2]}))
    with path.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["context"] for row in rows] == [f"'{formula}", "a=b"]
    assert [row["margin"] for row in rows] == ["-1.5", "2.0"]  # numbers stay numbers
    assert pd.read_parquet(path.with_suffix(".parquet"))["context"].tolist() == [formula, "a=b"]


# ---- names of folders


def test_names_stay_readable_where_they_can():
    for name, safe in {
        "gpt2": "gpt2", "smollm2-135m-instruct": "smollm2-135m-instruct",
        "google-bert/bert-base-cased": "google-bert--bert-base-cased", "org/model.v1_2": "org--model.v1_2",
    }.items():  # fmt: skip
        assert results.safe_name(name) == safe


def test_folders_with_the_same_last_two_parts_have_pages_of_their_own(tmp_path):
    models = [tmp_path / lab / "models" / "mine" for lab in ("a", "b")]
    pages = {page(tmp_path / "reports", str(model), "20_agreement") for model in models}
    assert len(pages) == 2
    assert all(
        found.parent.name.startswith("models--mine--") and found.parent.parent.name == "reports" for found in pages
    )


def test_one_folder_has_one_name_however_it_is_written(tmp_path, monkeypatch):
    (tmp_path / "models" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    whole = str(tmp_path / "models" / "mine")
    names = {
        results.safe_name(name)
        for name in ("models/mine", "./models/mine", "models/../models/mine", whole, whole + "/")
    }
    assert len(names) == 1
    monkeypatch.chdir(tmp_path / "models")
    assert results.safe_name("models/mine") == "models--mine"  # no such folder here: the hub's


def test_a_checkpoint_file_is_no_hub_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.pt").touch()
    assert results.safe_name("mine/model.pt").startswith("mine--model.pt--")


@given(st.text(min_size=1).filter(lambda name: "\0" not in name))
def test_any_name_is_one_plain_folder_name(name):
    safe = results.safe_name(name)
    assert safe and set(safe) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    assert not safe.startswith((".", "-")) and safe == results.safe_name(name)


@given(st.text("ab /.-", min_size=1, max_size=6), st.text("ab /.-", min_size=1, max_size=6))
def test_different_names_have_different_folders_unless_they_are_the_same_path(one, other):
    if results.safe_name(one) == results.safe_name(other):
        assert Path(one).resolve() == Path(other).resolve() or one.replace("/", "--") == other.replace("/", "--")


# ---- where results come from


def test_provenance_says_what_when_with_what_and_what_was_overridden(tmp_path, monkeypatch):
    notebook = tmp_path / "30_tiny.py"
    notebook.write_text('# %% tags=["parameters"]\nmodel = "gpt2"\nlimit = 0\nout = ""\n')
    monkeypatch.setenv("LITMUS_OVERRIDDEN", "limit,seed")
    model = SimpleNamespace(family="causal", device="cpu", identity={"weights": "abc"})
    store = Store({"name": "x"}, tmp_path)
    found = results.provenance(str(notebook), {"model": "gpt2", "limit": 3, "other": 1}, model, store)
    assert found["parameters"] == {"model": "gpt2", "limit": 3}
    assert found["overridden"] == ["limit", "seed"]
    when = datetime.datetime.fromisoformat(found["date"])
    assert abs(datetime.datetime.now(datetime.UTC) - when) < datetime.timedelta(minutes=5)
    assert found["versions"]["python"] == platform.python_version() and set(results.PACKAGES) < set(found["versions"])
    assert (found["family"], found["device"], found["identity"]) == ("causal", "cpu", {"weights": "abc"})
    assert found["seconds"] >= 0 and found["store_megabytes"] >= 0
    here = int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) if sys.platform == "linux" else 1
    assert here * 1024 / 1e6 <= found["peak_megabytes"] + 1 < 1e6
    json.dumps(found, allow_nan=False)
    shown = results.provenance_table(found)
    assert list(shown.index) == list(found) and shown.loc["parameters", ""] == "model gpt2, limit 3"


def test_a_clock_that_is_set_back_meanwhile_makes_no_run_end_before_it_began(tmp_path, monkeypatch):
    """An estimate of the grid would come from it."""
    notebook = tmp_path / "30_tiny.py"
    notebook.write_text('# %% tags=["parameters"]\nmodel = "gpt2"\nout = ""\n')
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= results.provenance(str(notebook), {"model": "gpt2"})["seconds"] < 1e6


def test_provenance_of_a_notebook_by_name_has_all_its_parameters(monkeypatch):
    monkeypatch.delenv("LITMUS_OVERRIDDEN", raising=False)
    names = parameters_of(notebook_path("20_agreement"))
    found = results.provenance("20_agreement", names | {"pd": pd})
    assert found["parameters"] == names and found["overridden"] == [] and "device" not in found


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_is_told_and_whether_tracked_files_differ(tmp_path, monkeypatch):
    git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("1")
    git(tmp_path, "add", "code.py")
    git(tmp_path, "commit", "-q", "-m", "first")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "new.html").write_text("not tracked")
    monkeypatch.setattr(results, "ROOT", tmp_path)
    assert results.git_state() == {"git_commit": git(tmp_path, "rev-parse", "HEAD")[:12], "git_dirty": False}
    (tmp_path / "code.py").write_text("2")
    assert results.git_state()["git_dirty"] is True


def test_without_git_or_outside_a_repository_there_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "ROOT", tmp_path)
    assert results.git_state() == {"git_commit": "", "git_dirty": False}
    monkeypatch.setattr(results, "ROOT", ROOT)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert results.git_state() == {"git_commit": "", "git_dirty": False}


def test_checksums_by_name_and_by_path_where_names_are_alike(tmp_path):
    first, second, other = tmp_path / "a" / "x.jsonl", tmp_path / "b" / "x.jsonl", tmp_path / "verbs.csv"
    for path in (first, second, other):
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(path))
    sums = {str(path): hashlib.sha256(str(path).encode()).hexdigest() for path in (first, second, other)}
    assert results.checksums([first, other]) == {"x.jsonl": sums[str(first)], "verbs.csv": sums[str(other)]}
    assert results.checksums([first, second, first, other]) == {
        str(first): sums[str(first)], str(second): sums[str(second)], "verbs.csv": sums[str(other)],
    }  # fmt: skip
