# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How the bundled models were made
#
# Two models of this project were trained for it. How does an encoder that has lost its mouth learn to speak again, and what does
# a small recurrent network learn from two million words?

# %% [markdown]
# By the end you will have trained both on a sample, for a minute each, and know what the full recipe adds. You will
#
# 1. ask an encoder without a head for a hidden word,
# 2. write a low-rank update by hand, and count what it saves,
# 3. see which text was used, and that no diagnostic asks about it,
# 4. train a head with updates, and a word-level LSTM beside a trigram,
# 5. read the curves of the models that come with Litmus.
#
# About 25 minutes to read, two to run. Sources: Hu et al. (2021), *LoRA*; Devlin et al. (2019), *BERT*; Gulordava et al. (2018).

# %% tags=["parameters"]
articles = 1000  # Wikipedia summaries of the sample
steps = 30  # of the masked model
recurrent_steps = 150
seed = 0
out = ""  # path of the curves (CSV), without suffix; "" = write none

# %% tags=["hide-input"]
import random
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown

from lib import charts, results
from lib.models import bundled
from lib.paths import DATA
from lib.progress import bar
from lib.training import corpora, masked as masking, recurrent
from lib.training.loop import Schedule, train
from lib.training.trigram import Trigram

charts.use_theme()
source = bundled.encoder()
tokenizer, special = masking.tokenizer_of(source)

# %% [markdown]
# ## One example
#
# The encoder comes from a tool that tags mistakes of grammar. It turns each piece of a sentence into 768 numbers, but what it
# once knew about hidden words was thrown away with its head. Here is a sentence with a hidden word, and the start of a new head:
# the numbers at the mask, compared with those of every word piece of the vocabulary.

# %%
settings = masking.Settings(seed=seed)
trainee = masking.trainee(source, settings)
sentence, hidden_word = "The keys to the old house [MASK] on the table.", "are"
ids = torch.tensor([tokenizer.encode(sentence).ids])
attention, read = torch.ones_like(ids), ids == special.mask
with torch.no_grad():
    before = torch.log_softmax(trainee(ids, attention, read)[0], -1)
said = [tokenizer.id_to_token(i) for i in before.topk(5).indices.tolist()]
Markdown(f"> {sentence}\n\nIt says: **{', '.join(said)}**.")

# %% [markdown]
# By hand: what is lost on this one word? The *loss* is minus the logarithm of the probability of the hidden word, in nats.

# %%
wanted = tokenizer.token_to_id(hidden_word)
by_hand = -before[wanted].item()
Markdown(f"P({hidden_word}) = {np.exp(-by_hand):.2g}, so the loss is {by_hand:.2f}. "
         f"If all pieces were alike it would be log({len(before)}) = {np.log(len(before)):.2f}.")

# %% [markdown]
# The whole encoder has too many weights to change and to ship. A *low-rank update* leaves a matrix **W** as it is and adds the
# product **BA** of two thin ones. By hand, with rank 1:

# %%
W, A, B = np.array([[1, 2], [3, 4]]), np.array([[5, 6]]), np.array([[1], [10]])
assert (W + B @ A).tolist() == [[6, 8], [53, 64]]
rank, wide = settings.rank, 768
pd.Series({"a matrix": wide * wide, f"its update of rank {rank}": 2 * rank * wide}, name="numbers").to_frame()

# %%
trained = sum(parameter.numel() for parameter in trainee.trained().values())
frozen = sum(tensor.numel() for tensor in trainee.encoder.state_dict().values())
Markdown(f"Head and updates together: {trained / 1e6:.2f} million numbers to learn, "
         f"beside {frozen / 1e6:.0f} million in the encoder; {2 * trained / 1e6:.1f} MB in half precision.")

# %% [markdown]
# ## Before you go on
#
# The new head starts by knowing only how frequent each piece is. Will it first learn *which words fit here*, or *is* against *are*?
# And which of the two could a model that only knows the two words before, a trigram, ever learn?

# %% [markdown]
# ## The items
#
# Text: the summaries of ten thousand English Wikipedia articles, and (in the full recipe) 24 old books. One paragraph of forty is
# held out, by a rule over its text. Sentences that share five words in a row with a diagnostic item are left out.

# %%
found = corpora.read_wikipedia(bundled.summaries())
drawn = random.Random(seed).sample(found, min(articles, len(found)))
excluded = set(corpora.EXCLUDED.read_text().split())
held_out = corpora.without_excluded(filter(corpora.is_held_out, found), excluded)
training = corpora.without_excluded(
    [paragraph for paragraph in drawn if not corpora.is_held_out(paragraph)], excluded)
