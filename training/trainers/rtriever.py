"""Recipe `rtriever`: an embedder tuned on bundles by sentence-transformers' trainer (RTriever 5.2)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset  # type: ignore[import-untyped]
from peft import LoraConfig, PeftModel
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.modules import Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from tokenizers.processors import TemplateProcessing
from transformers import TrainerCallback

from training.jobs.folder import JobFolder
from training.recipes.table import RetrieverOptions
from training.serving.embedder import open_embedder, pooling_of, read_query_prefix
from training.serving.publication import Kind
from training.trainers.callback import JobCallback
from training.trainers.contrastive import InBatchLoss
from training.trainers.processes import place_in_world
from training.trainers.recipe import TrainingTask

# As Qwen3-Embedding was trained; the paper tunes that model.
QWEN_PREFIX = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"


def load_embedder(folder: Path, options: RetrieverOptions, device: str) -> SentenceTransformer:
    """Load a base with its pooling, unit vectors and the prompt of queries; causal ones end every text."""
    pooling = pooling_of(folder, options.pooling)
    body = Transformer(str(folder), max_seq_length=options.max_length, model_kwargs={"dtype": torch.float32})
    tokenizer = body.tokenizer
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if pooling == "last" and tokenizer("x")["input_ids"][-1] not in (tokenizer.eos_token_id, tokenizer.pad_token_id):
        end = tokenizer.eos_token
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single=f"$A {end}", pair=f"$A $B {end}", special_tokens=[(end, tokenizer.eos_token_id)]
        )
    tokenizer.padding_side = "right"
    mode = {"last": "lasttoken"}.get(pooling, pooling)
    size = body.model.config.get_text_config().hidden_size
    prefix = options.query_prefix or (QWEN_PREFIX if pooling == "last" else "")
    model = SentenceTransformer(
        modules=[body, Pooling(size, mode), Normalize()], device=device, prompts={"query": prefix, "document": ""}
    )
    return model


class Draws(TrainerCallback):
    """What the epoch takes of each bundle: a row is its place, and becomes texts when a batch asks for it."""

    def __init__(self, bundles: Sequence[Any], seed: int) -> None:
        self.bundles, self.seed, self.epoch = bundles, seed, 0

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.epoch = int((state.epoch or 0) + 1e-6)

    def __call__(self, batch: dict[str, list[int]]) -> dict[str, list[Any]]:
        rows: dict[str, list[Any]] = {name: [] for name in ("anchor", "positive", "negative", "label")}
        for place in batch["anchor"]:
            bundle = self.bundles[place]
            positive, negative = bundle.draw(self.seed, self.epoch)
            rows["anchor"].append(bundle.query)
            rows["positive"].append(bundle.positives[positive].text)
            rows["negative"].append(bundle.negatives[negative].text)
            rows["label"].append([place, positive, negative])
        return rows


class RTriever:
    """`recipe.Recipe` of an embedder."""

    def __init__(self, task: TrainingTask) -> None:
        assert isinstance(task.options, RetrieverOptions)
        self.task, self.options = task, task.options
        self.model = load_embedder(task.base, self.options, task.device)
        body: Any = self.model[0]
        for weights in body.model.get_input_embeddings().parameters():
            weights.requires_grad = False
        if self.options.lora_rank:
            torch.manual_seed(self.options.seed)  # LoRA's first matrices are random.
            self.model.add_adapter(
                LoraConfig(
                    r=self.options.lora_rank,
                    lora_alpha=self.options.lora_alpha,
                    lora_dropout=self.options.lora_dropout,
                    target_modules="all-linear",
                    task_type="FEATURE_EXTRACTION",
                )
            )

    def train(self, folder: JobFolder, asked_to_stop: Callable[[], bool]) -> tuple[int, str]:
        bundles, options = self.task.data.train, self.options
        draws = Draws(bundles, options.seed)
        rows = Dataset.from_dict({"anchor": list(range(len(bundles)))})
        rows.set_transform(draws)
        callback = JobCallback(folder, self.task, asked_to_stop, self.dev_margins)
        _, processes = place_in_world()
        arguments = callback.arguments(
            SentenceTransformerTrainingArguments,
            len(bundles),
            batch_sampler="no_duplicates",
            prompts={"anchor": self.model.prompts["query"]},
            dataloader_drop_last=processes > 1,
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
        trainer = SentenceTransformerTrainer(
            self.model, args=arguments, train_dataset=rows, loss=loss, callbacks=[draws, callback]
        )
        return callback.train(trainer)

    def dev_margins(self, rows: Sequence[Any]) -> list[float]:
        """Return the cosine of query and document of each row."""
        was = self.model.training
        found = cosines(self.model, rows)
        self.model.train(was)
        return found

    def trained(self, checkpoint: Path) -> "EmbedderTrained":
        return EmbedderTrained(self.task, checkpoint)

    def record(self) -> dict[str, Any]:
        pooling = str(self.model[1].pooling_mode)
        return {
            "kind": "embedder",
            "max_length": self.options.max_length,
            "embedder": {
                "dimensions": self.model.get_embedding_dimension(),
                "pooling": {"lasttoken": "last"}.get(pooling, pooling),
                "query_prefix": self.model.prompts["query"],
                "temperature": self.options.temperature,
            },
        }


class EmbedderTrained:
    """`finishing.Trained` of a base and the chosen checkpoint; a margin is the cosine of query and document."""

    kind: Kind = "embedder"

    def __init__(self, task: TrainingTask, checkpoint: Path) -> None:
        assert isinstance(task.options, RetrieverOptions)
        self.task, self.options, self.checkpoint = task, task.options, checkpoint
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
        """Return the margins by the code that serves the folder, and not by the library that trained it."""
        served, prefix = open_embedder(folder, self.task.device), read_query_prefix(folder)
        queries, _ = served.encode([prefix + row.query for row in rows])
        documents, _ = served.encode([row.document for row in rows])
        return [float(one) for one in (queries * documents).sum(1)]

    def _load_trained(self, device: str) -> SentenceTransformer:
        if not self.has_adapter:
            return SentenceTransformer(str(self.checkpoint), device=device)
        model = load_embedder(self.task.base, self.options, device)
        body: Any = model[0]
        body.model = PeftModel.from_pretrained(body.model, str(self.checkpoint))
        return model.eval()


def cosines(model: SentenceTransformer, rows: Sequence[Any]) -> list[float]:
    """Return the cosine of query, with its prompt, and document of each row."""
    if not rows:  # A set without a dev split; the library's answer to no texts has one dimension.
        return []
    queries = model.encode([row.query for row in rows], prompt_name="query", convert_to_tensor=True)
    documents = model.encode([row.document for row in rows], prompt_name="document", convert_to_tensor=True)
    return [float(one) for one in (queries * documents).sum(1)]
