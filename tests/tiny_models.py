"""Tiny causal models and adapters for tests that need weights and no training."""

import json
from pathlib import Path

from training.recipes.data import Example


def dev_rows(queries: int = 6) -> list[Example]:
    """Four documents for each query, every second one relevant."""
    return [
        Example(f"question {q}", f"passage {d} about {q * d}", "", d % 2, 0.2 + 0.1 * d, "", f"q{q}", f"d{d}")
        for q in range(queries)
        for d in range(4)
    ]


def tiny(folder: Path, shape: str, seed: int = 0) -> tuple[Path, int, int]:
    """The tiny base of the trainer, and its ids of "yes" and "no"."""
    import pytest
    from transformers import AutoTokenizer

    tiny_base = pytest.importorskip("training.published.tiny_bases").tiny_base
    tiny_base(folder, shape=shape, seed=seed)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    yes, no = (tokenizer(word, add_special_tokens=False)["input_ids"] for word in ("yes", "no"))
    assert len(yes) == len(no) == 1
    return folder, yes[0], no[0]


def adapter_of(base: Path, folder: Path, seed: int = 3) -> Path:
    """A LoRA adapter whose weights change scores visibly."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    model = get_peft_model(
        AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32),
        LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"),
    )
    for name, value in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(value, std=0.3)
    model.save_pretrained(str(folder))
    return folder


def with_vision(folder: Path) -> tuple[Path, int, int]:
    """A tiny base laid out as Qwen3.5 is on the hub: text and vision in one, one head of multi-token prediction."""
    import torch
    from transformers import AutoTokenizer, Qwen3_5Config, Qwen3_5ForConditionalGeneration

    text, yes_id, no_id = tiny(folder.with_name("text"), "qwen3.5")
    config = json.loads((text / "config.json").read_text()) | {"mtp_num_hidden_layers": 1}
    vision = {"depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 64}
    both = Qwen3_5Config(text_config=config, vision_config=vision, tie_word_embeddings=True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        Qwen3_5ForConditionalGeneration(both).save_pretrained(folder)
    AutoTokenizer.from_pretrained(text).save_pretrained(folder)
    return folder, yes_id, no_id


def sparse_encoder(folder: Path, seed: int = 0) -> Path:
    """A SPLADE model as sentence-transformers writes one: a tiny BERT's words, pooled by their largest weight."""
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.modules import MLMTransformer, SpladePooling
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    from training.published.tiny_bases import tiny_encoder

    base = tiny_encoder(folder / "base")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = BertForMaskedLM(BertConfig.from_pretrained(base))
        # Random weights of this size give every word some weight; most must have none.
        torch.nn.init.normal_(model.cls.predictions.bias, mean=-0.6, std=0.2)
    model.save_pretrained(folder / "words")
    AutoTokenizer.from_pretrained(base).save_pretrained(folder / "words")
    modules = [MLMTransformer(str(folder / "words")), SpladePooling()]
    SparseEncoder(modules=modules, device="cpu").save_pretrained(str(folder / "model"), create_model_card=False)
    return folder / "model"


def seq2seq(folder: Path, seed: int = 0) -> Path:
    """A T5 of random weights, in whose tokenizer true, false, yes and no are one token each."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    words = ["Query", ":", "Document", "Relevant", "true", "false", "yes", "no", "a", "wing", "has", "lift", "heat"]
    words += ["flows", "through", "plate", "names"]
    vocabulary = {word: place for place, word in enumerate(["<pad>", "</s>", "<unk>", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=512
    ).save_pretrained(folder)
    config = T5Config(vocab_size=len(vocabulary), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
    config.decoder_start_token_id = config.pad_token_id = 0
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder
