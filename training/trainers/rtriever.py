"""Recipe `rtriever`: an embedding model tuned on bundles with sentence-transformers (RTriever 5.2)."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset  # type: ignore[import-untyped]
from peft import PeftModel
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.modules import Normalize, Transformer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from sentence_transformers.sentence_transformer.modules import Pooling
from tokenizers.processors import TemplateProcessing
from transformers import AutoConfig, TrainerCallback

from training.published.embedder import open_embedder, pooling_of, read_query_prefix
from training.published.publication import Kind
from training.published.torch_memory import free_memory, is_out_of_memory
from training.recipes.job_folder import JobFolder
from training.recipes.table import RetrieverOptions
from training.trainers.callback import JobCallback
from training.trainers.contrastive import InBatchLoss, RanOutElsewhere, agree_on_memory
from training.trainers.memory import DoesNotFit, check_memory
from training.trainers.prism import lora_config
from training.trainers.processes import gather_values, group_position
from training.trainers.recipe import TrainingTask
from training.trainers.token_tables import tokenize_rows

FP32 = 4  # Bytes of a weight. Vectors in bf16 would be too coarse for the temperature of the loss.
# The prefix of Qwen3-Embedding, which the paper tunes.
QWEN_PREFIX = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"


def load_embedder(folder: Path, options: RetrieverOptions, device: str, attention: str = "auto") -> SentenceTransformer:
    """Load a base with its pooling, normalisation and query prefix; with pooling "last", texts get an end token."""
    pooling = pooling_of(folder, options.pooling)
    model_kwargs: dict[str, Any] = {"dtype": torch.float32}
    if attention != "auto":
        model_kwargs["attn_implementation"] = attention
    body = Transformer(str(folder), max_seq_length=options.max_length, model_kwargs=model_kwargs)
    tokenizer = body.tokenizer
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    # "last" pools the state of the last token, which must be the same end token for every text.
    if pooling == "last" and tokenizer("x")["input_ids"][-1] not in (tokenizer.eos_token_id, tokenizer.pad_token_id):
        end = tokenizer.eos_token
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single=f"$A {end}", pair=f"$A $B {end}", special_tokens=[(end, tokenizer.eos_token_id)]
        )
    tokenizer.padding_side = "right"
    tokenizer.split_special_tokens = True  # Control tokens in texts are plain text, also in the published model.
    mode = {"last": "lasttoken"}.get(pooling, pooling)
    size = body.model.config.get_text_config().hidden_size
    prefix = options.query_prefix or (QWEN_PREFIX if pooling == "last" else "")
    modules, prompts = [body, Pooling(size, mode), Normalize()], {"query": prefix, "document": ""}
    return SentenceTransformer(modules=modules, device=device, prompts=prompts)


def published_length(base: Path, trained: int) -> int:
    """Return the maximum input of the published model in tokens: that of training, or the base's if it is longer."""
    path = base / "sentence_bert_config.json"
    base_length = json.loads(path.read_text()).get("max_seq_length") if path.exists() else None
    return max(trained, int(base_length or 0))


class Texts:
    """The tokens of all different queries (with their prefix) and documents of the bundles."""

    def __init__(self, task: TrainingTask, model: SentenceTransformer) -> None:
        prefix, self.tokenizer = model.prompts["query"], model.tokenizer
        self.query_prefix, limit = prefix, model.max_seq_length
        passages = (passage for bundle in task.data.train for passage in (*bundle.positives, *bundle.negatives))
        texts = [*(prefix + bundle.query for bundle in task.data.train), *(passage.text for passage in passages)]
        self.numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        unique_texts = list(self.numbers)

        def make(number: int) -> dict[str, Any]:
            encode = partial(self.tokenizer, unique_texts[number], verbose=False)
            ids = encode(truncation=True, max_length=limit)["input_ids"]
            return {"ids": ids, "whole": len(encode(truncation=False)["input_ids"])}

        self.table = tokenize_rows(task, self.tokenizer, len(unique_texts), make, prefix, limit)

    def pad(self, numbers: Sequence[int], **_kwargs: Any) -> dict[str, Any]:
        """Return a batch of the texts with these numbers."""
        return dict(self.tokenizer.pad({"input_ids": self.table[list(numbers)]["ids"]}, return_tensors="pt"))


