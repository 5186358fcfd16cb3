"""Pairs of sentences per second: ours, minicons, the evaluation harness, a plain Hugging Face loop, and the bound.

``python -m tests.bench.sentences`` runs all on the same items, interleaved and repeated, with one thread, and prints processor
seconds (robust against what else the machine does) and wall time, ratios with their spread, and the tokens that each feeds
to the network per pair; ``--write`` puts that into ``tests/bench/RESULTS.md``. minicons and the harness come with
``pip install -e '.[bench]'``; what is not installed is left out and said so. Published pairs are read where
``LITMUS_DATASETS`` names them, else our own.

The *bound* is the bare network on the distinct beginnings of the items, perfectly packed: nobody who needs all of their
distributions can be faster without another network. ``--growth`` measures time and peak memory for 1,000, 4,000 and 16,000
pairs with a small network of the bundled model's vocabulary.
"""

import argparse
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lib import scoring
from lib.items import gaps, read_agreement, read_verbs
from lib.models import Gap, load
from lib.models.masked import Numbered, masked_together, words_of
from lib.paths import DATA, ROOT
from lib.sentences import reduce, score

RESULTS = Path(__file__).parent / "RESULTS.md"
BATCH = 32  # sentences a batch of the others: what their users take on a processor
RUNS = 3
PARADIGMS = ("distractor_agreement_relational_noun", "npi_present_1", "principle_A_domain_1", "wh_island")
TEMPLATE = "obj_rel_across_anim"
GROWTH = (1_000, 4_000, 16_000)
Pair = tuple[str, str]
Scores = np.ndarray  # shape (pairs, 2), natural log


# --- items ----------------------------------------------------------------------------------------------------------


def blimp_pairs(each: int) -> tuple[str, list[Pair]]:
    """Pairs of whole sentences, ``each`` of some paradigms: published where they are, else ours."""
    published = Path(os.environ.get("LITMUS_DATASETS") or "/nonexistent") / "blimp"
    folder = published if published.is_dir() else DATA / "items" / "minimal_pairs"
    files = [folder / f"{name}.jsonl" for name in PARADIGMS]
    files = [file for file in files if file.exists()] or sorted(folder.glob("*.jsonl"))[:4]
    pairs = [pair for file in files for pair in read_pairs(file)[:each]]
    return f"{'BLiMP' if folder == published else 'our minimal pairs'}: {', '.join(file.stem for file in files)}", pairs


def read_pairs(file: Path) -> list[Pair]:
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [(row["sentence_good"], row["sentence_bad"]) for row in rows]


def agreement_pairs(count: int) -> tuple[str, list[Pair]]:
    """Pairs of an agreement template, whose items share long beginnings: published where they are, else ours."""
    published = (
        Path(os.environ.get("LITMUS_DATASETS") or "/nonexistent") / "refining-tse" / "ML" / f"{TEMPLATE}_all.jsonl"
    )
    if published.exists():
        return f"Marvin and Linzen's {TEMPLATE} (the first ones)", read_pairs(published)[:count]
    return f"our {TEMPLATE}", read_pairs(DATA / "items" / "agreement" / f"{TEMPLATE}.jsonl")[:count]


def flat(pairs: list[Pair]) -> list[str]:
    return [sentence for pair in pairs for sentence in pair]


# --- who scores -----------------------------------------------------------------------------------------------------


def ours(model: Any, pairs: list[Pair], **choices: str) -> Scores:
    """Through ``lib.sentences``, as the notebooks do, without kept scores."""
    return np.array([reduce(found) for found in score(model, flat(pairs), **choices)]).reshape(-1, 2)


def minicons_causal(model: Any, pairs: list[Pair]) -> Scores:
    from minicons.scorer import IncrementalLMScorer

    scorer = IncrementalLMScorer(model.network, "cpu", tokenizer=model.tokenizer)
    return _in_batches(pairs, lambda some: scorer.sequence_score(some, reduction=_sum, bos_token=True))


def minicons_masked(model: Any, pairs: list[Pair], size: int) -> Scores:
    """Every masked copy of a batch goes through at once, so that ``size`` matters more than elsewhere."""
    from minicons.scorer import MaskedLMScorer

    model.tokenizer.batch_encode_plus = model.tokenizer  # gone from transformers 5; minicons 0.3.39 still calls it
    scorer = MaskedLMScorer(model.network, "cpu", tokenizer=model.tokenizer)
    return _in_batches(
        pairs, lambda some: scorer.sequence_score(some, reduction=_sum, PLL_metric="within_word_l2r"), size
    )


def _sum(values: torch.Tensor) -> float:
    return values.sum(0).item()


def _in_batches(pairs: list[Pair], scored: Callable[[list[str]], list[float]], size: int = BATCH) -> Scores:
    sentences = flat(pairs)
    found = [value for start in range(0, len(sentences), size) for value in scored(sentences[start : start + size])]
    return np.array(found).reshape(-1, 2)


def harness(model: Any, pairs: list[Pair]) -> Scores:
    """As its BLiMP task asks: each whole sentence after an empty context, that is after the start token."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    scorer = HFLM(pretrained=model.network, tokenizer=model.tokenizer, batch_size=BATCH, device="cpu")
    requests = [Instance("loglikelihood", {}, ("", sentence), at) for at, sentence in enumerate(flat(pairs))]
    return np.array([found[0] for found in scorer.loglikelihood(requests, disable_tqdm=True)]).reshape(-1, 2)


@torch.inference_mode()
def plain_causal(model: Any, pairs: list[Pair]) -> Scores:
    """What one writes: sorted by length, padded, in batches, the log-softmax of everything."""
    sentences, start = flat(pairs), model.tokenizer.bos_token_id
    ids = [[start, *row] for row in model.tokenizer(sentences, add_special_tokens=False)["input_ids"]]
    found, order = np.empty(len(ids)), sorted(range(len(ids)), key=lambda row: len(ids[row]))
    for at in range(0, len(order), BATCH):
        some = order[at : at + BATCH]
        width = max(len(ids[row]) for row in some)
        padded = torch.tensor([ids[row] + [0] * (width - len(ids[row])) for row in some])
        mask = torch.tensor([[1] * len(ids[row]) + [0] * (width - len(ids[row])) for row in some])
        logs = model.network(padded, attention_mask=mask).logits[:, :-1].log_softmax(-1)
        values = logs.gather(2, padded[:, 1:, None])[:, :, 0] * mask[:, 1:]
        found[some] = values.sum(1).numpy()
    return found.reshape(-1, 2)


@torch.inference_mode()
def bound_causal(model: Any, pairs: list[Pair], width: int = 128, rows: int = 4) -> None:
    """The bare network on as many tokens as the items have distinct beginnings, in full rows."""
    tokens = distinct_beginnings(model, pairs)
    ids = torch.arange(tokens) % 1000 + 100
    for some in ids.split(width * rows):
        full = some[: len(some) // width * width].view(-1, width)
        for part in (full, some[full.numel() :][None]):
            if part.numel():
                model.network(part, use_cache=False)


def distinct_beginnings(model: Any, pairs: list[Pair]) -> int:
    """How many distinct beginnings the sentences have, start token included and last tokens left out."""
    ids = model.tokenizer(flat(pairs), add_special_tokens=False)["input_ids"]
    return len({tuple(row[:end]) for row in ids for end in range(len(row))})


@torch.inference_mode()
def bound_masked(model: Any, tokens: int, length: int) -> None:
    """The bare encoder, without an output layer, on so many tokens in full rows of a usual ``length``."""
    ids = (torch.arange(tokens // length * length) % 1000 + 1000).view(-1, length)
    for some in ids.split(max(1, model.token_budget // length)):
        model.network.base_model(input_ids=some)


def masked_copies(model: Any, pairs: list[Pair]) -> tuple[int, int]:
    """Tokens in the distinct masked copies of all sentences, and the usual length of one."""
    copies = Numbered()
    for scores in model.score(flat(pairs)):
        ids = model.tokenizer(scores.sentence)["input_ids"]
        for masked in masked_together(
            range(1, len(ids) - 1), words_of(scores.sentence, scores.spans), "within_word_l2r"
        ):
            _ = copies[tuple(token if at not in masked else -1 for at, token in enumerate(ids))]
    lengths = [len(copy) for copy in copies]
    return sum(lengths), round(np.mean(lengths))


@torch.inference_mode()
def plain_masked_target(model: Any, items: Any) -> Scores:
    """A masked target word the plain way: for both sentences the word masked, the whole distribution at every place."""
    texts, forms = [], []
    for row in items.itertuples():
        for form in (row.good, row.bad):
            texts.append(f"{row.left} {model.tokenizer.mask_token} {row.right}.")
            forms.append(model.tokenizer.convert_tokens_to_ids(form))
    found: list[float] = []
    for at in range(0, len(texts), BATCH):
        inputs = model.tokenizer(texts[at : at + BATCH], return_tensors="pt", padding=True)
        logs = model.network(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits.log_softmax(
            -1
        )
        for row, ids in enumerate(inputs["input_ids"].tolist()):
            found.append(logs[row, ids.index(model.tokenizer.mask_token_id), forms[at + row]].item())
    return np.array(found).reshape(-1, 2)


def our_masked_target(model: Any, items: Any) -> Scores:
    """Through ``lib.scoring``: each context once, both forms read off."""
    fills = scoring.fill(model, gaps(items, False), [*items["good"], *items["bad"]])
    return np.stack([fills.at("log_probability", items[which]) for which in ("good", "bad")], 1)


def whole_forms(model: Any, lemmas: int) -> tuple[Gap, list[str]]:
    """A context, and the forms of so many lemmas of our list."""
    verbs = read_verbs(DATA / "verbs.csv").sample(lemmas, random_state=0)
    return Gap("The keys to the cabinet", "in the garden."), [*verbs["singular"], *verbs["plural"]]


def our_whole_forms(model: Any, gap: Gap, forms: list[str]) -> Scores:
    """Through ``lib.scoring``, as EW and MW take them."""
    fills = scoring.fill(model, [gap], forms, target_policy="whole_word")
    return fills.values["log_probability"][0, fills.columns(forms)].reshape(2, -1).T


@torch.inference_mode()
def plain_whole_forms(model: Any, gap: Gap, forms: list[str]) -> Scores:
    """Each form by itself, in padded batches: a text a form where the model is causal, a masked copy a piece where not."""
    words, mask = [model.word(form).ids for form in forms], model.tokenizer.mask_token_id
    rows, reads = [], []  # a row of ids, and (place, token, number of the form) to read there; -1 for a boundary
    if model.family == "causal":
        left = model.tokenizer(gap.left, add_special_tokens=False)["input_ids"]
        for number, ids in enumerate(words):
            rows.append([*left, *ids])
            reads.append([(len(left) - 1 + at, token, number) for at, token in enumerate([*ids, -1])])
    else:
        text = model.tokenizer(f"{gap.left} {model.tokenizer.mask_token} {gap.right}")["input_ids"]
        at = text.index(mask)
        for number, ids in enumerate(words):
            for i, token in enumerate(ids):
                rows.append([*text[:at], *ids[:i], *[mask] * (len(ids) - i), *text[at + 1 :]])
                reads.append([(at + i, token, number)])
    totals, order = np.zeros(len(forms)), sorted(range(len(rows)), key=lambda row: len(rows[row]))
    for some in (order[start : start + BATCH] for start in range(0, len(order), BATCH)):
        width = max(len(rows[row]) for row in some)
        padded = torch.tensor([rows[row] + [0] * (width - len(rows[row])) for row in some])
        seen = torch.tensor([[1] * len(rows[row]) + [0] * (width - len(rows[row])) for row in some])
        logs = model.network(padded, attention_mask=seen).logits.log_softmax(-1)
        for line, row in zip(logs, some, strict=True):
            for place, token, number in reads[row]:
                found = line[place, token] if token >= 0 else line[place, model.boundary_ids].logsumexp(0)
                totals[number] += found.item()
    return totals.reshape(2, -1).T


# --- how beginnings may be shared -----------------------------------------------------------------------------------


@torch.inference_mode()
def with_cache(model: Any, pairs: list[Pair]) -> Scores:
    """The other way to share: what both sentences begin with goes through once, its keys and values serve both rests."""
    start, ids = model.tokenizer.bos_token_id, model.tokenizer(flat(pairs), add_special_tokens=False)["input_ids"]
    both = [([start, *one], [start, *other]) for one, other in zip(ids[::2], ids[1::2], strict=True)]
    common = [
        next((at for at, (a, b) in enumerate(zip(*pair, strict=False)) if a != b), min(map(len, pair))) for pair in both
    ]
    common = [min(at, min(map(len, pair)) - 1) for at, pair in zip(common, both, strict=True)]
    found = np.empty((len(pairs), 2))
    for length in sorted(set(common)):
        here = [number for number, at in enumerate(common) if at == length]
        for first in range(0, len(here), BATCH):
            some = here[first : first + BATCH]
            head = torch.tensor([both[number][0][:length] for number in some])
            prefix = model.network(head, use_cache=True)
            logs = prefix.logits.log_softmax(-1)
            of_prefix = logs[:, :-1].gather(2, head[:, 1:, None])[:, :, 0].sum(1)
            rests = [row[length:] for number in some for row in both[number]]
            width = max(map(len, rests))
            tail = torch.tensor([row + [0] * (width - len(row)) for row in rests])
            mask = torch.tensor([[1] * (length + len(row)) + [0] * (width - len(row)) for row in rests])
            prefix.past_key_values.batch_repeat_interleave(2)
            after = model.network(tail, attention_mask=mask, past_key_values=prefix.past_key_values).logits.log_softmax(
                -1
            )
            before = torch.cat([logs[:, -1:].repeat_interleave(2, 0), after[:, :-1]], 1)
            values = (before.gather(2, tail[:, :, None])[:, :, 0] * mask[:, length:]).sum(1)
            found[some] = (of_prefix[:, None] + values.view(-1, 2)).numpy()
    return found


# --- measuring ------------------------------------------------------------------------------------------------------


class Counted:
    """How many tokens a network was fed, and the processor seconds that its forward took."""

    def __init__(self) -> None:
        self.tokens, self.seconds = 0, 0.0

    @contextlib.contextmanager
    def watching(self, network: Any) -> Iterator["Counted"]:
        plain = network.forward

        def forward(*arguments: Any, **named: Any) -> Any:
            ids = arguments[0] if arguments else named["input_ids"]
            self.tokens += ids.numel()
            begun = time.process_time()
            try:
                return plain(*arguments, **named)
            finally:
                self.seconds += time.process_time() - begun

        network.forward = forward
        try:
            yield self
        finally:
            network.forward = plain


def available() -> dict[str, str]:
    """The versions of those tools that are installed here."""
    names = {"minicons": "minicons", "lm_eval": "lm-eval"}
    return {
        module: importlib.metadata.version(name) for module, name in names.items() if importlib.util.find_spec(module)
    }


def compared(model: Any, works: dict[str, Callable[[], Scores | None]], count: int, runs: int) -> dict[str, dict]:
    """Interleaved runs of ``works``: processor and wall seconds, tokens fed per pair, share inside the forward, scores."""
    found: dict[str, dict] = {name: {"cpu": [], "wall": [], "inside": []} for name in works}
    for _ in range(runs):
        for name, work in works.items():
            with Counted().watching(model.network) as counted:
                cpu, wall = time.process_time(), time.perf_counter()
                scores = work()
                found[name]["cpu"].append(time.process_time() - cpu)
                found[name]["wall"].append(time.perf_counter() - wall)
            found[name]["inside"].append(counted.seconds / found[name]["cpu"][-1])
            found[name] |= {"tokens": counted.tokens / count, "scores": scores}
    return found


def table(found: dict[str, dict], count: int, names: dict[str, str]) -> str:
    """Markdown: pairs per processor second and per second, tokens fed per pair, how many times as fast ours is, agreement."""
    reference = found["ours"]
    lines = [
        "| | pairs per processor second | pairs per second | tokens fed per pair | ours is faster by | largest difference |",
        "|---|---|---|---|---|---|",
    ]
    for name, of in found.items():
        ratio = np.array(of["cpu"]) / np.array(reference["cpu"])
        off = (
            "" if of["scores"] is None or name == "ours" else f"{np.abs(of['scores'] - reference['scores']).max():.0e}"
        )
        faster = "" if name == "ours" else spread(ratio)
        fed = f"{of['tokens']:.1f}" if of["tokens"] else ""
        rates = [f"{count / np.median(of[clock]):.1f}" for clock in ("cpu", "wall")]
        lines.append(f"| {names.get(name, name)} | {rates[0]} | {rates[1]} | {fed} | {faster} | {off} |")
    inside = np.median(reference["inside"])
    return "\n".join(lines) + f"\n\nOf our processor time {inside:.0%} is inside the network's forward.\n"


def spread(values: np.ndarray) -> str:
    return f"{np.median(values):.2f} ({np.min(values):.2f} to {np.max(values):.2f})"


NAMES = {
    "ours": "ours (`lib.sentences`)", "minicons": "minicons", "harness": "lm-evaluation-harness",
    "plain": "plain Hugging Face loop", "bound": "bound: bare network, distinct beginnings, full rows",
    "minicons 8": "minicons, 8 sentences a batch", f"minicons {BATCH}": f"minicons, {BATCH} sentences a batch",
    "cache": "pairs share beginnings through a key-value cache", "target": "ours (`lib.scoring.fill`)",
}  # fmt: skip

BARE = "bound: bare encoder, distinct inputs, full rows, no output layer"


def causal_part(each: int, runs: int) -> str:
    """Whole sentences by the bundled causal model, on minimal pairs and on templates."""
    model, tools, parts = load("smollm2-135m-instruct"), available(), []
    score(model, ["The keys are here.", "The keys are there."])  # warm
    for title, (what, pairs) in (("Minimal pairs", blimp_pairs(each)), ("Templates", agreement_pairs(16 * each))):
        works: dict[str, Callable[[], Scores | None]] = {"ours": lambda p=pairs: ours(model, p)}
        if "minicons" in tools:
            works["minicons"] = lambda p=pairs: minicons_causal(model, p)
        if "lm_eval" in tools:
            works["harness"] = lambda p=pairs: harness(model, p)
        works["plain"] = lambda p=pairs: plain_causal(model, p)
        if title == "Minimal pairs":
            works["cache"] = lambda p=pairs: with_cache(model, p)
        works["bound"] = lambda p=pairs: bound_causal(model, p)
        found = compared(model, works, len(pairs), runs)
        parts.append(f"## {title}, whole sentences, causal ({model.name})\n\n{len(pairs)} pairs of {what}.\n\n"
                     + table(found, len(pairs), NAMES))  # fmt: skip
        print(parts[-1], flush=True)
    return "\n".join(parts)


def masked_part(each: int, runs: int) -> str:
    """The bundled masked model: pseudo-log-likelihood, and a masked target word."""
    model, tools = load("distilbert-mlm"), available()
    scoring.fill(model, [Gap("The keys", "here.")], ["are"])  # warm, and its identity known
    score(model, ["The keys are here."])
    what, pairs = blimp_pairs(max(1, each // 2))
    pairs = [
        pair for pair in pairs if not any(mark in "".join(pair) for mark in "'’-")
    ]  # where words are the same words
    works: dict[str, Callable[[], Scores | None]] = {"ours": lambda: ours(model, pairs)}
    if "minicons" in tools:
        for size in (8, BATCH):
            works[f"minicons {size}"] = lambda size=size: minicons_masked(model, pairs, size)
    of_copies = masked_copies(model, pairs)
    works["bound"] = lambda: bound_masked(model, *of_copies)
    found = compared(model, works, len(pairs), runs)
    parts = [f"## Pseudo-log-likelihood `within_word_l2r`, masked ({model.name})\n\n{len(pairs)} pairs of {what}.\n\n"
             + table(found, len(pairs), NAMES | {"bound": BARE})]  # fmt: skip
    print(parts[-1], flush=True)
    items = read_agreement(DATA / "items" / "agreement" / "prep_anim.jsonl")
    single = [
        all(len(model.word(form).ids) == 1 for form in (row.good, row.bad)) and bool(row.left)
        for row in items.itertuples()
    ]
    items = items[single].iloc[: 12 * each].reset_index(drop=True)
    lengths = [
        len(row)
        for row in model.tokenizer([f"{row.left} {row.good} {row.right}." for row in items.itertuples()])["input_ids"]
    ]
    targets: dict[str, Callable[[], Scores | None]] = {
        "ours": lambda: our_masked_target(model, items),
        "plain": lambda: plain_masked_target(model, items),
        "bound": lambda: bound_masked(model, sum(lengths), round(np.mean(lengths))),
    }
    found = compared(model, targets, len(items), runs)
    names = NAMES | {"bound": BARE, "ours": NAMES["target"], "plain": "plain Hugging Face loop over both sentences"}
    parts.append(f"## Masked target word ({model.name})\n\n{len(items)} pairs of our template prep_anim.\n\n"
                 + table(found, len(items), names))  # fmt: skip
    print(parts[-1], flush=True)
    return "\n".join(parts)


def forms_part(lemmas: int, runs: int) -> str:
    """Verbs of several pieces: what a context costs by the policy ``whole_word``."""
    parts = []
    for name in ("smollm2-135m-instruct", "distilbert-mlm"):
        model = load(name)
        gap, forms = whole_forms(model, lemmas)
        our_whole_forms(model, gap, forms[:2])  # warm
        works: dict[str, Callable[[], Scores | None]] = {
            "ours": lambda m=model, g=gap, f=forms: our_whole_forms(m, g, f),
            "plain": lambda m=model, g=gap, f=forms: plain_whole_forms(m, g, f),
        }
        found = compared(model, works, len(forms) // 2, runs)
        pieces = np.array([len(model.word(form).ids) for form in forms])
        names = {"ours": NAMES["target"], "plain": "plain Hugging Face loop over the forms"}
        parts.append(f"## Verbs of several pieces, `whole_word` ({name})\n\nThe two forms of {lemmas} lemmas in one context; "
                     f"{(pieces > 1).sum()} of the {len(forms)} forms are several pieces. A pair is a lemma.\n\n"
                     + table(found, lemmas, names))  # fmt: skip
        print(parts[-1], flush=True)
    return "\n".join(parts)


# --- growth ---------------------------------------------------------------------------------------------------------

GROWING = """
import sys, tempfile, time
from pathlib import Path
import torch, transformers
torch.set_num_threads(1)
from lib.models import load
from lib.models.causal import CausalModel
from lib.models.bundled import folder
from lib.sentences import minimal_pairs
from lib.store import Store
from tests.bench.sentences import growing_pairs
torch.manual_seed(0)
tokenizer = transformers.AutoTokenizer.from_pretrained(folder("smollm2-135m-instruct"))
config = transformers.LlamaConfig(vocab_size=49152, hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
                                  num_key_value_heads=1, intermediate_size=128, bos_token_id=1, eos_token_id=2)
