"""How messages name things, and what a command tells of an error: one line on the error stream, and exit code 2."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from lib.errors import LitmusError
from lib.say import did_you_mean, first_sentence, is_of_disk, is_of_memory, of_system, short, shown, told


def test_a_near_miss_is_pointed_out_and_nothing_else_is():
    assert did_you_mean("lmit", ["model", "limit", "out"]) == " (did you mean limit?)"
    assert did_you_mean("gpt2", ["model", "limit", "out"]) == ""
    assert did_you_mean("limit", []) == ""
    assert did_you_mean("LIMIT", ["limit"]) == " (did you mean limit?)"
    assert did_you_mean("tse", ["EW", "TSE"]) == " (did you mean TSE?)"


def test_a_path_is_as_short_as_it_can_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert short(Path("pages/../pages/one")) == "pages/one"
    assert short(tmp_path / "pages" / "one") == "pages/one"
    assert short(tmp_path.parent) == str(tmp_path.parent)


def test_a_long_value_is_cut_to_eighty_characters():
    assert shown("x" * 80) == "x" * 80
    assert shown("x" * 81) == "x" * 77 + "..."
    assert shown([1, 2]) == "[1, 2]"
    assert len(shown([1] * 500)) == 80


def test_what_the_system_refused_is_a_sentence_with_or_without_a_file():
    ended = OSError(errno.EPIPE, "Broken pipe")
    assert of_system(ended) == "the system refused something (Broken pipe); try again, or in another place."
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert of_system(full) == "the disk takes no more (No space left on device); make room, or name another place."
    missing = FileNotFoundError(errno.ENOENT, "No such file or directory", "a/b")
    assert of_system(missing) == (
        "a/b cannot be used here (No such file or directory); name another place, or mend this one."
    )
    assert of_system(OSError("one\ntwo")) == "the system refused something (one); try again, or in another place."
    assert "(OSError)" in of_system(OSError())
    assert len(of_system(OSError(errno.ENAMETOOLONG, "File name too long", "x" * 300))) < 200


@pytest.mark.parametrize(
    "kind, text, of",
    [
        ("MemoryError", "", "memory"),
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB.", "memory"),
        ("RuntimeError", "[enforce fail at alloc_cpu.cpp:1] . DefaultCPUAllocator: can't allocate memory", "memory"),
        ("RuntimeError", "MPS backend out of memory (MPS allocated: 1 GB)", "memory"),
        ("SafetensorError", "Cannot allocate memory (os error 12)", "memory"),
        ("RuntimeError", "std::bad_alloc", "memory"),
        ("OSError", "[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device", "disk"),
        ("OSError", "[Errno 122] Disk quota exceeded", "disk"),
        ("SafetensorError", "Error while serializing: I/O error: File too large (os error 27)", "disk"),
        ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied", ""),
        ("KeyError", "'memory'", ""),
    ],
)
def test_what_ran_out_is_read_in_the_words_of_those_who_noticed(kind, text, of):
    assert (is_of_memory(kind, text), is_of_disk(text)) == (of == "memory", of == "disk")


def command(action) -> tuple[int, str, str]:
    """What a command that does this inside ``told`` ends with: its exit code, its output, its error stream."""

    def main() -> None:
        with told():
            print("begun")
            action()

    app = typer.Typer()
    app.command()(main)
    ended = CliRunner().invoke(app, [])
    return ended.exit_code, ended.stdout, ended.stderr


def raises(error: BaseException):
    def action() -> None:
        raise error

    return action


def test_what_ends_well_is_left_alone():
    assert command(lambda: None) == (0, "begun\n", "")


def test_an_error_meant_for_a_person_is_one_line_and_exit_code_2():
    assert command(raises(LitmusError("there is no pair; add one."))) == (
        2,
        "begun\n",
        "error: there is no pair; add one.\n",
    )


def test_an_error_of_the_system_is_one_line_and_exit_code_2(tmp_path):
    missing = tmp_path / "nothing"
    code, _, said = command(missing.read_text)
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith("error: ") and "(No such file or directory)" in said


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")])
def test_a_model_too_large_is_one_line_and_exit_code_2(error):
    code, _, said = command(raises(error))
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith("error: the memory of this machine is too small (") and "a smaller model" in said


def test_the_first_sentence_of_an_error():
    assert first_sentence(ValueError("One thing. Another.\nMore")) == "One thing"
    assert first_sentence(ValueError()) == "ValueError"
    assert len(first_sentence(ValueError("x" * 999))) == 200


def test_a_mistake_of_the_program_is_not_hidden():
    """Only what a person can mend is a sentence; of anything else the traceback is what helps."""

    for error in (ZeroDivisionError(), RuntimeError("mat1 and mat2 shapes cannot be multiplied")):
        with pytest.raises(type(error)), told():
            raise error


def test_an_exit_code_of_its_own_goes_through():
    assert command(raises(typer.Exit(1))) == (1, "begun\n", "")


def test_the_traceback_is_not_seen_in_a_real_command(tmp_path):
    """``lib.report`` stands for those that use it."""
    words = [sys.executable, "-m", "lib.report", str(tmp_path / "nothing.ipynb")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


def test_what_a_terminal_cannot_show_is_written_out():
    code = "from lib.say import told\nwith told():\n    print('na\\u00efve \\u2014')"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "na\\xefve \\u2014\n"), done.stderr
