"""The papers' models on the papers' data: the value they published, ours, and the difference (``make replicate``).

Two ways lead to a value of ours. Scores that a paper published beside its items go through our readers and metrics, and must
come out as printed. A model runs through the notebooks that anyone runs, on all published items (``limit=0``). What cannot be
had here, a model or a data set, is named with the reason. Published values: ``data/reference``.
"""

import csv
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from lib import hub, listing, published, results, run
from lib.errors import LitmusError
from lib.grid.jobs import jobs
from lib.grid.running import locked, render_failed, run_grid
from lib.grid.state import stamps
from lib.paths import DATA, REPORTS, ROOT
from lib.say import did_you_mean, short, shown, told

TOLERANCE = 0.02  # shares: what other versions of a library and of a data set's release may change
PAPERS = {
    "newman2021": ("refining-tse",),
    "ettinger2020": ("lm-diagnostics",),
    "shivagunde2023": ("lm-diagnostics", "larger-probes"),
    "warstadt2020": ("blimp",),
    "gulordava2018": ("colorless-green",),
}  # and the published sets that their values were counted on
NAMES = {
    ("shivagunde2023", "bert-base"): "bert-base-uncased",
    ("shivagunde2023", "bert-large"): "bert-large-uncased",
    ("shivagunde2023", "distilbert-base"): "distilbert/distilbert-base-uncased",
    ("shivagunde2023", "albert-base-v2"): "albert/albert-base-v2",
    ("shivagunde2023", "albert-xlarge-v2"): "albert/albert-xlarge-v2",
    ("shivagunde2023", "albert-xxlarge-v2"): "albert/albert-xxlarge-v2",
    ("shivagunde2023", "gpt2-base"): "gpt2",
    ("warstadt2020", "gpt2"): "openai-community/gpt2-large",
}  # what a paper calls a model, where that is not its name here
NEVER = {
    "human": "people's answers are not among the published files",
    "people": "people's answers are not among the published files",
    "t5-large": "it reads and writes in two networks, which no family of models here does",
    "t5-xl": "it reads and writes in two networks, which no family of models here does",
    "transformer-xl": "transformers no longer holds it",
    "5-gram": "its counts were not published",
    "lstm": "its weights are not on the hub: fetch them from its authors, and say --given lstm=FOLDER",
}
RECORDED = {"best LSTM": "hidden650_batch128_dropout0.2_lr20.0", "frequency": "freq"}  # columns of the published file
CPRAG = {"expected preferred over both inappropriate": ("30_inference", {"metric": "sensitivity", "condition": "all"})}
NEGATION_SETS = {
    "NEG-136-SIMP": "simple",
    "NEG-136-NAT natural": "natural, licensed",
    "NEG-136-NAT less natural": "natural, unlicensed",
}
LONGER_LIST = "the paper counted more verbs than its public list holds"
SPACE = "the paper's contexts end in a space, which GPT-2 reads as a word begun"


class Value(NamedTuple):
    """A published value and where ours is found."""

    paper: str
    model: str  # as the paper calls it
    what: str  # the measure and what it was measured on, in words
    value: float
    unit: float  # of its last printed decimal
    notebook: str  # that finds ours; "" where no notebook does
    row: Mapping[str, Any]  # columns of the notebook's summary that tell the row of this value
    note: str = ""  # why ours may differ


class Compared(NamedTuple):
    """One line of the result; ``ours`` and ``coverage`` are None where nothing was compared, for the reason ``why``."""

    published: Value
    ours: float | None
    coverage: float | None
    why: str
    tolerance: float = 0.0

    @property
    def verdict(self) -> str:
        """equal (to the decimals that were printed), near (within the tolerance), differs, or not compared."""
        if self.ours is None:
            return "not compared"
        difference = abs(self.ours - self.published.value)
        if difference <= self.published.unit / 2 + 1e-9:
            return "equal"
        return "near" if difference <= self.tolerance + 1e-9 else "differs"


# ---- what was published


def values(papers: Sequence[str] = ()) -> list[Value]:
    """Every published value of the papers (none named: all). Raises LitmusError for a paper that is not listed."""
    for paper in papers:
        if paper not in PAPERS:
            raise LitmusError(
                f"there is no paper {shown(paper)}{did_you_mean(paper, PAPERS)}; there are: {', '.join(PAPERS)}."
            )
    return [value for paper in PAPERS if not papers or paper in papers for value in _values_of(paper)]