class DrawCallback(TrainerCallback):
    """The documents drawn from each bundle in an epoch, as a transform of a data set.

    It turns batches of numbers of bundles into numbers of their texts, and labels as InBatchLoss takes them.
    """

    def __init__(self, bundles: Sequence[Any], texts: Texts, options: RetrieverOptions) -> None:
        self.bundles, self.texts, self.options, self.epoch = bundles, texts, options, 0

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        # transformers' epoch is a float: with 1e-6 added, 0.9999999 is epoch 1.
        self.epoch = int((state.epoch or 0) + 1e-6)

    def __call__(self, batch: dict[str, list[int]]) -> dict[str, list[Any]]:
        hard = ("negative",) if self.options.hard_negatives else ()
        rows: dict[str, list[Any]] = {name: [] for name in ("anchor", "positive", *hard, "label")}
        for number in batch["anchor"]:
            bundle = self.bundles[number]
            positive, negative = bundle.draw(self.options.seed, self.epoch)
            rows["anchor"].append(self.texts.numbers[self.texts.query_prefix + bundle.query])
            rows["positive"].append(self.texts.numbers[bundle.positives[positive].text])
            if hard:
                rows["negative"].append(self.texts.numbers[bundle.negatives[negative].text])
            rows["label"].append([number, positive, negative])
        return rows


