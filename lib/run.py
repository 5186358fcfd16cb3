"""Run one notebook, or published experiments: strict parameters, the failed notebook kept, an honest exit code.

``python -m lib.run 20_agreement --model distilbert-mlm --set limit=20``. papermill alone takes any parameter name and
any type and reports success; here a name that the notebook does not have, or a value of another type, is refused
before anything runs. A published experiment file (see lib.experiments) is run by ``--config``.
"""

import ast
import errno
import logging
import math
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from lib import listing
from lib.errors import LitmusError
from lib.experiments import config_files, experiments_of
from lib.paths import NOTEBOOKS, REPORTS
from lib.say import did_you_mean, is_of_disk, is_of_memory, of_disk, of_memory, short, shown

# jsonschema, which nbformat needs, would build a parser of web addresses at import; that takes more than a second.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

WRITTEN = (".json", ".parquet", ".csv")  # results that a notebook writes
RESULTS = (*WRITTEN, ".html", ".FAILED.html")  # what may lie beside an executed notebook
TIMEOUT = 3600  # seconds a cell may take
LEAST = {"limit": 0, "verb_limit": 0, "seed": 0, "draws": 1}
"""The least value of parameters that count something, in whatever notebook they stand."""

TOO_MUCH = (
    ValueError,
    MemoryError,
    RecursionError,
)  # of Python on text that it cannot parse: null bytes, a thousand brackets


# ---- the notebook and its parameters


def notebook_path(name: str | Path) -> Path:
    """The ``.py`` of a notebook given by name (``20_agreement``) or by path. Raises LitmusError when there is none."""
    path = Path(name)
    if path.suffix in (".py", ".ipynb"):
        source = path.with_suffix(".py")
        if os.path.isfile(source):  # Path.is_file raises for a name that is too long
            return source
        raise LitmusError(
            f"there is no notebook {shown(str(source))}; give the path of a .py, or the name of one in {NOTEBOOKS}."
        )
    source = NOTEBOOKS / f"{name}.py"
    if not os.path.isfile(source):
        known = sorted(path.stem for path in NOTEBOOKS.glob("*.py"))
        raise LitmusError(
            f"there is no notebook {shown(str(name))}{did_you_mean(str(name), known)}; there are: {', '.join(known)}."
        )
    return source


def parameters_of(notebook: str | Path) -> dict[str, Any]:
    """Names and defaults of the one cell tagged ``parameters`` of a ``.py`` notebook.

    Raises LitmusError when there is no such cell or more than one, or when a line of it is anything but
    ``name = literal`` with text, a number, True, False or a list.
    """
    from lib.pairs import read

    path = Path(notebook)
    cells = read(path).cells
    tagged = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    if len(tagged) != 1:
        raise LitmusError(f"{path} has {len(tagged)} cells tagged parameters; a notebook has exactly one.")
    try:
        statements = ast.parse(tagged[0].source).body
    except SyntaxError as error:
        raise LitmusError(
            f"{path}: the cell tagged parameters is not Python: {error.msg} in `{shown((error.text or '').strip())}`."
        ) from error
    except TOO_MUCH as error:
        raise LitmusError(
            f"{path}: the cell tagged parameters is nothing that Python can read; simplify it."
        ) from error
    return dict(_assignment(statement, path) for statement in statements)


