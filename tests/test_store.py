"""Kept scores: nothing lost but an unfinished batch, nothing shared that differs, and never in the way of scoring."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from lib import store as store_module
from lib.paths import ROOT
from lib.store import Store, code_version, digest

IDENTITY = {"model": "tiny", "weights": "abc", "dtype": "float32"}
BATCH = 50


def key(number: int) -> bytes:
    return digest("key", number)


def value(number: int) -> bytes:
    return f"value {number} ".encode() * 100


def run(code: str, *arguments: object) -> subprocess.Popen:
    """A Python process with this file's helpers at hand."""
    preamble = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom test_store import *\n"
    command = [sys.executable, "-c", preamble + textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def test_what_was_put_is_found_again(tmp_path):
    first = Store(IDENTITY, tmp_path)
    assert first.get([key(1)]) == {}
    first.put({key(1): value(1), key(2): b""})
    for store in (first, Store(IDENTITY, tmp_path)):
        assert store.get([key(1), key(2), key(3)]) == {key(1): value(1), key(2): b""}
    first.put({key(1): value(9)})
    assert first.get([key(1)]) == {key(1): value(9)}
    assert first.megabytes > 0


def test_two_identities_never_share(tmp_path):
    stores = [
        Store(IDENTITY | change, tmp_path) for change in ({}, {"weights": "abd"}, {"dtype": "bfloat16"}, {"more": ""})
    ]
    for number, store in enumerate(stores):
        store.put({key(1): value(number)})
    assert [store.get([key(1)])[key(1)] for store in stores] == [value(number) for number in range(4)]
    assert len({store.path for store in stores}) == 4
    assert Store(dict(reversed(IDENTITY.items())), tmp_path).path == stores[0].path


def test_the_cache_variable_moves_it(tmp_path, monkeypatch):
    monkeypatch.setenv("LITMUS_CACHE", str(tmp_path / "here"))
    assert Store(IDENTITY).path.parent == tmp_path / "here" / "scores"


def test_digests_differ_where_data_differ():
    values = ["a", ["a"], [["a"]], ["a", "b"], [["a", "b"]], [["a"], ["b"]], {"a": "b"}, 1, "1", 1.5, None, True]
    assert len({digest(v) for v in values}) == len(values)
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert len(digest("a")) == 16


# --- kills and company ----------------------------------------------------------------------------------------------

WRITER = """
    store = Store(IDENTITY, Path(sys.argv[1]))
    print("ready", flush=True)
    for start in range(int(sys.argv[2]), int(sys.argv[3]), BATCH):
        store.put({key(number): value(number) for number in range(start, start + BATCH)})
        print(start + BATCH, flush=True)
"""


def test_a_kill_while_writing_loses_at_most_the_unfinished_batch(tmp_path):
    for moment in (0.0, 0.02, 0.05, 0.11):
        folder = tmp_path / str(moment)
        process = run(WRITER, folder, 0, 10**9)
        for _ in range(4):
            process.stdout.readline()  # ready, and three batches done
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        said = [int(line) for line in process.communicate()[0].split()]
        done = max(said, default=3 * BATCH)
        store = Store(IDENTITY, folder)
        found = store.get([key(number) for number in range(done + 2 * BATCH)])
        assert {key(number) for number in range(done)} <= set(found)
        assert len(found) % BATCH == 0  # a batch is kept whole or not at all
        assert all(found[key(number)] == value(number) for number in range(len(found)))
        store.put({key(-1): value(1)})
        assert store.get([key(-1)])


def test_two_processes_write_at_once(tmp_path):
    processes = [run(WRITER, tmp_path, start, start + 40 * BATCH) for start in (0, 20 * BATCH)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
    found = Store(IDENTITY, tmp_path).get([key(number) for number in range(60 * BATCH)])
    assert len(found) == 60 * BATCH
    assert all(found[key(number)] == value(number) for number in range(60 * BATCH))


# --- damage ---------------------------------------------------------------------------------------------------------


def filled(folder: Path) -> Store:
    store = Store(IDENTITY, folder)
    store.put({key(number): value(number) for number in range(200)})
    store.connection.close()
    return store


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def with_a_hole(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + os.urandom(8192) + content[middle + 8192 :]


@pytest.mark.parametrize(
    ("broken", "whole"),
    [(lambda _: b"garbage" * 1000, range(1)), (truncated, range(200)), (with_a_hole, range(100, 200))],
)
def test_a_damaged_file_is_moved_aside_and_said_so_and_what_is_whole_is_kept(broken, whole, tmp_path, capsys):
    path = filled(tmp_path).path
    path.write_bytes(broken(path.read_bytes()))
    asked = [key(number) for number in range(200)]
    found = Store(IDENTITY, tmp_path).get(asked)
    assert len(found) in whole and all(found[key(n)] == value(n) for n in range(200) if key(n) in found)
    said = f"The kept scores in {path.name} were damaged; moved to {path.stem}.damaged, but for {len(found)} that are whole.\n"
    assert capsys.readouterr().err == said
    assert path.with_suffix(".damaged").exists()
    Store(IDENTITY, tmp_path).put({key(1): value(1)})
    assert Store(IDENTITY, tmp_path).get(asked) == found | {key(1): value(1)}
    assert capsys.readouterr().err == ""


def test_an_empty_file_is_a_new_store(tmp_path, capsys):
    Store(IDENTITY, tmp_path).path.write_bytes(b"")
    Store(IDENTITY, tmp_path).put({key(1): value(1)})
    assert Store(IDENTITY, tmp_path).get([key(1)]) == {key(1): value(1)}
    assert capsys.readouterr().err == ""


def test_a_flipped_byte_in_a_value_is_noticed(tmp_path, capsys):
    """SQLite does not look at what it stores; a wrong number would be worse than none."""
    path = filled(tmp_path).path
    content = path.read_bytes()
    assert content.count(b"value 77 value 77") > 0
    path.write_bytes(content.replace(b"value 77 value 77", b"value 77 value 78", 1))
    asked = [key(number) for number in range(200)]
    store = Store(IDENTITY, tmp_path)
    assert store.get(asked) == {key(number): value(number) for number in range(200) if number != 77}
    assert f"were damaged; moved to {path.stem}.damaged, but for 199 that are whole.\n" in capsys.readouterr().err
    store.put({key(77): value(77)})
    assert Store(IDENTITY, tmp_path).get(asked) == {key(number): value(number) for number in range(200)}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "other",
    ["substr(value, 1, 3)", "substr(value, 1, 99)", "value || value", "x''", "'text'", "CAST(value AS TEXT)", "7"],
)
def test_a_row_of_another_length_or_kind_is_made_again(other, tmp_path, capsys):
    path = filled(tmp_path).path
    with sqlite3.connect(path) as direct:
        direct.execute(f"UPDATE scores SET value = {other} WHERE key = ?", (key(77),))
    direct.close()
    store = Store(IDENTITY, tmp_path)
    asked = [key(76), key(77), key(78)]
    if "CAST" not in other:  # the same bytes under the name of another kind are the same bytes
        assert store.get(asked) == {key(76): value(76), key(78): value(78)}
        assert "but for 199 that are whole" in capsys.readouterr().err
    store.put({key(77): value(77)})
    assert Store(IDENTITY, tmp_path).get(asked) == {key(n): value(n) for n in (76, 77, 78)}


def test_wherever_a_byte_is_wrong_no_wrong_value_is_given_and_nothing_stops(tmp_path, capsys):
    """One bit of each of many bytes, of pages, of keys, of values: a value is right or it is not there."""
    original = filled(tmp_path / "original").path
    content, asked = original.read_bytes(), [key(number) for number in range(200)]
    for at in (16, 44, 47, 56, 60, 91, 105, 4100, 4200, *range(8192, len(content), 9973)):
        folder = tmp_path / "flipped"
        folder.mkdir()
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        (folder / original.name).write_bytes(changed)
        store = Store(IDENTITY, folder)
        assert all(found == value(asked.index(of)) for of, found in store.get(asked).items()), at
        store.put({key(-1): value(1)})
        assert store.get([key(-1)]) in ({key(-1): value(1)}, {}), at  # none where the file now says it is read-only
        if store.connection:
            store.connection.close()
        shutil.rmtree(folder)
    assert "damaged" in capsys.readouterr().err


# --- where nothing can be kept --------------------------------------------------------------------------------------


def test_where_the_folder_cannot_be_made_scoring_goes_on(tmp_path, capsys):
    (tmp_path / "a-file").write_text("")
    store = Store(IDENTITY, tmp_path / "a-file" / "scores")
    store.put({key(1): value(1)})
    assert store.get([key(1)]) == {}
    assert store.megabytes == 0
    assert capsys.readouterr().err.count("Scores are not kept") == 1


@pytest.mark.parametrize(("pragma", "why"), [("query_only=ON", "readonly"), ("max_page_count=1", "full")])
def test_a_disk_that_takes_no_more_is_said_once_and_scoring_goes_on(pragma, why, tmp_path, capsys):
    store = Store(IDENTITY, tmp_path)
    store.put({key(1): value(1)})
    store.connection.execute(f"PRAGMA {pragma}")
    for number in range(2, 40):
        store.put({key(number): value(number) * 10})
    said = capsys.readouterr().err
    assert said.count("Scores are not kept") == 1 and why in said
    assert store.get([key(3)]) == {}
    assert Store(IDENTITY, tmp_path).get([key(1)]) == {key(1): value(1)}  # what was there is still there
    assert not list(tmp_path.glob("*.damaged"))


def test_a_file_that_someone_else_holds_is_not_taken_for_damaged(tmp_path, capsys, monkeypatch):
    store = Store(IDENTITY, tmp_path)
    other = sqlite3.connect(store.path)
    other.execute("BEGIN EXCLUSIVE")
    store.connection.execute("PRAGMA busy_timeout=50")
    store.put({key(1): value(1)})
    other.rollback()
    assert "locked" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.damaged"))


# --- the code's version ---------------------------------------------------------------------------------------------


@pytest.fixture
def version_of(tmp_path, monkeypatch):
    """The version that some code would have."""
    monkeypatch.setattr(store_module, "ROOT", tmp_path)
    (tmp_path / "lib" / "models").mkdir(parents=True)

    def version(scoring: str = "x = 1\n", sentences: str = "", **models: str) -> str:
        for old in (tmp_path / "lib" / "models").iterdir():
            old.unlink()
        (tmp_path / "lib" / "scoring.py").write_text(scoring)
        (tmp_path / "lib" / "sentences.py").write_text(sentences)
        for name, code in models.items():
            (tmp_path / "lib" / "models" / f"{name}.py").write_text(code)
        return code_version.__wrapped__()

    return version


def test_comments_and_layout_do_not_change_the_version(version_of):
    plain = version_of("x = f(1, 2)\n", causal="y = 1\n")
    assert plain == version_of("# why\nx = f(\n    1,\n    2,\n)  # here\n\n\n", causal="\ny = (1)\n")


def test_code_changes_the_version(version_of):
    versions = {
        version_of(causal="y = 1\n"), version_of("x = 2\n", causal="y = 1\n"), version_of(causal="y = 2\n"),
        version_of(causal="y = 1\n", recurrent=""), version_of(), version_of(sentences="x = 1\n"),
    }  # fmt: skip
    assert len(versions) == 6


def test_scores_of_code_that_is_no_longer_used_are_dropped_and_free_their_room(tmp_path, monkeypatch):
    def opened(version: str, day: int) -> Store:
        monkeypatch.setattr(store_module, "code_version", lambda: version)
        monkeypatch.setattr(time, "time", lambda: day * 86400.0)
        return Store(IDENTITY, tmp_path)

    opened("old", 0).put({key(number): value(number) for number in range(500)})
    opened("other", 0).put({key(-1): value(1)})
    new = opened("new", 1)
    new.put({key(1000): value(7)})
    full = new.megabytes
    assert len(opened("new", 30).get([key(0), key(-1), key(1000)])) == 3  # not a month yet
    opened("other", 30)
    last = opened("new", 31)
    assert last.get([key(0), key(-1), key(1000)]) == {key(-1): value(1), key(1000): value(7)}
    assert last.megabytes < full / 5


def test_the_version_of_this_code():
    assert len(code_version()) == 32
    assert code_version() == code_version.__wrapped__()
