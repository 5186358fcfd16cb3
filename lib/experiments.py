"""Published experiment files: one YAML a model, template and metric (refined TSE, Newman et al. 2021).

Here a notebook's parameters take their place; the published files stay readable.
"""

import math
import os
from pathlib import Path
from typing import Any

from lib.errors import LitmusError
from lib.paths import check_finite
from lib.say import did_you_mean, short, shown

PUBLISHED_KEYS: dict[str, dict[str, Any]] = {
    "dataset": {
        "add_trailing_period": bool,
        "capitalize_first_word": bool,
        "max_examples_per_template": int,
        "name": str,
        "template_dir": str,
        "template_files": list,
    },
    "experiment": {"max_examples": int},
    "logger": {"path": str, "print_metrics_to_general_log": bool, "print_to_stdout": bool},
    "metrics": {
        "ML": {"example_aggregator": str, "use_custom_dataset": bool},
        "main": {
            "cutoffs_bot": list,
            "cutoffs_top": list,
            "example_aggregator": str,
            "lemma_inflections_path": str,
            "use_custom_dataset": bool,
            "use_equal_verb_voting": bool,
        },
    },
    "model": {"name": str},
}
TYPES = {bool: "true or false", int: "a whole number or null", list: "a list", str: "text"}


def experiments_of(config: str | Path) -> list[tuple[str, dict[str, Any]]]:
    """Notebooks and parameters that a published experiment file asks for (Newman et al. 2021).

    The metric ``ML`` is ``20_agreement``, ``main`` is ``21_systematic_or_likely``; a file with both gives both. Paths
    are tried from the file's folder and the three above it, the current folder, and the published set. Raises
    LitmusError for a key that is not a published one, and for a value that asks for what these notebooks do not do.
    """
    path = Path(config)
    settings = _checked(_read(path), PUBLISHED_KEYS, path)
    if settings.get("dataset", {}).get("name", "custom") != "custom":
        raise LitmusError(f"{path}: dataset.name must be custom: only JSONL files of pairs can be read.")
    metrics = settings.get("metrics")
    if not metrics:
        raise LitmusError(f"{path} names no metric under metrics: ML stands for TSE, main for EW or MW.")
    for metric, choices in metrics.items():
        if choices.get("use_custom_dataset", True) is not True:
            raise LitmusError(
                f"{path}: metrics.{metric}.use_custom_dataset must be true: only JSONL files can be read."
            )
        if choices.get("example_aggregator", "mean") != "mean":
            raise LitmusError(f"{path}: metrics.{metric}.example_aggregator must be mean, the only one there is.")
    common = _common_parameters(settings, path)
    experiments = []
    if "ML" in metrics:
        experiments.append(("20_agreement", common))
    if "main" in metrics:
        experiments.append(("21_systematic_or_likely", common | _main_parameters(metrics["main"], path)))
    return experiments


def _read(path: Path) -> dict[str, Any]:
    import yaml

    check_finite(path)
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise LitmusError(f"{path} cannot be read ({error}).") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date or a number that is none
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else str(path)
        why = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise LitmusError(f"{where}: not valid YAML ({why}).") from error
    if not isinstance(settings, dict):
        raise LitmusError(f"{path} is not an experiment file, which has the keys {', '.join(PUBLISHED_KEYS)}.")
    return settings


def _checked(given: dict[str, Any], known: dict[str, Any], path: Path, above: str = "") -> dict[str, Any]:
    """``given`` without its nulls; refuses, at every level, unknown keys and values of another type."""
    checked = {}
    for key, value in given.items():
        if key not in known:
            raise LitmusError(
                f"{path}: unknown key {above}{shown(key)}{did_you_mean(str(key), known)}; "
                f"known here: {', '.join(known)}."
            )
        kind = known[key]
        if isinstance(kind, dict):
            value = {} if value is None else value
            if not isinstance(value, dict):
                raise LitmusError(f"{path}: {above}{key} must hold keys ({', '.join(kind)}), not {shown(repr(value))}.")
            checked[key] = _checked(value, kind, path, f"{above}{key}.")
        elif value is not None:
            if type(value) is not kind:
                raise LitmusError(f"{path}: {above}{key} must be {TYPES[kind]}, not {shown(repr(value))}.")
            checked[key] = value
    return checked