def _assignment(statement: ast.stmt, path: Path) -> tuple[str, Any]:
    """Name and value of ``name = literal``."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            try:
                literal = ast.literal_eval(value)
            except (TypeError, *TOO_MUCH):  # TypeError: a dictionary whose key is a list
                literal = None
            if isinstance(literal, str | bool | int | float | list):
                return name, literal
    raise LitmusError(
        f"{path}: `{ast.unparse(statement)}` in the cell tagged parameters is not of the form name = literal, "
        "with text, a number, True, False or a list."
    )


def check_parameters(known: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """``given`` with each value of the type of its default in ``known``.

    Text for a parameter that is not text (as a command line gives it) is read as a Python literal. A whole number will
    do for a float, but no number for True or False. Raises LitmusError for an unknown name, another type, and a count
    below its ``LEAST``.
    """
    for name in given:
        if name not in known:
            raise LitmusError(
                f"there is no parameter {shown(name)}{did_you_mean(name, known)}; the notebook has: {', '.join(known)}."
            )
    return {name: _typed(name, value, known[name]) for name, value in given.items()}


def _typed(name: str, value: Any, default: Any) -> Any:
    if isinstance(default, str):
        value = _text(name, value)
        return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
    if isinstance(value, str):
        try:
            value = ast.literal_eval({"true": "True", "false": "False"}.get(value, value))
        except (TypeError, SyntaxError, *TOO_MUCH) as error:
            raise LitmusError(f"parameter {name} {_wants(default)}, and {shown(value)} is not.") from error
    if isinstance(default, float) and type(value) is int:
        value = float(value) if abs(value) < sys.float_info.max else math.inf
    if type(value) is not type(default) or (isinstance(value, float) and not math.isfinite(value)):
        raise LitmusError(f"parameter {name} {_wants(default)}, and {shown(repr(value))} is not.")
    if type(value) is int and value < LEAST.get(name, value):
        raise LitmusError(f"parameter {name} is {LEAST[name]} or more, and {shown(repr(value))} is not.")
    if isinstance(value, list):  # of texts, where the default has no entry that says otherwise
        entry = default[0] if default else ""
        check = _text if isinstance(entry, str) else partial(_typed, default=entry)
        return [check(f"{name}[{index}]", given) for index, given in enumerate(value)]
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise LitmusError(f"parameter {name} is text, and {shown(repr(value))} is not.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise LitmusError(f"parameter {name} is text, and {shown(value)} holds half of a character.") from None
    return value


def _wants(default: Any) -> str:
    if isinstance(default, bool):
        return "is True or False"
    if isinstance(default, int):
        return "is a whole number"
    return "is a number" if isinstance(default, float) else 'is a list such as ["a", "b"]'


# ---- running it


def page(reports: Path, model: str, notebook: str, revision: str = listing.MAIN) -> Path:
    """Where results go, without suffix: reports/<model>/<notebook>; reports/<notebook> for one without a model.

    A named revision has a folder of its own, <model>@<revision>.
    """
    from lib.results import safe_name

    if not model:
        return reports / notebook
    return reports / (safe_name(model) + ("" if revision == listing.MAIN else f"@{safe_name(revision)}")) / notebook


def revised(given: dict[str, Any], known: Mapping[str, Mapping[str, str]] | None = None) -> tuple[dict[str, Any], str]:
    """Parameters in which ``model@revision`` has become two, and the revision that the results' folder names.

    ``known``: the models by name, else those of ``data/models.csv``; one that stands there with a revision gets it, in a
    folder of its plain name. Raises LitmusError for a revision that is said twice.
    """
    word = given.get("model", "")
    if not isinstance(word, str) or not word:
        return given, listing.MAIN
    model, revision = listing.with_revision(word, listing.read() if known is None else known)
    if model != word and "revision" in given:
        raise LitmusError(
            f"the revision of {shown(model)} is said twice: by @{shown(revision)} and by --set revision=."
        )
    named = str(given.get("revision", revision if model != word else listing.MAIN))
    return ({} if revision == listing.MAIN else {"revision": revision}) | given | {"model": model}, named


def check_place(out: Path, make: bool = True) -> None:
    """Make the folder of ``out`` and try whether results can be written there. Raises LitmusError when they cannot.

    Without ``make`` nothing is made, and only the rights are looked at.
    """
    probe = out.parent / f".{out.name}{max(RESULTS, key=len)}.{os.getpid()}"  # as long as any name there will be
    _text("out", str(out))
    try:
        _check_kinds(out)
        if not make:
            return _check_rights(probe)
        out.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise LitmusError(
            f"results cannot be written to {shown(short(out))} ({error.strerror}); "
            "name another place by --out or --reports."
        ) from error


def _check_kinds(out: Path) -> None:
    """Raise OSError where something lies in the way that is no file of results: a device, a pipe, a folder."""
    if os.path.exists(out) and not (out.is_file() or out.is_dir()):
        raise OSError(errno.EINVAL, "it is a device or a pipe")
    for suffix in (".ipynb", *RESULTS):
        if os.path.isdir(in_the_way := out.parent / f"{out.name}{suffix}"):
            raise OSError(errno.EISDIR, f"{in_the_way.name} is a folder; move it away")


def _check_rights(file: Path) -> None:
    """Raise OSError where ``file``, in folders that may have to be made, could not be written."""
    folder = next(parent for parent in file.absolute().parents if os.path.exists(parent))
    for part in file.absolute().relative_to(folder).parts:
        with suppress(FileNotFoundError):
            (folder / part).lstat()  # raises for a name that is too long, and below a file
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def execute(notebook: str | Path, parameters: dict[str, Any], out: Path, timeout: int = TIMEOUT, mark: str = "") -> int:
    """Run a ``.py`` notebook with ``parameters`` in a kernel of its own, in the current folder.

    The executed notebook becomes ``<out>.ipynb``, also when it fails; results of an earlier run that lie there never
    pass for results of this one. ``timeout`` is the limit of one cell in seconds. Returns 0, or 1 after one sentence
    on stderr that names the failing cell. A run that is itself interrupted leaves the executed notebook of before.
    ``mark`` is kept in the notebook's metadata: the grid recognises its results by it, and takes a notebook that wrote
    none for one that failed. Raises LitmusError, before anything runs, where ``out`` cannot be written. When the disk is
    full at the end, nothing of this run is kept.
    """
    path = Path(notebook)
    known = parameters_of(path)
    parameters = check_parameters(known, parameters)
    if "out" in known:
        parameters["out"] = short(out)
    overridden = [name for name, value in parameters.items() if value != known[name] and name not in ("model", "out")]
    check_place(out)
    _sweep(out)
    before = _stamps(out)
    environment = {"LITMUS_QUIET": "1", "LITMUS_NOTEBOOK": path.stem, "LITMUS_OVERRIDDEN": ",".join(overridden)}
    try:
        problem, where = _run_in_scratch(path, parameters, out, timeout, mark, environment)
    except (KeyboardInterrupt, OSError) as error:
        with suppress(OSError):  # the place may be read-only by now
            _remove(path for path, stamp in _stamps(out).items() if before.get(path) != stamp)  # half of a result
        if isinstance(error, KeyboardInterrupt):
            raise
        sys.stderr.write(
            f"error: {path.stem} ran, and its executed notebook cannot be written to {short(out)}.ipynb "
            f"({error.strerror}); make room, or name another place by --out.\n"
        )
        return 1
    _remove(path for path, stamp in _stamps(out).items() if problem or before.get(path) == stamp)
    if problem:
        sys.stderr.write(f"error: {path.stem} failed {where}: {problem}; see {short(out)}.ipynb.\n")
    return 1 if problem else 0


def _run_in_scratch(
    path: Path, parameters: dict[str, Any], out: Path, timeout: int, mark: str, environment: dict[str, str]
) -> tuple[str, str]:
    """Run a notebook and put what was executed in its place; returns what went wrong ("": nothing) and the cell."""
    import jupytext

    from lib.results import damage

    # Short and private: the names of a kernel's sockets may have about 100 characters.
    with tempfile.TemporaryDirectory(prefix="litmus-", dir="/tmp" if os.path.isdir("/tmp") else None) as scratch:
        executed = Path(scratch) / "executed.ipynb"
        with _environment(environment):
            problem = _papermill(jupytext.read(path, fmt="py:percent"), executed, parameters, timeout)
        if mark and not problem and damage(out.parent / f"{out.name}.json"):
            problem = (
                f"it ended without having written its results ({', '.join(WRITTEN)}), which lib.results.write does"
            )
        where = _finish(executed, path, out, problem, mark)
        _place(executed, out.parent / f"{out.name}.ipynb")
    return problem, where


def _papermill(notebook: Any, executed: Path, parameters: dict[str, Any], timeout: int) -> str:
    """Execute into ``executed``; "" or what went wrong, in words."""
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from traitlets.config import Config

    logging.getLogger("papermill").setLevel(logging.CRITICAL)  # errors are told below
    kernel = {"transport": "ipc", "connection_file": str(executed.with_name("k.json"))}  # TCP ports can collide
    try:
        papermill.execute_notebook(
            notebook,
            executed,
            parameters,
            kernel_name="python3",
            progress_bar=False,
            execution_timeout=timeout,
            shutdown_kernel="immediate",
            config=Config({"KernelManager": kernel}),
        )
    except papermill.PapermillExecutionError as error:
        sentence = _first_line(error.evalue)
        said = ": ".join(filter(None, (error.ename, sentence)))
        if error.ename == "LitmusError":
            return sentence
        if is_of_memory(error.ename, error.evalue):
            return of_memory(said)
        return of_disk(said) if error.ename == "OSError" and is_of_disk(error.evalue) else said
    except CellTimeoutError:
        return f"the cell took longer than the limit of {timeout} s (--timeout raises it)"
    except DeadKernelError:
        return "the kernel died, killed from outside, most often because the memory ran out"
    except (NoSuchKernel, RuntimeError) as error:
        return f"no Python kernel could be started ({_first_line(str(error))})"
    return ""


def _finish(executed: Path, source: Path, out: Path, problem: str, mark: str) -> str:
    """Put the true paths into the executed notebook, after a failure the reason; returns the failing cell in words.

    papermill marks a cell that raised. A cell whose kernel died, or that was over its time, would show nothing.
    """
    import nbformat

    if not executed.exists():  # not even a kernel
        nbformat.write(nbformat.v4.new_notebook(metadata={"papermill": {"exception": True}}), executed)
    notebook = nbformat.read(executed, as_version=4)
    notebook.metadata.papermill.update(input_path=short(source), output_path=f"{short(out)}.ipynb")
    if mark:
        notebook.metadata.litmus = {"mark": mark}
    heading, failing, under = "", None, ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and "papermill-error-cell-tag" not in cell.metadata.get("tags", []):
            heading = next((line.lstrip("# ") for line in cell.source.splitlines() if line.startswith("#")), heading)
        elif cell.cell_type == "code" and cell.metadata.get("papermill", {}).get("start_time"):
            failing, under = cell, heading
    if problem and failing and not any(output.output_type == "error" for output in failing.outputs):
        failing.outputs.append(nbformat.v4.new_output("error", ename="Stopped", evalue=problem, traceback=[problem]))
        failing.metadata.papermill.update(exception=True, status="failed")
        notebook.metadata.papermill.exception = True
    nbformat.write(notebook, executed)
    if not failing:
        return "before its first cell"
    return _failing_line(failing) + (f" under «{under}»" if under else "")


def _failing_line(cell: Any) -> str:
    """The line of the cell to which its traceback points; where there is none, the cell's first line."""
    traceback = "\n".join(line for output in cell.outputs for line in output.get("traceback", []))
    traceback = re.sub(r"\x1b\[[\d;]*m", "", traceback)  # colours
    if pointed := re.search(r"^Cell In.*?^-+> *\d+ (.*?)$", traceback, re.MULTILINE | re.DOTALL):
        return f"at `{pointed[1].strip()}`"
    code = (line.strip() for line in cell.source.splitlines())
    return f"in the cell that begins `{next((line for line in code if line and not line.startswith('#')), '')}`"