model = CausalModel("small", "main", transformers.LlamaForCausalLM(config).eval(), tokenizer)
table = growing_pairs(int(sys.argv[1]))
def peak():
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0])
before = peak()
with tempfile.TemporaryDirectory() as kept:
    begun = time.process_time()
    found = minimal_pairs(model, table, store=Store(model.identity, Path(kept)))
    seconds, size = time.process_time() - begun, sum(file.stat().st_size for file in Path(kept).iterdir())
after = peak()
print(len(found), seconds, before / 1024, after / 1024, size / 1e6)
"""


def growing_pairs(count: int) -> Any:
    """So many distinct pairs of published or of our sentences."""
    import pandas as pd

    published = Path(os.environ.get("LITMUS_DATASETS") or "/nonexistent") / "blimp"
    folder = published if published.is_dir() else DATA / "items" / "agreement"
    pairs = [pair for file in sorted(folder.glob("*.jsonl")) for pair in read_pairs(file)]
    return pd.DataFrame(pairs[:count], columns=["good", "bad"])


def growth_part() -> str:
    """Time and peak memory of growing sets, each in a process of its own, with kept scores."""
    lines = ["| pairs | processor seconds | pairs a second | peak memory (MB) | before scoring (MB) | kept scores (MB) |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for count in GROWTH:
        done = subprocess.run(
            [sys.executable, "-c", GROWING, str(count)], cwd=ROOT, capture_output=True, text=True, check=True
        )
        pairs, seconds, before, after, kept = map(float, done.stdout.split())
        lines.append(
            f"| {pairs:,.0f} | {seconds:.1f} | {pairs / seconds:.0f} | {after:.0f} | {before:.0f} | {kept:.1f} |"
        )
        print(lines[-1], flush=True)
    return (
        "## How cost grows\n\nWhole sentences through `lib.sentences.minimal_pairs` with kept scores. The network is small "
        "(two layers of 64 units) so that this ends in minutes, but its vocabulary is the bundled model's 49,152 items, which "
        "is what memory depends on.\n\n" + "\n".join(lines) + "\n"
    )


GOALS = """## Goals, and what stands in the way

