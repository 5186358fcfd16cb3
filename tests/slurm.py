"""A make-believe SLURM cluster, run by the tests only: commands of SLURM's names that run each job on this machine.

``install`` makes them. What they know is what snakemake's executor asks: ``sbatch`` takes a command and gives a number,
``sacct`` and ``squeue`` tell states, ``scancel`` ends jobs, ``srun`` runs a step. A job past its limit is stopped, a minute of
it lasting ``MINUTE`` seconds. What each job asked for is kept in its folder.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

MINUTE = 0.5
COMMANDS = ("sbatch", "sacct", "squeue", "scancel", "srun", "sinfo", "scontrol", "sacctmgr", "sshare")


def install(folder: Path) -> dict[str, str]:
    """Make the commands in ``folder``; returns the environment in which they come first."""
    folder.mkdir(parents=True)
    for name in COMMANDS:
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{__file__}" "{folder}" {name} "$@"\n')
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def asked(folder: Path) -> list[dict]:
    """What each job asked for, in the order of their numbers: its options, its command, and the ``state`` it is in."""
    jobs = sorted(folder.glob("job-*"), key=lambda job: int(job.name.removeprefix("job-")))
    return [json.loads((job / "options").read_text()) | {"state": (job / "state").read_text()} for job in jobs]


def options_of(words: list[str]) -> dict[str, str]:
    """``--name value``, ``--name=value``, ``-n value`` and plain ``--name``."""
    found, waiting = {}, ""
    for word in words:
        if word.startswith("-"):
            name, equals, value = word.partition("=")
            found[name.lstrip("-")] = value
            waiting = "" if equals else name.lstrip("-")
        elif waiting:
            found[waiting], waiting = word, ""
    return found


def sbatch(folder: Path, words: list[str]) -> None:
    number = 1
    while True:
        try:
            job = folder / f"job-{number}"
            job.mkdir()
            break
        except FileExistsError:
            number += 1
    options = options_of(words)
    (job / "state").write_text("PENDING")
    (job / "options").write_text(json.dumps(options))
    log = Path(options["output"].replace("%j", str(number)))
    with log.open("w") as text:
        command = [sys.executable, "-S", __file__, str(folder), "start", str(number)]
        subprocess.Popen(
            command, cwd=options["D"], stdin=subprocess.DEVNULL, stdout=text, stderr=text, start_new_session=True
        )
    print(number)


def start(folder: Path, words: list[str]) -> None:
    """One job from its beginning to its end, in a group of processes of its own."""
    job = folder / f"job-{words[0]}"
    options = json.loads((job / "options").read_text())
    environment = os.environ | {"SLURM_JOB_ID": words[0]}
    if (job / "cancelled").exists():
        return put(job, "CANCELLED")
    process = subprocess.Popen(options["wrap"], shell=True, env=environment, start_new_session=True)
    (job / "group").write_text(str(process.pid))
    put(job, "RUNNING")
    try:
        code = process.wait(float(options["t"]) * MINUTE)
        state = "FAILED" if code else "COMPLETED"
    except subprocess.TimeoutExpired:
        state = "TIMEOUT"
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    put(job, "CANCELLED" if (job / "cancelled").exists() else state)


def put(job: Path, state: str) -> None:
    """Write a state so that nobody reads half of it."""
    (job / "state.new").write_text(state)
    (job / "state.new").replace(job / "state")


def sacct(folder: Path, words: list[str]) -> None:
    """Numbers and states of the jobs of a name; nothing about steps, accounts and reasons."""
    options = options_of(words)
    if "name" not in options:
        return
    for job in folder.glob("job-*"):
        if (job / "options").exists() and json.loads((job / "options").read_text())["job-name"] == options["name"]:
            print(f"{job.name.removeprefix('job-')}|{(job / 'state').read_text()}")


def scancel(folder: Path, words: list[str]) -> None:
    """Cancel jobs by their numbers, or all of a name that have not ended."""
    name = options_of(words).get("name")
    for job in folder.glob("job-*"):
        named = name and json.loads((job / "options").read_text())["job-name"] == name
        if (job.name.removeprefix("job-") in words or named) and (job / "state").read_text() in ("PENDING", "RUNNING"):
            (job / "cancelled").touch()
            if (job / "group").exists():
                os.killpg(int((job / "group").read_text()), signal.SIGTERM)


def srun(_: Path, words: list[str]) -> None:
    step = next(index for index, word in enumerate(words) if not word.startswith("-"))
    os.execvp(words[step], words[step:])


def main(folder: str, command: str, *words: str) -> None:
    known = {"sbatch": sbatch, "start": start, "sacct": sacct, "squeue": sacct, "scancel": scancel, "srun": srun}
    if command in known:
        known[command](Path(folder), list(words))
    elif command == "sinfo":
        print("PARTITION\nshort\nlong*")
    elif command == "scontrol":
        print("MaxArraySize = 1001\nMinJobAge = 300 sec")


if __name__ == "__main__":
    main(*sys.argv[1:])