def _stamps(out: Path) -> dict[Path, int]:
    """The result files that lie beside ``out``, with their times of change."""
    paths = [out.parent / f"{out.name}{suffix}" for suffix in RESULTS]
    return {path: path.stat().st_mtime_ns for path in paths if path.exists()}


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink()


def _place(source: Path, target: Path) -> None:
    """Move a file to where it belongs so that nobody ever sees half of it."""
    half = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        shutil.copyfile(source, half)
        os.replace(half, target)
    finally:
        half.unlink(missing_ok=True)


def _sweep(out: Path) -> None:
    """Remove what killed runs left beside ``out``: halves of notebooks and of results (see lib.results.write).

    Halves are there for seconds; a minute later nobody is writing them any more.
    """
    half = re.compile(re.escape(f".{out.name}") + r"(-[a-z0-9_]{8}|(\.FAILED)?\.[a-z]+\.\d+)")
    for path in out.parent.iterdir():
        if half.fullmatch(path.name):
            with suppress(OSError):  # what cannot be removed disturbs nobody
                if path.stat().st_mtime < time.time() - 60:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def _environment(names: dict[str, str]) -> Iterator[None]:
    """Environment variables set for a while."""
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0].rstrip(".") if text.strip() else ""


# ---- published experiment files


def run_configs(
    files: list[Path], reports: Path, timeout: int = TIMEOUT, model: str = "", given: dict[str, str] | None = None
) -> int:
    """Run every experiment file, going on after a failure; prints one line a file at the end. Returns 0, or 1 if any
    failed or was refused."""
    lines, places, worst = [], set(), 0
    for file in files:
        try:
            states = []
            for notebook, asked in experiments_of(file):
                parameters, revision = revised(asked | (given or {}) | ({"model": model} if model else {}))
                out = config_out(file, parameters["model"], notebook, reports, revision)
                if out in places:
                    raise LitmusError(
                        f"{file} would overwrite {short(out)} of another file; rename the file or its folder."
                    )
                places.add(out)
                states.append(execute(notebook_path(notebook), parameters, out, timeout))
            state = "failed" if any(states) else "done"
        except LitmusError as error:
            sys.stderr.write(f"error: {error}\n")
            state = "refused"
        worst = max(worst, state != "done")
        lines.append(f"{state:8}{file}")
    sys.stdout.write("\n".join(lines) + "\n")
    return int(worst)


