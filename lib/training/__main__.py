"""Train the bundled models: ``python -m lib.training masked`` and ``python -m lib.training recurrent``.

A run goes on from its last checkpoint, so it may be stopped at any time; hours on two cores, less on a GPU.
"""

from pathlib import Path
from typing import Annotated

import typer

from lib.paths import cache
from lib.say import told

app = typer.Typer(add_completion=False)


def folder_of(name: str) -> Path:
    """Where the checkpoints of a run are kept."""
    return cache() / "training" / name


@app.command()
def books() -> None:
    """Get the books that the models are trained on, about 13 MB of text, into the cache (or the folder LITMUS_CORPORA)."""
    from lib.training import corpora

    with told():
        corpora.fetch_books(corpora.folder_of_books(), typer.echo)


@app.command()
def exclude() -> None:
    """Add to data/models/excluded.txt what shares five words in a row with an item, ours or published (where it lies here).

    What is listed stays so: a longer list is another text, and asks for training anew.
    """
    from lib import published
    from lib.models import bundled
    from lib.paths import DATA
    from lib.training import corpora

    with told():
        folders = [DATA / "items", *filter(None, [published.find()])]
        text = corpora.everything(bundled.summaries(), corpora.folder_of_books())
        added = corpora.exclude(text, corpora.Forbidden(item for one in folders for item in corpora.item_texts(one)))
    typer.echo(f"{added} sentences added, by items of {', '.join(map(str, folders))}")


@app.command()
def masked(
    steps: Annotated[int, typer.Option(min=1, help="steps in all")] = 900,
    decay: Annotated[int, typer.Option(min=0, help="of them at the end, with a falling rate")] = 300,
    peak: Annotated[float, typer.Option(help="learning rate of the flat part")] = 2e-3,
    warm_up: Annotated[int, typer.Option(min=1)] = 50,
    rank: Annotated[int, typer.Option(min=1)] = 16,
    lowest: Annotated[int, typer.Option(min=0, max=5, help="the first of the six layers that is updated")] = 2,
    pieces: Annotated[int, typer.Option(min=130, help="places of a batch")] = 1024,
    share: Annotated[float, typer.Option(help="of the pieces masked")] = 0.3,
    seed: Annotated[int, typer.Option()] = 0,
    run: Annotated[str, typer.Option(help="name of the run's folder in the cache")] = "masked",
    threads: Annotated[int, typer.Option(min=0, help="0: as many as torch chooses")] = 0,
) -> None:
    """The masked model: a head and low-rank updates for the bundled encoder."""
    from lib.training import masked as masked_training
    from lib.training.loop import Schedule, first_losses, train, write_rows

    settings = masked_training.Settings(rank=rank, lowest=lowest, share=share, pieces=pieces, seed=seed)
    schedule, folder = Schedule(steps, peak, warm_up, decay), folder_of(run)
    with told():
        use(threads)
        network, task = masked_training.prepared(settings)
        if not (folder / "first_losses.csv").is_file():
            folder.mkdir(parents=True, exist_ok=True)
            write_rows(first_losses(task, schedule), folder / "first_losses.csv")
            network, task = masked_training.prepared(settings)
        train(task, schedule, folder, settings._asdict(), say=_say)
        masked_training.save_adapter(network, folder / "adapter.safetensors")
    typer.echo(f"{folder / 'adapter.safetensors'}")


@app.command()
def recurrent(
    steps: Annotated[int, typer.Option(min=1, help="steps in all")] = 22_500,
    decay: Annotated[int, typer.Option(min=0, help="of them at the end, with a falling rate")] = 7_500,
    peak: Annotated[float, typer.Option(help="learning rate of the flat part")] = 2e-3,
    warm_up: Annotated[int, typer.Option(min=1)] = 200,
    dropout: Annotated[float, typer.Option()] = 0.2,
    seed: Annotated[int, typer.Option()] = 0,
    run: Annotated[str, typer.Option(help="name of the run's folder in the cache")] = "recurrent",
    threads: Annotated[int, typer.Option(min=0, help="0: as many as torch chooses")] = 0,
) -> None:
    """The word-level LSTM."""
    from lib.models.recurrent import save
    from lib.training import recurrent as recurrent_training
    from lib.training.loop import Schedule, first_losses, train, write_rows

    settings = recurrent_training.Settings(dropout=dropout, seed=seed)
    schedule, folder = Schedule(steps, peak, warm_up, decay), folder_of(run)
    with told():
        use(threads)
        data, network, task = recurrent_training.prepared(settings)
        if not (folder / "first_losses.csv").is_file():
            folder.mkdir(parents=True, exist_ok=True)
            write_rows(first_losses(task, schedule), folder / "first_losses.csv")
            network, task = recurrent_training.task(data, settings)
        train(task, schedule, folder, settings._asdict(), every=1000, save_every=250, say=_say)
        save(folder / "model", network.half(), data.vocabulary)
        write_rows(recurrent_training.figures(network.float(), data), folder / "model" / "held_out.csv")
    typer.echo(f"{folder / 'model'}")


@app.command()
def measure(
    adapters: Annotated[list[Path], typer.Argument(help="adapter.safetensors of masked models, to compare")],
    out: Annotated[Path | None, typer.Option(help="a CSV file for the figures")] = None,
    threads: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Held-out loss and top-1 accuracy of masked models, all on the same places."""
    import pandas as pd

    from lib.training import masked as masked_training
    from lib.training.loop import write_rows

    with told():
        use(threads)
        rows = masked_training.figures(adapters)
        typer.echo(pd.DataFrame(rows).to_string(index=False))
        if out:
            write_rows(rows, out)


def use(threads: int) -> None:
    """Let torch use so many threads; 0 leaves the choice to torch."""
    import torch

    if threads:
        torch.set_num_threads(threads)


def _say(line: str) -> None:
    from datetime import datetime

    typer.echo(f"{datetime.now():%H:%M:%S} {line}")


if __name__ == "__main__":
    app()