def _needed(settings: dict[str, Any], section: str, key: str, path: Path) -> Any:
    """A value that must be there. Raises LitmusError when it is not."""
    if not settings.get(section, {}).get(key):
        raise LitmusError(f"{path} has no {section}.{key}, and nothing can run without it.")
    return settings[section][key]


def _common_parameters(settings: dict[str, Any], path: Path) -> dict[str, Any]:
    """Parameters that both notebooks have."""
    dataset = settings.get("dataset", {})
    folder, files = dataset.get("template_dir", "."), _needed(settings, "dataset", "template_files", path)
    parameters = {
        "model": _needed(settings, "model", "name", path),
        "items": [_locate(f"{folder}/{file}", path) for file in files],
    }
    if "add_trailing_period" in dataset:
        parameters["full_stop"] = dataset["add_trailing_period"]
    if "capitalize_first_word" in dataset:
        parameters["capitalise"] = "yes" if dataset["capitalize_first_word"] else "no"
    together = settings.get("experiment", {}).get("max_examples")
    if together is not None and len(files) > 1:
        raise LitmusError(
            f"{path}: experiment.max_examples counts over all template files together, which the notebooks do not; "
            "use dataset.max_examples_per_template."
        )
    limits = [limit for limit in (dataset.get("max_examples_per_template"), together) if limit is not None]
    if any(limit < 1 for limit in limits):
        raise LitmusError(f"{path}: a number of examples must be at least 1; null stands for all.")
    return parameters | ({"limit": min(limits), "sample": "first"} if limits else {"limit": 0})


def _main_parameters(main: dict[str, Any], path: Path) -> dict[str, Any]:
    """Parameters of EW and MW."""
    parameters: dict[str, Any] = {}
    if "use_equal_verb_voting" in main:
        parameters["metric"] = "EW" if main["use_equal_verb_voting"] else "MW"
    if "lemma_inflections_path" in main:
        parameters["verbs"] = _locate(main["lemma_inflections_path"], path)
    for published, ours in {"cutoffs_top": "cutoffs_top", "cutoffs_bot": "cutoffs_bottom"}.items():
        if published in main:
            parameters[ours] = [_cutoff(cutoff, published, path) for cutoff in main[published]]
    return parameters


def _cutoff(value: Any, key: str, path: Path) -> float:
    try:
        number = float(value)  # YAML reads 1e-6 as text
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not 0 < number <= 1:
        raise LitmusError(
            f"{path}: metrics.main.{key} holds {shown(repr(value))}; a cutoff is a probability above 0, up to 1."
        )
    return number


def _locate(name: str, config: Path) -> str:
    """Where a path of a published experiment lies on this machine."""
    from lib import published

    here = config.resolve().parent
    tried = [folder / name for folder in (here, *list(here.parents)[:3], Path.cwd())]
    if data := published.find():
        tried.append(data / "refining-tse" / name.removeprefix("data/"))
    for path in tried:
        if os.path.isfile(path):  # Path.is_file raises for a name that is too long
            return short(path)
    raise LitmusError(
        f"{config}: there is no {shown(name)}, neither near that file, nor in the current folder, nor in the published set "
        f"({'which is not here: fetch it by make data' if data is None else data / 'refining-tse'})."
    )


def config_files(where: Path, only: str = "", without: str = "") -> list[Path]:
    """Experiment files of a folder (or the one file), in order.

    Only those whose path holds one of the parts ``only`` and none of ``without`` (comma separated, "" = no condition);
    hidden files and folders (environments, a repository's own) are left alone. Raises LitmusError when none is left.
    """
    if not where.exists():
        raise LitmusError(f"there is no {where}; --config takes an experiment file or a folder of them.")
    inside = [path for path in sorted(where.rglob("*")) if path.suffix in (".yaml", ".yml")] if where.is_dir() else []
    files = [path for path in inside if not any(part.startswith(".") for part in path.relative_to(where).parts)]
    if not where.is_dir():
        files = [where]
    if not files:
        raise LitmusError(f"there is no experiment file (.yaml, .yml) in {where}; name the file, or another folder.")
    wanted, unwanted = ([part.strip() for part in parts.split(",") if part.strip()] for parts in (only, without))
    chosen = [
        file
        for file in files
        if (not wanted or any(part in str(file) for part in wanted)) and not any(part in str(file) for part in unwanted)
    ]
    if not chosen:
        raise LitmusError(f"none of the {len(files)} experiment files (.yaml, .yml) in {where} is left to run.")
    return chosen