* Minimal pairs by a causal model, 1.5 x minicons and the harness: the gain is the tokens that are not fed; the rest is inside
  the forward, near the bound of the bare network. Packed trees are faster than a key-value cache: a cache shares within a
  pair only, and its many short forwards fill the processor badly.
* Templates, 4 x: items of one template share most of their beginnings.
* Masked target word, 3 x a loop over both sentences, and pseudo-log-likelihood, 2 x minicons: a masked copy can share nothing
  but itself, so what is saved is the second input of a pair, padding, the output layer at places that nobody reads, and there
  also all of the last layer but its attention. In distilbert-mlm a token costs 43 million multiplications in the encoder, of
  which 5 million lie behind the last attention, and 22 million in the output layer. The bound does not know that saving, so we
  can come close to it or pass it. Reckoned and left: keys, values and queries of the first layer, once for equal
  tokens at equal places (at most 4 % of six layers, 2 % of twelve, for three more hooks).
* Verbs of several pieces: a causal model reads each distinct beginning of a form once behind one context; to know that a word
  ends, each form must be read to its end, so the 5,720 forms of our whole list are 6,981 tokens a context (1,462 where ends are
  ignored). A masked model reads one copy for each number of pieces and beginning: 2,731 copies. Nearly all of the
  time is the network's own; notebook 21 has `verb_limit` for a seeded sample of lemmas.
