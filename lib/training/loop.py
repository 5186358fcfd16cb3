"""Training that can be stopped and taken up again: one loop, one schedule, checkpoints and a log.

Nothing random is kept between steps: what step n sees follows from the seed and n alone. So a run that was killed and
goes on gives the same numbers as one that was not.
"""

import csv
import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lib.errors import LitmusError


class Schedule(NamedTuple):
    """Learning rate over a run: a linear rise over ``warm_up`` steps, a flat part, and a cosine over the last ``decay``.

    The flat part does not know where it ends, so a longer run takes up any checkpoint of a shorter one's flat part.
    """

    steps: int
    peak: float
    warm_up: int = 50
    decay: int = 0
    end: float = 0.02

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0; at the end it is ``end`` times the peak."""
        if step < self.warm_up:
            return self.peak * (step + 1) / self.warm_up
        into = step - (self.steps - self.decay)
        if into < 0:
            return self.peak
        share = 0.5 * (1 + math.cos(math.pi * min(1.0, (into + 1) / self.decay)))
        return self.peak * (self.end + (1 - self.end) * share)


class Task(NamedTuple):
    """What is trained: parameters by name, the loss of a step (a scalar tensor), and figures on held-out text."""

    parameters: Mapping[str, nn.Parameter]
    loss: Callable[[int], Tensor]
    evaluate: Callable[[], dict[str, float]]


def train(
    task: Task,
    schedule: Schedule,
    folder: Path,
    settings: Mapping[str, Any],
    every: int = 100,
    save_every: int = 50,
    betas: tuple[float, float] = (0.9, 0.98),
    weight_decay: float = 0.01,
    clip: float = 1.0,
    stop: int | None = None,
    say: Callable[[str], None] = print,
) -> list[dict[str, float]]:
    """Train up to ``schedule.steps`` steps (or ``stop``) with AdamW, taking up the checkpoint in ``folder`` if there is one.

    ``settings`` are what the run is made of; a checkpoint of other settings is refused. Every ``every`` steps the held-out
    figures are taken; the log (step, rate, training loss since the last entry, figures) is returned and kept as ``log.csv``.
    ``flat.pt`` is the checkpoint at which the decay began: a longer run goes on from there.
    Raises LitmusError for a checkpoint that this run cannot take up.
    """
    optimizer = torch.optim.AdamW(list(task.parameters.values()), betas=betas, weight_decay=weight_decay)
    folder.mkdir(parents=True, exist_ok=True)
    step, log, losses = _take_up(task, optimizer, schedule, folder, settings)
    last = min(schedule.steps, schedule.steps if stop is None else stop)
    while step < last:
        if step == schedule.steps - schedule.decay:
            _keep(folder / "flat.pt", task, optimizer, step, log, losses, schedule, settings)
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate(step)
        loss = task.loss(step)
        loss.backward()
        nn.utils.clip_grad_norm_(task.parameters.values(), clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        step += 1
        if step % every == 0 or step == schedule.steps:
            entry = {"step": step, "rate": schedule.rate(step - 1), "loss": sum(losses) / len(losses)}
            log.append(entry | task.evaluate())
            losses = []
            write_rows(log, folder / "log.csv")
            say(" ".join(f"{name} {value:.4g}" for name, value in log[-1].items()))
        if step % save_every == 0 or step == last:
            _keep(folder / "checkpoint.pt", task, optimizer, step, log, losses, schedule, settings)
    return log


def _keep(
    path: Path,
    task: Task,
    optimizer: torch.optim.Optimizer,
    step: int,
    log: list,
    losses: list,
    schedule: Schedule,
    settings: Mapping[str, Any],
) -> None:
    """Write a checkpoint whole or not at all."""
    state = {
        "parameters": {name: parameter.detach() for name, parameter in task.parameters.items()},
        "optimizer": optimizer.state_dict(),
        "step": step,
        "log": json.dumps(log),
        "losses": losses,
        "schedule": schedule._asdict(),
        "settings": json.dumps(settings, sort_keys=True),
    }
    part = path.with_suffix(".part")
    torch.save(state, part)
    os.replace(part, path)


def _take_up(
    task: Task, optimizer: torch.optim.Optimizer, schedule: Schedule, folder: Path, settings: Mapping[str, Any]
) -> tuple[int, list[dict[str, float]], list[float]]:
    """Put the state of ``folder/checkpoint.pt`` in place; its step, log and losses since the last entry."""
    path = folder / "checkpoint.pt"
    if not path.is_file():
        return 0, [], []
    kept = torch.load(path, weights_only=True)
    if kept["settings"] != json.dumps(settings, sort_keys=True):
        raise LitmusError(
            f"{path} was made with other settings ({kept['settings']}), so this run cannot go on from it; "
            "name another folder or remove it."
        )
    before = Schedule(**kept["schedule"])
    flat = min(before.steps - before.decay, schedule.steps - schedule.decay)
    if before != schedule and (kept["step"] > flat or before[1:3] != schedule[1:3]):
        raise LitmusError(
            f"{path} is at step {kept['step']} of another schedule ({before.steps} steps, {before.decay} of them decay), "
            f"so this run cannot go on from it; copy {folder / 'flat.pt'} over it, or name another folder."
        )
    with torch.no_grad():
        for name, parameter in task.parameters.items():
            parameter.copy_(kept["parameters"][name])
    optimizer.load_state_dict(kept["optimizer"])
    return kept["step"], json.loads(kept["log"]), list(kept["losses"])


def first_losses(task: Task, schedule: Schedule, steps: int = 3) -> list[dict[str, float]]:
    """The losses of the first steps of a run, which is not kept: what anyone should find who trains the same again."""
    losses: list[float] = []

    def noted(step: int) -> Tensor:
        loss = task.loss(step)
        losses.append(loss.item())
        return loss

    with tempfile.TemporaryDirectory() as folder:
        train(
            task._replace(loss=noted), schedule, Path(folder), {}, every=schedule.steps, stop=steps, say=lambda _: None
        )
    return [{"step": step, "loss": loss} for step, loss in enumerate(losses)]


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Rows as CSV, numbers with six digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
