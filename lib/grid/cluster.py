"""What is different on a SLURM cluster: why its jobs ended, and that none of them stays behind."""

import re
import shutil
import subprocess
from pathlib import Path

ENDED = re.compile(r"""SLURM-job\ '\d+'\ failed,\ SLURM\ status\ is:\ '(?P<status>\w+)'.*\n  # as the executor for SLURM logs it
    (?:.*\n)*?\s+output:\ (?P<out>.+?)\.json,.*\n\s+log:\ .*?,\ (?P<log>.+?\.log)\b""", re.VERBOSE)  # fmt: skip
REFUSED = re.compile(
    r"SLURM sbatch failed. The error message was '(?P<why>[^\n]*)'(?:.*\n)*?\s+output: (?P<out>.+?)\.json,"
)
ADVICE = {
    "TIMEOUT": "at its time limit; ask for more by runtime in the profile",
    "OUT_OF_MEMORY": "for want of memory; ask for more by mem_mb in the profile, or in data/models.csv",
    "CANCELLED": "because somebody cancelled it",
    "NODE_FAIL": "because its node failed; run the grid again",
}


def reasons(log: str) -> dict[str, str]:
    """Why jobs of a SLURM cluster left no results, in words, by their ``out``: read in a log of snakemake."""
    reasons = {found["out"]: f"SLURM took no job of it ({found['why'].strip()})" for found in REFUSED.finditer(log)}
    for found in ENDED.finditer(log):
        status = found["status"]
        advice = ADVICE.get(status, f"and its log says why: {found['log']}")
        reasons[found["out"]] = f"SLURM ended it ({status}) {advice}"
    return reasons


def cancel(log: str) -> None:
    """Cancel whatever a stopped run still has on a SLURM cluster.

    snakemake does so too, but for jobs whose state it is asking for, or whose number it is waiting for, just then.
    """
    if (name := re.search(r"SLURM run ID: (\S+)", log)) and shutil.which("scancel"):
        subprocess.run(["scancel", "--name", name[1]], capture_output=True)


def last_log(root: Path) -> str:
    """What snakemake logged in its last run; "" where it did not."""
    logs = sorted((root / ".snakemake" / "log").glob("*.log"), key=lambda path: path.stat().st_mtime)
    return logs[-1].read_text(encoding="utf-8", errors="replace") if logs else ""


def is_of_a_cluster(profile: Path) -> bool:
    """True where a profile of snakemake names an executor, which takes the jobs elsewhere."""
    import yaml

    settings = profile / "config.yaml"
    return settings.is_file() and "executor" in (yaml.safe_load(settings.read_text(encoding="utf-8")) or {})
