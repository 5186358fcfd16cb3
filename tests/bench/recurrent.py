"""Time and memory of a recurrent checkpoint of the published size (650 units, two layers, 50,000 words) on published pairs.

``python -m tests.bench.recurrent`` makes the checkpoint with random weights in the oldest layout (a whole pickled model, not
zipped), evaluates the 820 rows of the published English file in the shell (``LITMUS_DATASETS``; our own sentences without it),
and prints minutes, processor time and peak memory; ``--write`` puts that into ``tests/bench/RECURRENT.md``. Goal: two minutes
on two cores, two gigabytes. On a machine that is busy with other things only the processor time says something.
"""

import argparse
import datetime
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import torch
from torch import nn

from lib import formats
from lib.models.recurrent import words_of
from lib.paths import DATA, ROOT

RESULTS = Path(__file__).parent / "RECURRENT.md"
PUBLISHED = "colorless-green/agreement/English/generated.tab"
OURS = DATA / "items" / "long_distance" / "long_distance.tab"
WORDS, UNITS, LAYERS = 50_001, 650, 2
RUNS = {
    "target word, `eos`": ["--mode", "target-word"],
    "target word, `zero`": ["--mode", "target-word", "--start-state", "zero"],
    "target word, `carry`": ["--mode", "target-word", "--start-state", "carry"],
    "whole sentence, `eos`": ["--mode", "whole-sentence"],
}
MINUTES, GIGABYTES = 2.0, 2.0


class RNNModel(nn.Module):
    """The layout of the published checkpoints."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(WORDS, UNITS)
        self.rnn = nn.LSTM(UNITS, UNITS, LAYERS, dropout=0.2)
        self.decoder = nn.Linear(UNITS, WORDS)
        self.rnn_type, self.nhid, self.nlayers = "LSTM", UNITS, LAYERS


def made_up(folder: Path, texts: list[str]) -> Path:
    """A checkpoint with random weights whose vocabulary holds the words of ``texts``, in ``folder``."""
    known = ["<unk>", "<eos>", *sorted({word for text in texts for word in words_of(text)})]
    words = [*known, *(f"word{number}" for number in range(WORDS - len(known)))]
    module = types.ModuleType("model")
    module.RNNModel, module.__file__ = RNNModel, __file__
    sys.modules["model"], RNNModel.__module__ = module, "model"
    torch.manual_seed(0)
    torch.save(RNNModel(), folder / "hidden650.pt", _use_new_zipfile_serialization=False)
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    return folder / "hidden650.pt"


def measured(data: Path, checkpoint: Path, flags: list[str], scratch: Path) -> dict[str, float]:
    """Minutes, processor minutes and peak gigabytes of one command, nothing kept from before."""
    before = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "lib.evaluate",
        "--data",
        data,
        "--model",
        checkpoint,
        *flags,
        "--out",
        scratch / "rows.tsv",
    ]
    environment = {**os.environ, "LITMUS_CACHE": str(scratch / "cache"), "LITMUS_QUIET": "1"}
    with subprocess.Popen(
        list(map(str, command)), cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        told = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, told
    rows = len((scratch / "rows.tsv").read_text(encoding="utf-8").splitlines()) - 1
    minutes, worked = (time.perf_counter() - before) / 60, (used.ru_utime + used.ru_stime) / 60
    return {"minutes": minutes, "worked": worked, "gigabytes": _gigabytes(used), "pairs": rows}


def _gigabytes(used: resource.struct_rusage) -> float:
    return used.ru_maxrss * (1 if platform.system() == "Darwin" else 1024) / 1e9


def told(found: dict[str, dict[str, float]], data: Path) -> str:
    """The result as a small Markdown page."""
    lines = [
        f"| {name} | {row['pairs']:.0f} | {row['minutes']:.2f} | {row['worked']:.2f} | {row['gigabytes']:.2f} |"
        for name, row in found.items()
    ]
    threads, load = torch.get_num_threads(), os.getloadavg()[0]
    machine = f"{os.cpu_count()} processors, {threads} threads, load {load:.1f}, {platform.system()}"
    return f"""# A recurrent checkpoint of the published size: time and memory

LSTM with {LAYERS} layers of {UNITS} units and {WORDS:,} words (random weights, a whole pickled model in the old format), \
`python -m lib.evaluate` on `{data.name}`, start of Python and loading included.

| mode | pairs | minutes | processor minutes | peak GB |
|---|---|---|---|---|
{chr(10).join(lines)}

{datetime.date.today()}, {machine}; \
Python {platform.python_version()}, torch {torch.__version__}. Again: `python -m tests.bench.recurrent --write`.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Time and memory of a recurrent checkpoint of the published size.")
    parser.add_argument("--only", default="", help="the runs whose name holds this text")
    parser.add_argument("--write", action="store_true", help=f"write the result to {RESULTS.name}")
    asked = parser.parse_args()
    published = Path(os.environ.get("LITMUS_DATASETS") or "/nonexistent") / PUBLISHED
    data = published if published.is_file() else OURS
    pairs = formats.read(data)
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        checkpoint = made_up(Path(scratch), [*pairs["sentence_good"], *pairs["sentence_bad"]])
        for number, (name, flags) in enumerate(RUNS.items()):
            if asked.only not in name:
                continue
            room = Path(scratch) / str(number)
            room.mkdir()
            found[name] = measured(data, checkpoint, flags, room)
            print(name, found[name], file=sys.stderr, flush=True)
    page = told(found, data)
    print(page)
    if asked.write:
        RESULTS.write_text(page, encoding="utf-8")
    if any(row["minutes"] > MINUTES or row["gigabytes"] > GIGABYTES for row in found.values()):
        print(f"Not as it should be: at most {MINUTES:.0f} minutes and {GIGABYTES:.0f} GB.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
