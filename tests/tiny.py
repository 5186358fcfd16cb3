"""Tiny models with real tokenizers, made in seconds: every family's habits without a download.

Weights are random and wide (``initializer_range`` .3), so distributions are far from flat and an error shows. Every maker
saves a folder the way a hub repository looks, so that ``lib.models.load(folder)`` is what the tests try.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from lib.models import load
from lib.models.hugging_face import HuggingFaceModel
from lib.models.protocol import FilledBatch, Gap, Position, Word

SENTENCES = [
    "The keys to the cabinet are on the table.",
    "The key to the cabinets is on the table.",
    "The author near the senators laughs, but the authors laugh.",
    "the authors that the guard likes are young and like the pilots.",
    "The pilot has two cats; cats have no pilots!",
    "Does the farmer walk? Do farmers walk and swim?",
    "Keys are small. Cabinets, tables and guards are not.",
    "A young farmer knows that the senator swims, laughs and walks.",
    "The traveler lost the souvenir near the table.",
]  # fmt: skip
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
SMALL = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
WIDE = {"initializer_range": 0.3}
END = "<|endoftext|>"


def save(folder: Path, network: transformers.PreTrainedModel, tokenizer: transformers.PreTrainedTokenizerBase) -> Path:
    """Both in one folder, as on the hub."""
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def words(leaving_out: set[str]) -> list[str]:
    """The words of the sentences, in a fixed order."""
    found = {word.strip(".,;!?") for sentence in SENTENCES for word in sentence.split()}
    return sorted(found - leaving_out)


def bert_tokenizer(lower_case: bool) -> transformers.PreTrainedTokenizerBase:
    """WordPiece, cased or uncased: the sentences' words, and letters for all others. Written down, because training one
    gives another vocabulary each time."""
    letters = LETTERS.lower() if lower_case else LETTERS
    known = dict.fromkeys(word.lower() if lower_case else word for word in words({"souvenir", "swims", "Does"}))
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,;!?+(", *dict.fromkeys(letters), *known]
    pieces = list(dict.fromkeys([*pieces, *(f"##{letter}" for letter in letters)]))
    vocabulary = {piece: token for token, piece in enumerate(pieces)}
    return transformers.BertTokenizer(vocab=vocabulary, do_lower_case=lower_case, model_max_length=24)


def byte_level(special: Sequence[str], vocab_size: int = 440) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Vocabulary and merges of a byte-level BPE, special tokens first."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=list(special), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    tokenizer.train_from_iterator(SENTENCES, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def bert(folder: Path, lower_case: bool = False) -> Path:
    """A masked model like BERT."""
    torch.manual_seed(1)
    tokenizer = bert_tokenizer(lower_case)
    config = transformers.BertConfig(vocab_size=len(tokenizer), max_position_embeddings=24, **SMALL, **WIDE)
    return save(folder, transformers.BertForMaskedLM(config), tokenizer)


def roberta(folder: Path) -> Path:
    """A masked model like RoBERTa: byte-level pieces, a mask that eats the space before it, 22 positions of which 20 count."""
    torch.manual_seed(2)
    vocabulary, merges = byte_level(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    mask = AddedToken("<mask>", lstrip=True, special=True)
    tokenizer = transformers.RobertaTokenizer(vocab=vocabulary, merges=merges, mask_token=mask)
    config = transformers.RobertaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=22, pad_token_id=1, bos_token_id=0, eos_token_id=2,
        type_vocab_size=1, **SMALL, **WIDE,
    )  # fmt: skip
    return save(folder, transformers.RobertaForMaskedLM(config), tokenizer)


def gpt2(folder: Path) -> Path:
    """A causal model like GPT-2: no padding token, one token for start, end and unknown, no start token added."""
    torch.manual_seed(3)
    vocabulary, merges = byte_level([END])
    tokenizer = transformers.GPT2Tokenizer(vocab=vocabulary, merges=merges)
    return save(folder, _gpt2_network(len(tokenizer)), tokenizer)


def gpt2_without_start(folder: Path) -> Path:
    """The same without any special token at all."""
    torch.manual_seed(4)
    vocabulary, merges = byte_level([])
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend)
    return save(folder, _gpt2_network(len(tokenizer)), tokenizer)


def _gpt2_network(vocabulary_size: int) -> transformers.PreTrainedModel:
    config = transformers.GPT2Config(
        vocab_size=vocabulary_size, n_positions=24, n_embd=24, n_layer=2, n_head=2, bos_token_id=None, eos_token_id=None,
        **WIDE,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def llama_tokenizer(unknown_declared: bool = True) -> transformers.PreTrainedTokenizerBase:
    """SentencePiece-like: Unigram pieces with a leading bar, a start token added, padding on the left, at most 16 tokens."""
    pieces = [(piece, 0.0) for piece in ("<unk>", "<s>", "</s>")]
    pieces += [(f"▁{word}", -4.0) for word in words({"laughs", "swims"})] + [
        (letter, -9.0) for letter in ["▁", *".,;!?", *LETTERS]
    ]
    backend = Tokenizer(models.Unigram(pieces, unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}
    names |= {"unk_token": "<unk>"} if unknown_declared else {}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, padding_side="left", model_max_length=16, **names
    )


def llama(folder: Path) -> Path:
    """A causal model like Llama, kept in bfloat16."""
    torch.manual_seed(5)
    tokenizer = llama_tokenizer()
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=64, num_key_value_heads=1, bos_token_id=1, eos_token_id=2,
        **SMALL, **WIDE,
    )  # fmt: skip
    return save(folder, transformers.LlamaForCausalLM(config).to(torch.bfloat16), tokenizer)


MASKED: dict[str, Callable[[Path], Path]] = {
    "bert-cased": bert,
    "bert-uncased": lambda folder: bert(folder, lower_case=True),
    "roberta": roberta,
}
CAUSAL: dict[str, Callable[[Path], Path]] = {"gpt2": gpt2, "gpt2-without-start": gpt2_without_start, "llama": llama}
_MADE = tempfile.TemporaryDirectory(prefix="litmus-tiny-")  # kept until the session ends


@cache
def folder(name: str) -> Path:
    """The folder of one of the models above, made once a session."""
    return (MASKED | CAUSAL)[name](Path(_MADE.name) / name)


@cache
def model(name: str) -> HuggingFaceModel:
    """One of the models above, loaded as a person would load a folder."""
    return load(str(folder(name)))


@dataclass
class FakeModel:
    """A model whose vocabulary and distributions a test writes down; it remembers what it was asked.

    ``probabilities`` maps a left context to a distribution over ``vocabulary``, or to the reason why there is none. A form
    with a hyphen is two pieces. Batches hold two gaps and come in reverse order.
    """

    vocabulary: Sequence[str]
    probabilities: Mapping[str, Sequence[float] | str]
    asked: list[Gap] = field(default_factory=list)
    name, revision, family, cased = "fake", "main", "causal", True

    @property
    def vocabulary_size(self) -> int:
        return len(self.vocabulary)

    @property
    def identity(self) -> dict[str, str]:
        return {"model": self.name, "dtype": "float32"}

    def seen(self, gap: Gap) -> Gap:
        return Gap(gap.left, "")

    def fill(self, gaps: Sequence[Gap], start_token: str = "never") -> Iterator[FilledBatch]:
        self.asked += gaps
        found = [self.probabilities[gap.left] for gap in gaps]
        for row, reason in enumerate(found):
            if isinstance(reason, str):
                yield FilledBatch([row], None, reason)
        usable = [row for row, reason in enumerate(found) if not isinstance(reason, str)][::-1]
        for rows in (usable[start : start + 2] for start in range(0, len(usable), 2)):
            yield FilledBatch(rows, torch.tensor([found[row] for row in rows], dtype=torch.float32).log(), "")

    def word(self, form: str, position: Position) -> Word:
        pieces = (form.capitalize() if position == "start" else form).split("-")
        known = all(piece in self.vocabulary for piece in pieces)
        return Word(form, tuple(map(self.vocabulary.index, pieces)), "") if known else Word(form, (), "unknown")
