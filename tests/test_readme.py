"""What the READMEs say can be done: every command named exists, every flag is known, every snippet runs."""

import re
import subprocess
import sys

import pytest

from lib.paths import ROOT

READMES = ["README.md", "notebooks/README.md", "reports/README.md", "data/README.md", "data/items/README.md",
           "data/lexicon/README.md"]  # fmt: skip


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", READMES)
def test_make_targets_exist(name):
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), flags=re.M))
    named = set(re.findall(r"(?:`|^\s{4}|&& )make ([a-z-]+)", text_of(name), flags=re.M))
    assert named <= targets


@pytest.mark.parametrize("name", READMES)
def test_modules_exist_and_know_their_flags(name):
    commands = re.findall(r"python -m (lib\.\w+)([^`\n]*)", text_of(name))
    for module, words in commands:
        sub = words.split()[:1] if module == "lib.templates" else []
        shown = subprocess.run([sys.executable, "-m", module, *sub, "--help"], cwd=ROOT, capture_output=True, text=True)
        assert shown.returncode == 0, shown.stderr
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", words):
            assert flag in shown.stdout, f"{module} does not know {flag}"


NOT_HERE = ("data/published", "reports/index", "reports/replicate", "notebooks/NN_name", "notebooks/my_exercises")


@pytest.mark.parametrize("name", [name for name in READMES if name != "data/README.md"])  # it names others' files
def test_files_named_exist(name):
    for path in re.findall(r"`((?:notebooks|lib|data|reports|tests)/[\w./-]+)`", text_of(name)):
        built = path.startswith(
            ("data/published", "reports/index", "reports/replicate", "notebooks/NN_name", "notebooks/my_exercises")
        )
        assert built or (ROOT / path).exists(), path


def test_case_92_python_snippets_run():
    snippets = re.findall(r"```python\n(.*?)```", text_of("README.md"), flags=re.S)
    assert snippets
    for snippet in snippets:
        done = subprocess.run([sys.executable, "-c", snippet], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(",") >= 4


def test_the_item_of_the_readme_runs_with_both_bundled_models(masked, causal, tmp_path):
    from lib.items import read_agreement

    [line] = re.findall(r'^ {4}(\{"sentence_good".*\})$', text_of("README.md"), flags=re.M)
    (tmp_path / "cats.jsonl").write_text(line + "\n", encoding="utf-8")
    [item] = read_agreement(tmp_path / "cats.jsonl").to_dict("records")
    assert (item["left"], item["good"], item["bad"], item["right"]) == ("The cats", "sit", "sits", "")
    assert all(len(model.word(form, "middle").ids) == 1 for model in (masked, causal) for form in ("sit", "sits"))
