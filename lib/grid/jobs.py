"""The grid: which notebooks are run for which models, and what each may need."""

import functools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lib import hub, listing, run
from lib.errors import LitmusError
from lib.grid.marks import code_behind, common_data, digest, folder_state, named_files, published_files
from lib.paths import DATA, ROOT
from lib.say import did_you_mean, shown

UNKNOWN_MEMORY = 8000  # megabytes asked for a model of unknown size
UNKNOWN_MINUTES = 240  # asked of a cluster for a notebook with such a model
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")


class Job(NamedTuple):
    """One notebook for one model. Paths are relative to the root where they lie inside it."""

    model: str  # as lib.run takes it: model or model@revision
    notebook: Path
    out: Path  # of the results, without suffix
    settings: dict[str, str]  # further parameters
    megabytes: int  # memory
    minutes: int  # that a cluster is asked for
    millions: float | None  # of parameters, where they are known
    mark: str  # digest of everything that decides the result


def jobs(
    root: Path = ROOT,
    models: Sequence[str] = (),
    notebooks: Sequence[str] = (),
    limit: int | None = None,
    settings: Sequence[str] = (),
    reports: str | Path | None = None,
) -> list[Job]:
    """The grid: chosen models x chosen notebooks.

    No ``models`` stands for those with ``grid`` = yes in ``data/models.csv``, no ``notebooks`` for every numbered one
    with the parameters ``model`` and ``out``. A model that is not in the list is a hub id or a folder, and
    ``model@revision`` one state of it, with results of its own. ``limit`` (None:
    as each notebook says) and ``settings`` (``key=value``; paths count from ``root``) go to the notebooks that have
    these parameters.
    Raises LitmusError for a notebook that does not exist, a model that there cannot be, a setting that no notebook has,
    two models whose results would share a folder, and an empty grid.
    """
    known_models = listed(root)
    names = list(dict.fromkeys(models)) or [
        name for name, row in listing.read(root / "data" / "models.csv").items() if row["grid"] == "yes"
    ]
    for word in models:
        _check_model(root, word, known_models)
    chosen = _notebooks(root, notebooks)
    if not names or not chosen:
        raise LitmusError(
            f"there is nothing to run: {len(names)} models (grid = yes), {len(chosen)} notebooks in {root}."
        )
    given = run.settings_of([*settings, *([] if limit is None else [f"limit={limit}"])])
    known = {path: run.parameters_of(path) for path in chosen}
    for name in given:
        if not any(name in parameters for parameters in known.values()):
            every = dict.fromkeys(name for parameters in known.values() for name in parameters)
            raise LitmusError(f"no notebook of the grid has the parameter {shown(name)}{did_you_mean(name, every)}.")
    common = digest(common_data(root))
    code = {path: digest(code_behind(path)) for path in chosen}
    data = functools.cache(lambda datasets: digest(published_files(root, datasets)))
    grid = []
    for word in names:
        model, revision = listing.with_revision(word, known_models)
        row = known_models.get(model)
        folder = root / os.path.expanduser(row["source"] if row else model)
        folder = folder / revision if revision != listing.MAIN and os.path.isdir(folder) else folder
        weights = folder_state(folder)
        megabytes, minutes, millions = needs(row, weights)
        for path, parameters in known.items():
            if model != word and "revision" not in parameters:
                raise LitmusError(f"{path.stem} has no parameter revision, which {shown(word)} needs.")
            wanted = {name: value for name, value in given.items() if name in parameters}
            values = parameters | run.check_parameters(parameters, wanted)
            _, named = run.revised({"model": word} | wanted, known_models)
            content: list[Path | str] = [
                common,
                code[path],
                data(values.get("datasets", "")),
                path,
                *named_files(root, values),
            ]
            if row and row["source"] == "bundled":
                content += sorted(file for file in (DATA / "models" / model).glob("*") if file.is_file())
            grid.append(
                Job(
                    model=word,
                    notebook=within(path, root),
                    out=within(run.page(Path(reports or root / "reports"), model, path.stem, named), root),
                    settings=wanted,
                    megabytes=megabytes,
                    minutes=minutes,
                    millions=millions,
                    mark=digest([*content, json.dumps([word, row, weights, wanted])]),
                )
            )
    owner: dict[Path, str] = {}
    for job in grid:
        if owner.setdefault(job.out, job.model) != job.model:
            raise LitmusError(
                f"{owner[job.out]} and {job.model} would share the folder {job.out.parent}; rename one of them."
            )
    return grid


def needs(row: Mapping[str, str] | None, weights: Sequence[Any]) -> tuple[int, int, float | None]:
    """Megabytes of memory and minutes that a notebook may need with a model, and the model's millions of parameters.

    From its row of ``data/models.csv``, else from the size of its files on disk (four bytes a parameter, with room for the
    numbers in between); of a model of which nothing is known yet, generous guesses and None. Minutes are for a cluster,
    which stops what takes longer: a processor's hour for 135 million parameters, six for 1,500 million.
    """
    bytes_ = sum(size for name, size, _ in weights if name.endswith(WEIGHTS))
    millions = float(row["parameters_millions"] or 0) if row else bytes_ / 4e6
    megabytes = int(row["memory_megabytes"] or 0) if row else 0
    return (
        megabytes or (1000 + round(bytes_ / 4e5) if bytes_ else UNKNOWN_MEMORY),
        30 + round(0.22 * millions) if millions else UNKNOWN_MINUTES,
        millions or None,
    )


def listed(root: Path) -> dict[str, dict[str, str]]:
    """Models known by name, before any folder of that name: the bundled ones, and those that ``root`` lists."""
    bundled = {name: row for name, row in listing.read().items() if row["source"] == "bundled"}
    return bundled | listing.read(root / "data" / "models.csv")


def _check_model(root: Path, word: str, known: Mapping[str, Mapping[str, str]]) -> None:
    """Raise LitmusError for a name that no list has, where nothing lies, and that no hub can have."""
    model, _ = listing.with_revision(word, known)
    if model in known or os.path.exists(root / os.path.expanduser(model)):
        return
    if model.startswith((".", "/", "~")) or not hub.is_id(model):
        raise LitmusError(
            f"there is no model {shown(word)}: nothing lies there, and it is no hub id; names are separated by spaces, "
            "and a path with a space in it stands in quotation marks."
        )


def _notebooks(root: Path, wanted: Sequence[str]) -> list[Path]:
    """Numbered notebooks that run once a model, in order; only the ``wanted`` ones where any is named."""
    paths = {path.stem: path for path in sorted((root / "notebooks").glob("[0-9][0-9]_*.py"))}
    every = {name: path for name, path in paths.items() if {"model", "out"} <= run.parameters_of(path).keys()}
    for name in wanted:
        if name not in every:
            raise LitmusError(
                f"there is no notebook {shown(name)}{did_you_mean(name, every)} in the grid; "
                f"there are: {', '.join(every)}."
            )
    return [path for name, path in every.items() if not wanted or name in wanted]


def within(path: Path, root: Path) -> Path:
    return path.relative_to(root) if path.is_relative_to(root) else path