def _values_of(paper: str) -> list[Value]:
    with (DATA / "reference" / f"{paper}.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    place_of = {"newman2021": _newman, "warstadt2020": _warstadt, "gulordava2018": _gulordava}.get(paper, _cloze)
    found = []
    for row in rows:
        what, notebook, where, note = place_of(row)
        decimals = 4 if paper == "gulordava2018" else len(row["value"].partition(".")[2])  # those are counts, divided
        model = row.get("model") or row["who"]
        found.append(Value(paper, model, what, float(row["value"]), 10.0**-decimals, notebook, where, note))
    return found


Place = tuple[str, str, dict[str, Any], str]  # what, notebook, row, note


def _newman(row: Mapping[str, str]) -> Place:
    what, where = f"{row['metric']}, {row['template']}", {"metric": row["metric"], "condition": row["template"]}
    if row["metric"] == "TSE":
        return what, "20_agreement", where, ""
    return what, "21_systematic_or_likely", where | {"side": "top", "cutoff": 1.0}, LONGER_LIST


def _warstadt(row: Mapping[str, str]) -> Place:
    return row["paradigm"], "24_blimp", {"metric": "accuracy", "condition": row["paradigm"]}, ""


def _gulordava(row: Mapping[str, str]) -> Place:
    where = {"type": row["type"], "pattern": row["pattern"], "n_attr": row["attractors"]}
    return ", ".join([row["type"], f"pattern {row['pattern']}", f"attractors {row['attractors']}"]), "", where, ""


def _cloze(row: Mapping[str, str]) -> Place:
    """Of Ettinger (2020) and Shivagunde et al. (2023)."""
    diagnostic, measure = row["diagnostic"], row["measure"]
    what = f"{measure}, {diagnostic}"
    note = SPACE if row["model"] == "gpt2-base" else ""
    if diagnostic == "CPRAG-102" and measure in CPRAG:
        return what, *CPRAG[measure], note
    if diagnostic == "ROLE-88" and measure == "good preferred over role reversal":
        return what, "31_roles", {"metric": "sensitivity", "condition": "all"}, note
    if measure == "accuracy at 5" and diagnostic.startswith("ROLE"):
        return what, "31_roles", {"metric": "accuracy@5", "condition": diagnostic.replace("ROLE-88", "all")}, note
    if measure == "affirmative accuracy at 5":
        condition = diagnostic.replace("NEG-136-SIMP", "simple negation")
        return what, "32_negation", {"metric": "accuracy@5", "condition": condition}, note
    if measure == "top prediction changes under negation" and diagnostic.startswith("NEG-1500"):
        return what, "32_negation", {"metric": "top word changes", "condition": diagnostic}, note
    if measure.startswith("true preferred in "):
        where = {"metric": "sensitivity", "condition": NEGATION_SETS[diagnostic], "polarity": measure.split()[-1]}
        return what, "32_negation", where, note
    return what, "", {}, note


# ---- what can be had


def model_of(value: Value, given: Mapping[str, str]) -> str:
    """The model of a value as ``lib.run`` takes it: what was ``given`` for it, else its name here."""
    return given.get(value.model) or NAMES.get((value.paper, value.model), value.model)


def why_not(value: Value, folder: Path | None, given: Mapping[str, str], lacking: Mapping[str, str]) -> str:
    """Why a value cannot be compared, in words, as far as that is known before anything runs; "" where it can.

    ``lacking``: what is missing of each published set.
    """
    recorded = value.paper == "gulordava2018"
    if value.model in NEVER and value.model not in given:
        return NEVER[value.model]
    if not value.notebook and not recorded:
        return "no notebook counts it in this way"
    if folder is None:
        return "there is no published data: make data, or name its folder by LITMUS_DATASETS"
    if missing := [lacking[name] for name in PAPERS[value.paper] if name in lacking]:
        return "; ".join(missing)
    return "" if recorded else unobtainable(model_of(value, given))


def unobtainable(model: str) -> str:
    """Why a model cannot be had here, in words; "" where it can, or where only trying can tell."""
    row = listing.read().get(model)
    source = row["source"] if row else model
    if source == "bundled" or os.path.exists(os.path.expanduser(source)):
        return ""
    if not hub.is_id(source):
        return f"there is no folder {source}"
    away = hub.unreachable()
    return f"not on this machine, and {away}" if away and not hub.kept(source) else ""


def lacking(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """What is missing or different of published sets, in words, by set; a set that is as it was published is not there."""
    rows = [row for row in published.listed() if row.set in names]
    bad = published.get(rows, folder, only_check=True)
    counts = Counter(row.set for row in rows if row.file in bad)
    totals = Counter(row.set for row in rows)
    return {
        name: f"{number} of {totals[name]} files of the set {name} are not in {folder} as published: make data"
        for name, number in counts.items()
    }


# ---- ours


def from_recorded_scores(wanted: Sequence[Value], folder: Path) -> list[Compared]:
    """Values of Gulordava et al. (2018), counted from the scores that they published."""
    from lib import evaluate, formats

    pairs = formats.read(evaluate.long_distance_file(published=folder))
    judged = {model: evaluate.recorded(pairs, column) for model, column in RECORDED.items()}
    compared = []
    for value in wanted:
        rows = judged[value.model]
        for column, cell in value.row.items():
            rows = rows if cell == "all" else rows[rows[column] == cell]
        scored = rows["correct"].notna()
        compared.append(Compared(value, float(rows.loc[scored, "correct"].mean()), float(scored.mean()), ""))
    return compared


def from_models(
    wanted: Sequence[Value],
    given: Mapping[str, str],
    reports: Path,
    profile: str = "default",
    together: int = 1,
    tolerance: float = TOLERANCE,
    root: Path = ROOT,
) -> list[Compared]:
    """Run what is missing or stale of the notebooks behind ``wanted``, and look the values up in their results.

    One grid for all models that go through the same notebooks; results of before are kept as ``make reports`` keeps them.
    """
    needed: dict[str, set[str]] = {}
    for value in wanted:
        needed.setdefault(model_of(value, given), set()).add(value.notebook)
    for notebooks in sorted({tuple(sorted(names)) for names in needed.values()}):
        models = [model for model, names in needed.items() if tuple(sorted(names)) == notebooks]
        choice: dict[str, Any] = {
            "models": models,
            "notebooks": list(notebooks),
            "settings": [],
            "reports": str(reports),
        }
        if any("limit" in run.parameters_of(run.notebook_path(name)) for name in notebooks):
            choice["limit"] = 0
        grid = jobs(root, **choice)
        with locked(root) as lock:
            before = stamps(root, grid)
            run_grid(root, grid, profile, together, choice, lock)
            render_failed(root, grid, before)
    return [_looked_up(value, run.page(reports, model_of(value, given), value.notebook), tolerance) for value in wanted]


def _looked_up(value: Value, out: Path, tolerance: float) -> Compared:
    """A value in the results of its notebook, as far as they are of published items."""
    path = out.with_name(f"{out.name}.json")
    if not path.exists():
        return Compared(value, None, None, f"{value.notebook} failed: {short(out)}.FAILED.html says why")
    found = results.read(path)
    if not found["data"]["name"].startswith("published"):
        return Compared(value, None, None, f"{value.notebook} ran on {found['data']['name']}")
    rows = [row for row in found["summary"] if all(row.get(key) == cell for key, cell in value.row.items())]
    if len(rows) != 1 or rows[0].get("value") is None:
        return Compared(value, None, None, f"{value.notebook} has no such value")
    return Compared(value, rows[0]["value"], rows[0].get("coverage"), "", tolerance)


# ---- what is said


def table(compared: Sequence[Compared]) -> list[dict[str, Any]]:
    """The result as rows: published, ours, difference, verdict, and why they differ or were not compared."""
    return [
        {
            "paper": row.published.paper, "model": row.published.model, "what": row.published.what,
            "published": row.published.value, "ours": row.ours,
            "difference": None if row.ours is None else row.ours - row.published.value,
            "coverage": row.coverage, "verdict": row.verdict, "why": row.why or row.published.note,
        }
        for row in compared
    ]  # fmt: skip


def told_lines(compared: Sequence[Compared]) -> list[str]:
    """A line for each value that was compared; one for what was not, a paper and reason; and a count."""
    lines = []
    done = [row for row in table(compared) if row["ours"] is not None]
    wide = {key: max((len(row[key]) for row in done), default=0) for key in ("paper", "model", "what")}
    for row in done:
        words = "  ".join(f"{row[key]:{wide[key]}}" for key in wide)
        covered = "" if row["coverage"] in (None, 1) else f"  coverage {row['coverage']:.0%}"
        note = f"  ({row['why']})" if row["why"] and row["verdict"] != "equal" else ""
        lines.append(
            f"{words}  published {row['published']:<6.4g}  ours {row['ours']:.4f}  {round(row['difference'], 4) + 0.0:+.4f}  "
            f"{row['verdict']}{covered}{note}"
        )
    left: dict[tuple[str, str], Counter[str]] = {}
    for undone in compared:
        if undone.ours is None:
            left.setdefault((undone.published.paper, undone.why), Counter())[undone.published.model] += 1
    for (paper, why), counts in left.items():
        models = ", ".join(f"{model} ({number})" for model, number in counts.items())
        lines.append(f"not compared: {paper}: {models}: {why}")
    verdicts = Counter(row.verdict for row in compared)
    totals = ", ".join(f"{verdicts[name]} {name}" for name in ("equal", "near", "differs", "not compared"))
    return [*lines, f"{len(compared)} published values: {totals}"]


def exit_code(compared: Sequence[Compared], complete: bool) -> int:
    """0 when what was compared agrees; 1 when a value differs, a notebook failed, or nothing was compared.

    ``complete``: also when anything was not compared.
    """
    verdicts = {row.verdict for row in compared}
    failed = any(" failed: " in row.why for row in compared)
    nothing = not verdicts - {"not compared"}
    return int("differs" in verdicts or failed or nothing or (complete and "not compared" in verdicts))


def write(compared: Sequence[Compared], path: Path) -> None:
    """All lines as CSV."""
    rows = table(compared)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def given_of(pairs: Sequence[str]) -> dict[str, str]:
    """``model=name`` pairs. Raises LitmusError for a pair without =."""
    parts = [pair.partition("=") for pair in pairs]
    for name, equals, model in parts:
        if not equals or not name or not model:
            raise LitmusError(f"--given takes MODEL=NAME, and {shown(name + equals + model)} is not of that form.")
    return {
        name: str(Path(model).expanduser().resolve()) if os.path.exists(os.path.expanduser(model)) else model
        for name, _, model in parts
    }


def main(
    papers: Annotated[str, typer.Option(help=f'of {", ".join(PAPERS)}, separated by spaces; "" = all')] = "",
    models: Annotated[str, typer.Option(help='as the papers call them, separated by spaces; "" = all')] = "",
    given: Annotated[
        list[str] | None, typer.Option(help="MODEL=NAME: run this folder, hub id or listed name for a paper's model")
    ] = None,
    datasets: Annotated[str, typer.Option(help="folder of the published data, else as the notebooks find it")] = "",
    reports: Annotated[Path, typer.Option(help="folder of the results")] = REPORTS / "replicate",
    profile: Annotated[str, typer.Option(help="default (this machine), slurm, or a folder of your own")] = "default",
    jobs: Annotated[int, typer.Option(min=1, help="notebooks at a time on this machine")] = 1,
    tolerance: Annotated[float, typer.Option(min=0, help="difference of two shares that is still near")] = TOLERANCE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="run no model; compare recorded scores only")] = False,
    complete: Annotated[
        bool, typer.Option("--complete", help="exit code 1 also where a value was not compared")
    ] = False,
) -> None:
    """The papers' models on the papers' data: published value, ours, difference.

    Exit code: 0 what could be compared agrees; 1 a value differs, a notebook failed, or nothing was compared; 2 wrong usage.
    """
    with told():
        wanted, instead, chosen = values(papers.split()), given_of(given or []), models.split()
        known = list(dict.fromkeys(value.model for value in wanted))
        for model in [*chosen, *instead]:
            if model not in known:
                raise LitmusError(
                    f"no value of these papers is of the model {shown(model)}{did_you_mean(model, known)}; "
                    f"there are: {', '.join(known)}."
                )
        wanted = [value for value in wanted if not chosen or value.model in chosen]
        if datasets:
            os.environ["LITMUS_DATASETS"] = str(Path(datasets).expanduser().resolve())  # the notebooks look there too
        folder = published.find()
        missing = lacking(folder, list({name for value in wanted for name in PAPERS[value.paper]})) if folder else {}
        reasons = [why_not(value, folder, instead, missing) for value in wanted]
        ready = [value for value, why in zip(wanted, reasons, strict=True) if not why]
        recorded = [value for value in ready if value.paper == "gulordava2018"]
        to_run = [value for value in ready if value.paper != "gulordava2018"]
        found = from_recorded_scores(recorded, folder) if folder and recorded else []
        if dry_run:
            found += [Compared(value, None, None, f"would run {model_of(value, instead)}") for value in to_run]
        elif to_run:
            found += from_models(to_run, instead, reports.resolve(), profile, jobs, tolerance)
        found += [Compared(value, None, None, why) for value, why in zip(wanted, reasons, strict=True) if why]
        write(found, reports / "values.csv")
    print("\n".join(told_lines(found)))
    print(f"all of it as a table: {short(reports / 'values.csv')}")
    if code := exit_code(found, complete):
        sys.stderr.write(
            "error: not everything agrees with what was published, or nothing could be compared; see above.\n"
        )
    raise typer.Exit(code)


if __name__ == "__main__":
    typer.run(main)