class RetrieverTrainer(SentenceTransformerTrainer):
    """sentence-transformers' trainer, which repeats a step with half the tokens at a time if memory runs out."""

    callback: JobCallback
    in_batch_loss: InBatchLoss

    def training_step(self, model: Any, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Any:
        while True:
            self.in_batch_loss.mini_batch_num_tokens = self.callback.progress.token_budget
            try:
                return super().training_step(model, dict(inputs), num_items_in_batch)
            except RanOutElsewhere:
                pass
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                agree_on_memory(True)
            # After the handler, since the error refers to frames with the tensors that did not fit.
            self.shrink(inputs)

    def shrink(self, inputs: dict[str, Any]) -> None:
        """Halve the token budget in all processes, down to one text in a pass. Raises DoesNotFit."""
        # Gradients of the failed attempt would be added to those of the next one.
        for weight in self.model.parameters():
            weight.grad = None
        column_lengths = [mask.sum(1) for name, mask in inputs.items() if name.endswith("attention_mask")]
        # The tokens of the longest text and of the largest column of a batch, over all processes.
        own_sizes = (
            max(int(lengths.max()) for lengths in column_lengths),
            max(int(lengths.sum()) for lengths in column_lengths),
        )
        longest, used = (max(sizes) for sizes in zip(*gather_values(own_sizes), strict=True))
        budget = self.callback.progress.token_budget
        if budget <= longest:
            raise DoesNotFit(f"A text of {longest} tokens alone takes more memory than there is: lower max_length")
        self.callback.progress.token_budget = max(1, min(budget, used) // 2)
        free_memory()
        self.callback.say(f"out of memory: going on with {self.callback.progress.token_budget:,} tokens at once")


class RTriever:
    """A `recipe.Recipe` for an embedding model."""

    def __init__(self, task: TrainingTask) -> None:
        assert isinstance(task.options, RetrieverOptions)
        self.task, self.options = task, task.options
        self.row_lengths: dict[str, Any] = {}  # Set by train.
        # Checked for the weights alone, since the lengths of texts are not known before the tokenizer is loaded.
        check_memory(task, AutoConfig.from_pretrained(task.base), 1, frozen=FP32)
        self.model = load_embedder(task.base, self.options, task.device, self.options.attention)
        self.texts = Texts(task, self.model)
        body: Any = self.model[0]
        for weights in body.model.get_input_embeddings().parameters():
            weights.requires_grad = False
        if self.options.lora_rank:
            self.model.add_adapter(lora_config(body.model, self.options, "FEATURE_EXTRACTION"))

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        bundles, options = self.task.data.train, self.options
        draws = DrawCallback(bundles, self.texts, options)
        rows = Dataset.from_dict({"anchor": list(range(len(bundles)))})
        rows.set_transform(draws)
        callback = JobCallback(folder, self.task, asked_to_stop, self.dev_margins)
        self.row_lengths = callback.report_lengths(self.texts.table["whole"], options.max_length)
        _, processes = group_position()
        arguments = callback.arguments(
            SentenceTransformerTrainingArguments,
            len(bundles),
            batch_sampler="no_duplicates",
            dataloader_drop_last=processes > 1,
            ddp_broadcast_buffers=False,  # Not possible with different numbers of passes; buffers do not change here.
        )
        loss = InBatchLoss(
            self.model,
            bundles,
            temperature=options.temperature,
            token_budget=options.token_budget,
            mask=options.mask_false_negatives,
            across_processes=processes > 1,
            note=callback.note,
        )
        trainer = RetrieverTrainer(
            self.model, args=arguments, train_dataset=rows, loss=loss, callbacks=[draws, callback],
            data_collator=SentenceTransformerDataCollator(preprocess_fn=self.texts.pad),
        )  # fmt: skip
        trainer.callback, trainer.in_batch_loss = callback, loss
        return callback.train(trainer)

    def dev_margins(self, rows: Sequence[Any]) -> list[float]:
        """Return the cosine of query and document of each row."""
        was_training = self.model.training
        margins = cosines(self.model, rows)
        self.model.train(was_training)
        return margins

    def trained(self, checkpoint: Path) -> "EmbedderTrained":
        return EmbedderTrained(self.task, checkpoint)

    def record(self) -> dict[str, Any]:
        pooling = str(self.model[1].pooling_mode)
        return {
            "kind": "embedder",
            "max_length": self.options.max_length,
            "row_lengths": self.row_lengths,
            "embedder": {
                "dimensions": self.model.get_embedding_dimension(),
                "pooling": {"lasttoken": "last"}.get(pooling, pooling),
                "query_prefix": self.model.prompts["query"],
                "temperature": self.options.temperature,
            },
        }


class EmbedderTrained:
    """A `finishing.Trained` of a base and a checkpoint, whose margins are cosines of query and document."""

    kind: Kind = "embedder"
    random_head = False

    def __init__(self, task: TrainingTask, checkpoint: Path) -> None:
        assert isinstance(task.options, RetrieverOptions)
        self.task, self.checkpoint = task, checkpoint
        # Measured with the maximum input of the published model.
        self.options = replace(task.options, max_length=published_length(task.base, task.options.max_length))
        self.has_adapter = bool(task.options.lora_rank)

    def base_margins(self, rows: Sequence[Any]) -> list[float]:
        return cosines(load_embedder(self.task.base, self.options, self.task.device), rows)

    def trained_margins(self, rows: Sequence[Any]) -> list[float]:
        return cosines(self._load_trained(self.task.device), rows)

    def write(self, folder: Path) -> None:
        model = self._load_trained("cpu")
        if self.has_adapter:
            body: Any = model[0]
            body.model = body.model.merge_and_unload()
        model.save_pretrained(str(folder), create_model_card=False)

    def published_margins(self, folder: Path, rows: Sequence[Any]) -> list[float]:
        """Return the margins of the written model, computed by the serving code."""
        served, prefix = open_embedder(folder, self.task.device), read_query_prefix(folder)

        def encode(side: str, texts: list[str]) -> Any:
            vectors, _tokens = served.encode([prefix + text for text in texts] if side == "query" else texts)
            return vectors

        return cosines_of(rows, encode)

    def _load_trained(self, device: str) -> SentenceTransformer:
        if not self.has_adapter:
            model = SentenceTransformer(str(self.checkpoint), device=device)
            model.max_seq_length = self.options.max_length
            return model
        model = load_embedder(self.task.base, self.options, device)
        body: Any = model[0]
        body.model = PeftModel.from_pretrained(body.model, str(self.checkpoint))
        return model.eval()


def cosines(model: SentenceTransformer, rows: Sequence[Any]) -> list[float]:
    """Return the cosine of the query, with its prefix, and the document of each row."""
    return cosines_of(rows, lambda side, texts: _encode(model, texts, side).cpu().numpy())


def cosines_of(rows: Sequence[Any], encode: Callable[[str, list[str]], Any]) -> list[float]:
    """Return the cosine of query and document of each row, with every text encoded once.

    `encode` returns the vectors of texts, shape (texts, dimensions), of the side "query" or "document".
    """
    # Without a dev split there are no rows, for which the library would return a tensor of one dimension.
    if not rows:
        return []
    vectors = {}
    for side in ("query", "document"):
        # The rows of a dev split and of a first stage name a document many times.
        texts = list(dict.fromkeys(getattr(row, side) for row in rows))
        vectors[side] = dict(zip(texts, encode(side, texts), strict=True))
    return [float((vectors["query"][row.query] * vectors["document"][row.document]).sum()) for row in rows]


def _encode(model: SentenceTransformer, texts: Sequence[str], prompt_name: str, batch_size: int = 32) -> torch.Tensor:
    """Return the vectors of texts, with half the batch size if memory runs out. Raises DoesNotFit."""
    try:
        return model.encode(list(texts), prompt_name=prompt_name, batch_size=batch_size, convert_to_tensor=True)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        if batch_size == 1:
            raise DoesNotFit("A text alone takes more memory than there is: lower max_length") from None
    # After the handler, since the error refers to frames with the tensors that did not fit.
    free_memory()
    return _encode(model, texts, prompt_name, batch_size // 2)