def config_out(file: Path, model: str, notebook: str, reports: Path, revision: str = listing.MAIN) -> Path:
    """Where results of an experiment file go: reports/<model>/<notebook>--<folder of the file>--<name of the file>."""
    parts = [part for part in (file.resolve().parent.name, file.stem) if part != model]
    return page(reports, model, "--".join([notebook, *parts]), revision)


# ---- the command line


def settings_of(pairs: list[str], model: str = "") -> dict[str, str]:
    """``key=value`` pairs as a dictionary. Raises LitmusError for a pair without =, and for a key given twice."""
    given: dict[str, str] = {"model": model} if model else {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise LitmusError(f"--set takes key=value, and {shown(pair)} has no =.")
        if name == "out":
            raise LitmusError("where results go is said by --out PATH, not by --set out=.")
        if name in given:
            raise LitmusError(f"parameter {shown(name)} is given twice.")
        given[name] = value
    return given


def run_notebook(
    name: str, given: dict[str, str], out: Path | None, reports: Path, timeout: int, mark: str = ""
) -> int:
    """Run one notebook with parameters as the command line gives them; returns the exit code."""
    path = notebook_path(name)
    known = parameters_of(path)
    if "model" in given and "model" not in known:
        raise LitmusError(f"{path.stem} has no parameter model: it is run once, without --model.")
    given, revision = revised(given)
    model = check_parameters(known, given).get("model", known.get("model", ""))
    out = out or page(reports, model, path.stem, revision)
    title = ", ".join(part for part in (path.stem, model, revision) if part and part != listing.MAIN)
    print(f"{title}: running", flush=True)
    started = time.monotonic()
    code = execute(path, given, out, timeout, mark)
    if code == 0:
        print(f"{title}: done in {time.monotonic() - started:.0f} s, {short(out)}.ipynb", flush=True)
    return code


def _stop(*_: Any) -> None:
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    raise KeyboardInterrupt


def main(
    notebook: Annotated[str, typer.Argument(help="a notebook by name (20_agreement) or the path of its .py")] = "",
    model: Annotated[
        str, typer.Option(help="bundled name, row of data/models.csv, hub id or folder; with @revision for one")
    ] = "",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="another parameter, key=value; may be repeated")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="results without suffix; else reports/<model>/<notebook>")] = None,
    timeout: Annotated[int, typer.Option(min=1, help="seconds a cell may take")] = TIMEOUT,
    reports: Annotated[Path, typer.Option(help="folder of results where --out is not given")] = REPORTS,
    config: Annotated[
        Path | None,
        typer.Option(
            help="in place of NOTEBOOK: a published experiment YAML or a folder of them; results go to "
            "reports/<model>/<notebook>--<folder>--<file>"
        ),
    ] = None,
    only: Annotated[
        str,
        typer.Option(
            "--only", "--whitelist", help="with --config: files with one of these, comma separated, in the path"
        ),
    ] = "",
    without: Annotated[
        str, typer.Option("--except", "--blacklist", help="with --config: not files with one of these in the path")
    ] = "",
    mark: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Run a notebook (or published experiments) and keep the executed notebook, also when it fails.

    Exit code: 0 done, 1 a notebook failed, 2 wrong usage.
    """
    for signalled in (signal.SIGTERM, signal.SIGINT):  # a cancelled job ends its kernel too
        signal.signal(signalled, _stop)
    try:
        if bool(notebook) == bool(config):
            raise LitmusError("give the name of a notebook, or --config with an experiment file or a folder of them.")
        given = settings_of(settings or [], model)
        if not config:
            if only or without:
                raise LitmusError("--only and --except choose among the files of --config.")
            raise typer.Exit(run_notebook(notebook, given, out, reports, timeout, mark))
        if out:
            raise LitmusError("with --config the results have names of their own; --reports FOLDER says where.")
        raise typer.Exit(
            run_configs(config_files(config, only, without), reports, timeout, given.pop("model", ""), given)
        )
    except LitmusError as error:
        sys.stderr.write(f"error: {error}\n")
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        sys.stderr.write("error: stopped from outside.\n")
        raise typer.Exit(130) from None


if __name__ == "__main__":
    typer.run(main)
