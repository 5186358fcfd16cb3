"""Kept scores: what a model said once is not asked again.

One SQLite file per model under the cache. A row is one context under one method; it is written as soon as its batch is
done, so a killed run goes on where it stopped. The file's name is a digest of all that identifies the model (weights,
tokenizer, dtype, ...), a row's key holds all that the numbers depend on besides: two models or methods never meet. Scores
of code that is no longer used are dropped after a month.
Keeping is a convenience: where it fails (no room, no right to write), scoring goes on without it and says so once.
"""

import ast
import hashlib
import json
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import cache as once
from pathlib import Path

from lib.paths import ROOT, cache

TABLES = """
CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, value BLOB NOT NULL, version TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS versions (version TEXT PRIMARY KEY, opened REAL NOT NULL) WITHOUT ROWID;
"""
VALUES = "SELECT key, CAST(coalesce(value, '') AS BLOB) FROM scores"  # a damaged value can be of another type
ROW = "INSERT OR REPLACE INTO scores VALUES (?, ?, ?)"
DAYS = 30  # after which scores are dropped that belong to code which has not opened the file since
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)  # the last: the schema is not ours
SCORERS = ("scoring.py", "sentences.py")  # besides the models: what else makes the numbers that are kept
CHECK = 8  # bytes of checksum before each value: SQLite notices damage to its own structure only


class Store:
    """The kept scores of one model: ``get`` and ``put`` bytes by key. Safe for several processes at once."""

    def __init__(self, identity: Mapping[str, str], folder: Path | None = None):
        """Open the file for a model's ``identity``; a damaged file is moved aside and said so, never trusted."""
        folder = folder or cache() / "scores"
        self.path = folder / f"{digest(identity, TABLES, CHECK).hex()}.sqlite"
        self.connection: sqlite3.Connection | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._open()
        except (sqlite3.DatabaseError, OSError) as error:
            self._recover(error)

    def _open(self) -> None:
        self.connection = sqlite3.connect(self.path, timeout=60)
        # Not the faster write-ahead log: it fails on the shared disks of clusters.
        self.connection.execute("PRAGMA synchronous=NORMAL")
        self.connection.execute("PRAGMA auto_vacuum=FULL")  # what is dropped frees its room on the disk
        self.connection.executescript(TABLES)
        self.connection.execute("SELECT count(*) FROM scores").fetchone()
        with suppress(sqlite3.OperationalError):  # a file that only others may write can still be read
            self._drop_old()

    def _drop_old(self) -> None:
        """Forget the scores of older code. Two checkouts with one cache keep theirs, as long as both are used."""
        assert self.connection
        now, run = time.time(), self.connection.execute
        with self.connection:
            run("INSERT OR REPLACE INTO versions VALUES (?, ?)", (code_version(), now))
            old = run("SELECT version FROM versions WHERE opened < ?", (now - DAYS * 86400,)).fetchall()
            for version in old:  # seldom one, and only then is the whole file read
                run("DELETE FROM scores WHERE version = ?", version)
                run("DELETE FROM versions WHERE version = ?", version)

    def _recover(self, error: sqlite3.DatabaseError | OSError) -> None:
        """After damage go on with the rows that are whole, the damaged file kept beside; else go on without keeping."""
        if self.connection:
            self.connection.close()
        self.connection = None
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE:
            damaged = self.path.with_suffix(".damaged")
            try:
                self.path.replace(damaged)
                Path(f"{self.path}-journal").unlink(missing_ok=True)
                self._open()
                assert self.connection
                with self.connection:
                    rows = self.connection.executemany(ROW, rescued(damaged)).rowcount
                print(
                    f"The kept scores in {self.path.name} were damaged; moved to {damaged.name}, but for {max(rows, 0)} "
                    "that are whole.",
                    file=sys.stderr,
                )
                return
            except (sqlite3.DatabaseError, OSError) as another:
                error, self.connection = another, None
        print(f"Scores are not kept from here on in {self.path} ({error}); scoring goes on.", file=sys.stderr)

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The values that are kept among those of ``keys``."""
        if not self.connection:
            return {}
        asked = list(keys)
        try:
            found = [(key, self.connection.execute(f"{VALUES} WHERE key = ?", (key,)).fetchone()) for key in asked]
            kept = {key: row[1] for key, row in found if row}
            if not all(map(is_whole, kept.values())):
                raise damage("a value does not have its checksum")
        except sqlite3.DatabaseError as error:
            self._recover(error)
            return self.get(asked)
        return {key: value[CHECK:] for key, value in kept.items()}

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keep values, all of them or, if the process is killed meanwhile, none."""
        if not self.connection:
            return
        try:
            with self.connection:
                rows = [(key, checksum(value) + value, code_version()) for key, value in values.items()]
                self.connection.executemany(ROW, rows)
        except sqlite3.DatabaseError as error:
            self._recover(error)

    @property
    def megabytes(self) -> float:
        """Of the file on disk; 0 where nothing is kept."""
        return self.path.stat().st_size / 1e6 if self.path.exists() else 0.0


def checksum(value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=CHECK).digest()


def damage(what: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(what)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def is_whole(value: bytes) -> bool:
    """Whether a value as it lies in the file has its checksum."""
    return checksum(value[CHECK:]) == value[:CHECK]


def rescued(damaged: Path) -> Iterator[tuple[bytes, bytes, str]]:
    """The rows of this code that a damaged file still gives whole, as far as SQLite can read on."""
    with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(damaged)) as connection:
        for key, value in connection.execute(f"{VALUES} WHERE version = ?", (code_version(),)):
            if is_whole(value):
                yield key, value, code_version()


def digest(*parts: object) -> bytes:
    """Sixteen bytes that stand for some plain data: equal data, equal digest."""
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).digest()


@once
def code_version() -> str:
    """A digest of the code that makes scores, comments and layout aside: scores of other code are not reused."""
    files = [*sorted((ROOT / "lib" / "models").glob("*.py")), *(ROOT / "lib" / name for name in SCORERS)]
    return digest(*[ast.dump(ast.parse(file.read_text(encoding="utf-8"))) for file in files]).hex()