pd.DataFrame([{"part": name, "paragraphs": len(part),
               "words": sum(len(s.split()) for p in part for s in p.sentences)}
              for name, part in (("training", training), ("held out", held_out))]).set_index("part")

# %% [markdown]
# The rule is simple enough to check on our own items.

# %%
forbidden = corpora.Forbidden(corpora.item_texts(DATA / "items" / "agreement"))
assert not any(forbidden.shares(sentence) for paragraph in training for sentence in paragraph.sentences)
Markdown(f"{len(forbidden.runs)} runs of five words stand in our agreement items; "
         "none is in the training text.")

# %% [markdown]
# A training example hides some of its pieces, half of the paragraphs sentence by sentence, others as whole paragraphs.

# %%
pieces = masking.in_pieces(training, tokenizer)
text = masking.Text(pieces, seed, settings.pieces, settings.alone, settings.books_in)
shown_ids, _, targets = masking.masked(text.batch(0), settings.share, special, seed)
tokens = [tokenizer.id_to_token(i) for i in shown_ids[0].tolist() if i != special.pad]
Markdown("> " + " ".join(f"**{token}**" if token == "[MASK]" else token for token in tokens[:60]))

# %% [markdown]
# ## Scores
#
# The library computes the loss of all masks of a batch at once. On our example it equals the hand.

# %%
only = torch.where(read, wanted, torch.tensor(-100))
with torch.no_grad():
    np.testing.assert_allclose(masking.loss_on(trainee, ids, attention, only).item(), by_hand, rtol=1e-4)

# %% [markdown]
# Now some steps of training. The learning rate rises, stays, and falls in a cosine to almost nothing; checkpoints would let a long
# run go on where it stopped.

