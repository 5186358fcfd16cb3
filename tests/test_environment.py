"""One list of dependencies, complete; and a package that is quick to import."""

import ast
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest
import yaml

from lib.paths import DATA, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OURS = {"lib", "bench"} | {path.stem for path in (ROOT / "tests").glob("*.py")}


def plain(requirement: str) -> str:
    """The name of a package in a requirement, spelt in the one way that all spellings share."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


DECLARED = {plain(requirement) for requirement in PROJECT["dependencies"]}
EXTRAS = {name: {plain(one) for one in listed} for name, listed in PROJECT["optional-dependencies"].items()}


def comes_with(package: str) -> set[str]:
    """What a package itself requires always, if it is here: Jupyter's parts come with one another."""
    try:
        listed = importlib.metadata.requires(package) or []
    except importlib.metadata.PackageNotFoundError:
        return set()
    return {plain(one) for one in listed if "extra ==" not in one}


def imports_of(path: Path) -> set[str]:
    """The top-level names of what a file imports, other than ours and the standard library's."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports here are absolute"
            found.add(node.module.partition(".")[0])
    return found - OURS - sys.stdlib_module_names


SOURCES = [
    *sorted((ROOT / "lib").rglob("*.py")), *sorted((ROOT / "notebooks").rglob("*.py")), *sorted((ROOT / "tests").glob("*.py")),
]  # fmt: skip


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_everything_imported_is_declared(path):
    allowed = DECLARED | (EXTRAS["dev"] if "tests" in path.parts else set())
    allowed |= set().union(*map(comes_with, allowed))
    packages = importlib.metadata.packages_distributions()
    for name in imports_of(path):
        assert {plain(package) for package in packages[name]} & allowed, f"{name} is not in pyproject.toml"


def test_everything_declared_is_used():
    """Imported somewhere, or needed by name: as a program, or by transformers, pandas, Jupyter or Snakemake."""
    by_name = {
        "accelerate",
        "gguf",
        "pyarrow",
        "jupyterlab",
        "ipykernel",
        "snakemake",
        "snakemake-executor-plugin-slurm",
    }
    packages = importlib.metadata.packages_distributions()
    imported = {plain(package) for path in SOURCES for name in imports_of(path) for package in packages[name]}
    assert imported - by_name >= DECLARED - by_name


def test_conda_adds_nothing_to_the_list():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert environment["channels"] == ["conda-forge"]
    *plainly, through_pip = environment["dependencies"]
    assert [re.split("[=<>]", name)[0] for name in plainly] == ["python", "pip", "make"]
    assert through_pip == {"pip": ["-e .[dev]"]}
    [python] = [name.partition("=")[2] for name in plainly if name.startswith("python")]
    assert tuple(map(int, python.split("."))) >= tuple(
        map(int, PROJECT["requires-python"].removeprefix(">=").split("."))
    )


@pytest.mark.parametrize("module", ["lib", "lib.grid.__main__", "lib.published", "lib.run", "lib.pairs", "lib.results"])
def test_commands_do_not_wait_for_heavy_imports(module):
    code = f"import sys, json, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not {"torch", "transformers", "altair", "scipy"} & set(json.loads(done.stdout))


@pytest.mark.parametrize("path", [path for path in SOURCES if "tests" not in path.parts], ids=lambda path: path.name)
def test_cases_7_and_24_names_that_newer_libraries_dropped_are_used_nowhere(path):
    dropped = {"NaN", "Inf", "infty", "float_", "product", "batch_encode_plus", "encode_plus", "add_prefix_space"}
    names = {
        node.attr for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Attribute)
    }
    assert not names & dropped
    assert int(importlib.metadata.version("numpy").split(".")[0]) >= 2


def test_published_numbers_have_the_columns_and_names_that_their_readme_says():
    table = pd.read_csv(DATA / "reference" / "newman2021.csv")
    assert list(table) == ["source", "template", "model", "metric", "value"]
    assert set(table["template"]) == set(pd.read_csv(DATA / "constructions.csv")["template"])
    assert not table.duplicated(["template", "model", "metric"]).any() and len(table) == 10 * 4 * 3
    assert set(table["metric"]) == {"MW", "EW", "TSE"} and table["value"].between(0, 1).all()
    text = (DATA / "reference" / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in [*table, *table["model"].unique()])
