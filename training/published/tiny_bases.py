"""Tiny base models, made on demand with random weights and a tokenizer for the bundled collection."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from pydoc_data.topics import topics
from string import ascii_lowercase, digits, punctuation
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM, BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from corpus.bundled.passages import cut_passages
from corpus.errors import BadInput
from training.recipes import rendering

TINY = ("tiny:qwen3", "tiny:qwen3.5", "tiny:encoder")  # The names of the tiny bases.
CAUSAL_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>")
ENCODER_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WHOLE_WORDS = ("yes", "no", "contribution", "evidence")
VOCABULARY = 2048  # Tokens of the causal bases.
WORDS = 3000  # Whole words of the encoder's vocabulary.


def tiny_base(folder: Path, *, shape: str = "qwen3", seed: int = 0, hidden: int = 64, layers: int = 2) -> Path:
    """Make a causal model with the architecture of Qwen3 or Qwen3.5, whose "yes" and "no" are single tokens."""
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=_train_tokenizer(),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_max_length=4096,
    )
    config = _tiny_config(shape, len(tokenizer), hidden, layers)
    config.eos_token_id = tokenizer.eos_token_id
    return _save_tiny(folder, tokenizer, config, partial(AutoModelForCausalLM.from_config, dtype=torch.float32), seed)


def tiny_encoder(folder: Path, *, seed: int = 0, hidden: int = 64, layers: int = 2, max_length: int = 512) -> Path:
    """Make a sequence classifier with the architecture of BERT and one label."""
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
    )
    config.num_labels = 1
    return _save_tiny(folder, tokenizer, config, BertForSequenceClassification, seed)


def _save_tiny(folder: Path, tokenizer: Any, config: Any, build: Callable[[Any], Any], seed: int) -> Path:
    """Write a model with random weights by seed, marked "quorum_tiny" in its configuration, and return its folder."""
    config.quorum_tiny = True
    config.pad_token_id = tokenizer.pad_token_id
    # The generator of the training must not be seeded by this.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build(config)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tiny_config(shape: str, vocabulary: int, hidden: int, layers: int) -> Any:
    common: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": hidden // 4,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": True,
    }
    if shape == "qwen3":
        from transformers import Qwen3Config

        return Qwen3Config(**common)
    if shape == "qwen3.5":
        from transformers import Qwen3_5TextConfig

        linear: dict[str, Any] = {
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 2,
            "layer_types": [*["linear_attention"] * (layers - 1), "full_attention"],
        }
        return Qwen3_5TextConfig(**common, **linear)
    raise BadInput(f"No tiny base of shape {shape!r}; there are {', '.join(TINY)}")


@cache  # Its callers copy it.
def _train_tokenizer() -> Tokenizer:
    """Return a byte-level BPE tokenizer, trained on the passages of the bundled collection."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(CAUSAL_SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    # Words that must be single tokens are repeated often enough, each as a separate text.
    words = [word for word in WHOLE_WORDS for _ in range(500)]
    tokenizer.train_from_iterator([*_passage_texts(), rendering.QUORUM.text, punctuation, *words], trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in CAUSAL_SPECIAL])
    return tokenizer


@cache
def _build_tokenizer() -> Tokenizer:
    """Return a WordPiece tokenizer of the bundled collection's characters and most frequent words.

    It is not trained, since the library's trainer gives different results at each run.
    """
    normalizer, pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for text in _passage_texts():
        counts.update(word for word, _span in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text)))
    letters = sorted({letter for word in counts for letter in word} | set(ascii_lowercase + digits + punctuation))
    words = sorted(counts, key=lambda word: (-counts[word], word))[:WORDS]
    vocabulary = dict.fromkeys([*ENCODER_SPECIAL, *letters, *(f"##{letter}" for letter in letters), *words])
    model = models.WordPiece({word: number for number, word in enumerate(vocabulary)}, unk_token="[UNK]")
    tokenizer = Tokenizer(model)
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
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