# %%
def short_run(task, steps, peak, every):
    """The curve of a run that keeps nothing."""
    schedule = Schedule(steps, peak, warm_up=max(1, steps // 5), decay=steps // 2)
    with tempfile.TemporaryDirectory() as folder, bar(total=steps, desc="training steps") as done:
        return pd.DataFrame(train(task, schedule, Path(folder), {}, every=every,
                                  say=lambda line: done.update(every)))


held_out_pieces = masking.in_pieces(held_out, tokenizer)
task = masking.task(trainee, pieces, held_out_pieces, special, settings)
curve = short_run(task, steps, 2e-3, max(1, steps // 5))
curve.set_index("step").round(4)

# %% [markdown]
# ## Result
#
# The loss on hidden pieces that the training has not seen, beside that of the steps themselves (with more pieces hidden, so it is
# the harder task).

# %%
names = {"loss": "training", "wikipedia_loss": "held out"}
long = curve.melt("step", list(names), "series").replace({"series": names})
charts.training_curves(long, "loss (nats)", {"all pieces alike": float(np.log(len(before)))})

# %% [markdown]
# The same example, again.

# %%
with torch.no_grad():
    after = torch.log_softmax(trainee(ids, attention, read)[0], -1)
now_said = ", ".join(tokenizer.id_to_token(i) for i in after.topk(5).indices.tolist())
singular = tokenizer.token_to_id("is")
margin = (after[wanted] - after[singular]).item()
Markdown(f"> {sentence}\n\nAfter {steps} steps it says: **{now_said}**; log P(are) - log P(is) = {margin:.2f}.")

# %% [markdown]
# ## The whole run
#
# `make models` does the same with all text, for hours. This is the curve of the model that comes with Litmus.

# %%
log = DATA / "models" / "distilbert-mlm" / "log.csv"
whole = pd.read_csv(log) if log.is_file() else curve
top = {f"{name}_top1": name for name in ("wikipedia", "books") if f"{name}_top1" in whole}
charts.training_curves(whole.melt("step", list(top), "series").replace({"series": top}),
                       "top-1 on held-out text")

# %% [markdown]
# ## The recurrent model
#
# An LSTM reads words, not pieces: the most frequent ones, and `<unk>` for all others. What must it beat? A trigram with
# Kneser-Ney smoothing, which counts what follows two words, on the same text with the same words.

# %%
small = recurrent.Settings(words=4000, size=96, seed=seed)
data = recurrent.ready(training, held_out, small)
trigram = Trigram(data.examples, len(data.vocabulary)).perplexity(data.held_out["wikipedia"])
_, task_of_words = recurrent.task(data, small)
curve_of_words = short_run(task_of_words, recurrent_steps, 4e-3, max(1, recurrent_steps // 6))
charts.training_curves(curve_of_words.assign(series="LSTM", value=curve_of_words["wikipedia_perplexity"]),
                       "perplexity on held-out text", {"trigram": trigram})

# %%
last = curve_of_words["wikipedia_perplexity"].iloc[-1]
passes = recurrent_steps * small.rows / len(data.examples)
Markdown(f"After {passes:.1f} passes over the sample: perplexity {last:.0f}, the trigram {trigram:.0f}. "
         "The full run reads its text many times more.")

# %% [markdown]
# ## Beside published values
#
# The models that these imitate saw far more. DistilBERT was trained on English Wikipedia and books for 90 hours on 8 GPUs (Sanh et
# al. 2019); the LSTM of Gulordava et al. has 2 layers of 650 units and read some 80 million words. This is what ours reach on held-out text.

# %%
tables = [DATA / "models" / name / "held_out.csv" for name in ("distilbert-mlm", "wiki-lstm")]
shipped = [pd.read_csv(table).query("limit == 0").drop(columns="limit") for table in tables if table.is_file()]
figures = pd.concat(shipped).set_index("source").round(3).astype(object).fillna("") if shipped else None
Markdown("No figures lie here.") if figures is None else figures

# %% [markdown]
# ## A control
#
# Is it the head that learns, or do the updates matter? The same steps with the encoder left as it is.

# %%
alone = masking.trainee(source, settings._replace(lowest=6))
task_of_head = masking.task(alone, pieces, held_out_pieces, special, settings)
curve_of_head = short_run(task_of_head, steps, 2e-3, max(1, steps // 5))
both = pd.concat([curve.assign(series="head and updates"), curve_of_head.assign(series="head alone")])
charts.training_curves(both.assign(value=both["wikipedia_loss"]), "loss on held-out text (nats)")

# %%
difference = curve_of_head["wikipedia_loss"].iloc[-1] - curve["wikipedia_loss"].iloc[-1]
Markdown(f"Without updates the loss ends {abs(difference):.2f} nats {'higher' if difference > 0 else 'lower'}. "
         "In longer runs the head alone soon stops learning.")

# %% [markdown]
# ## Where it goes wrong
#
# Hidden pieces of held-out text that the trained sample model finds least probable, and what it would say.

# %%
[(shown_ids, attention, targets)] = masking.measured(held_out_pieces, "wikipedia", special, limit=12)
places = targets != -100
with torch.no_grad():
    scores = torch.log_softmax(trainee(shown_ids, attention, places), -1)
wrong = []
for place, (row, column) in enumerate(places.nonzero().tolist()):
    around = [tokenizer.id_to_token(i) for i in shown_ids[row].tolist()]
    around = [*around[max(0, column - 6) : column], "___", *around[column + 1 : column + 4]]
    hidden = targets[row, column].item()
    wrong.append({"around": " ".join(around), "hidden": tokenizer.id_to_token(hidden),
                  "said": tokenizer.id_to_token(scores[place].argmax().item()),
                  "log_probability": scores[place, hidden].item()})
pd.DataFrame(wrong).nsmallest(8, "log_probability").round(2).set_index("around")

# %% [markdown]
# ## What this does not show
#
# * A few minutes show that it learns, not how far it comes; the curves of the whole runs do, for one seed.
# * Top-1 on encyclopedia text says little about grammar: most hidden pieces are names, and words of content.
# * Both models are small and read little. They are here so that every notebook runs anywhere; their numbers are no findings.

# %% [markdown]
# ## Takeaways
#
# 1. An encoder without a head gives numbers, and no words.
# 2. A low-rank update learns much with few numbers: that is why ours is a file of a few MB.
# 3. What a diagnostic asks must not be in the training text, and a rule with a test keeps it out.
# 4. A model is judged on text it has not seen, beside a simpler one.
# 5. The full recipe is `make models`: seeded, resumable, hours on two cores.

# %% [markdown]
# Back: [`00_start_here`](00_start_here.ipynb). The model cards are `data/models/distilbert-mlm/README.md` and
# `data/models/wiki-lstm/README.md`.
#
# * Hu et al. (2021), *LoRA: Low-Rank Adaptation of Large Language Models*.
# * Devlin et al. (2019), *BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding*, NAACL.
# * Sanh et al. (2019), *DistilBERT, a distilled version of BERT: smaller, faster, cheaper and lighter*.
# * Gulordava et al. (2018), *Colorless green recurrent networks dream hierarchically*, NAACL.
# * Chen and Goodman (1999), *An empirical study of smoothing techniques for language modeling*, Computer Speech and Language.

# %% tags=["hide-input"]
curves = pd.concat([curve.assign(model="masked"), curve_of_head.assign(model="head alone"),
                    curve_of_words.assign(model="LSTM")])
if out:
    curves.to_csv(f"{out}.csv", index=False)
results.provenance_table(results.provenance("95_bundled_models", globals()))