* EW and MW, 50 x the loop of the published code: `AGREEMENT.md`, against its recorded time; loops of our own are faster than
  that one.
* 85 % of the time inside the forward: said under each table.
* Memory flat from 4,000 to 16,000 pairs: missed by a fifth, about .2 GB, which is one batch of logits (at most a quarter of a
  gigabyte). Nothing but the table grows with the pairs. In a run looked at every four seconds the memory in use was .84 GB
  between batches and 1.03 GB inside one, from the first 4,000 pairs to the end, and its peak 1.12 GB; so the peak depends on
  the widest batch and on what the allocator keeps, more than on how many pairs there are.
"""


def head(runs: int) -> str:
    import datetime

    from tests.bench.agreement import _machine

    versions = (
        ", ".join(f"{name} {version}" for name, version in available().items()) or "neither minicons nor the harness"
    )
    return (
        f"# Speed of whole sentences and masked words\n\n{datetime.date.today()}, {_machine()}; Python "
        f"{platform.python_version()}, torch {torch.__version__}, transformers {importlib.metadata.version('transformers')}, "
        f"{versions}. One thread; {runs} interleaved runs; median (least to most). Ratios are of processor time, because other "
        "work ran on the machine. Again: `make bench`. EW and MW from the same logits: `AGREEMENT.md`. Recurrent models: "
        "`RECURRENT.md`.\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Pairs per second: ours, minicons, the harness, a plain loop, the bound."
    )
    parser.add_argument("--each", type=int, default=16, help="pairs of each paradigm")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--parts", default="causal,masked,forms,growth")
    parser.add_argument("--write", action="store_true", help=f"write the result to {RESULTS.name}")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["LITMUS_QUIET"] = "1"
    works = {"causal": lambda: causal_part(asked.each, asked.runs), "masked": lambda: masked_part(asked.each, asked.runs),
             "forms": lambda: forms_part(4 * asked.each, asked.runs), "growth": growth_part}  # fmt: skip
    page = "\n".join([head(asked.runs), *(works[part]() for part in asked.parts.split(",")), GOALS])
    if asked.write:
        RESULTS.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
