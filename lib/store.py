"""Kept scores: what a model said once is not asked again.

One SQLite file per model under the cache. A row is one context under one method; it is written as soon as its batch is
done, so a killed run goes on where it stopped. The file's name is a digest of all that identifies the model (weights,
tokenizer, dtype, ...), a row's key holds all that the numbers depend on besides: two models or methods never meet.
"""

import ast
import hashlib
import json
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from functools import cache as once
from pathlib import Path

from lib.paths import ROOT, cache

TABLE = "CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"


class Store:
    """The kept scores of one model: ``get`` and ``put`` bytes by key. Safe for several processes at once."""

    def __init__(self, identity: Mapping[str, str], folder: Path | None = None):
        """Open the file for a model's ``identity``; a damaged file is moved aside and said so, never trusted."""
        folder = folder or cache() / "scores"
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{digest(identity).hex()}.sqlite"
        try:
            self._open()
        except sqlite3.DatabaseError:
            damaged = self.path.with_suffix(".damaged")
            self.path.replace(damaged)
            for rest in ("-wal", "-shm"):
                Path(f"{self.path}{rest}").unlink(missing_ok=True)
            print(f"The kept scores in {self.path.name} were damaged; moved to {damaged.name}.", file=sys.stderr)
            self._open()

    def _open(self) -> None:
        self.connection = sqlite3.connect(self.path, timeout=60)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute(TABLE)
        self.connection.execute("SELECT count(*) FROM scores").fetchone()

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The values that are kept among those of ``keys``."""
        find = "SELECT value FROM scores WHERE key = ?"
        found = ((key, self.connection.execute(find, (key,)).fetchone()) for key in keys)
        return {key: row[0] for key, row in found if row}

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keep values, all of them or, if the process is killed meanwhile, none."""
        with self.connection:
            self.connection.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?)", values.items())

    @property
    def megabytes(self) -> float:
        return sum(file.stat().st_size for file in self.path.parent.glob(f"{self.path.name}*")) / 1e6


def digest(*parts: object) -> bytes:
    """Sixteen bytes that stand for some plain data: equal data, equal digest."""
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).digest()


@once
def code_version() -> str:
    """A digest of the code that makes scores, comments and layout aside: scores of other code are not reused."""
    files = [*sorted((ROOT / "lib" / "models").glob("*.py")), ROOT / "lib" / "scoring.py"]
    return digest(*[ast.dump(ast.parse(file.read_text(encoding="utf-8"))) for file in files]).hex()
