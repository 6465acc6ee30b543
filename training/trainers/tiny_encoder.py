"""A tiny encoder base made on demand: seeded random weights, a tokenizer trained on the bundled collection."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics
from string import ascii_lowercase, digits, punctuation

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from corpus.bundled.passages import cut_passages

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = 3000


def tiny_encoder(folder: Path, *, seed: int = 0, hidden: int = 64, layers: int = 2, max_length: int = 256) -> Path:
    """A BERT-shaped sequence classifier of one label, marked "quorum_tiny" in its config; returns the folder."""
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=_build_tokenizer(),
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=max_length,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=2 * hidden,
        max_position_embeddings=max_length,
        pad_token_id=tokenizer.pad_token_id,
    )
    config.num_labels = 1
    config.quorum_tiny = True
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertForSequenceClassification(config)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _build_tokenizer() -> Tokenizer:
    """WordPiece of the collection's characters and most frequent words: the same at every run, unlike a trainer's."""
    normalizer, cut = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for text in _passage_texts():
        counts.update(word for word, _ in cut.pre_tokenize_str(normalizer.normalize_str(text)))
    letters = sorted({letter for word in counts for letter in word} | set(ascii_lowercase + digits + punctuation))
    words = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:WORDS]]
    vocabulary = dict.fromkeys([*SPECIAL, *letters, *(f"##{letter}" for letter in letters), *words])
    model = models.WordPiece({word: place for place, word in enumerate(vocabulary)}, unk_token="[UNK]")
    tokenizer = Tokenizer(model)
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, cut
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def _passage_texts() -> Iterator[str]:
    for passage in cut_passages(topics):
        yield f"{passage.title} {passage.text}"
