"""Recipe `rtriever`: an embedder tuned on bundles by sentence-transformers (RTriever 5.2)."""

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
from training.trainers.contrastive import InBatchLoss, RanOutElsewhere, agree
from training.trainers.memory import DoesNotFit, check_memory
from training.trainers.prism import lora_config
from training.trainers.processes import gather, place_in_world
from training.trainers.recipe import TrainingTask
from training.trainers.token_tables import tokenize_rows

FP32 = 4  # Bytes of a weight: vectors are compared at a temperature at which bf16's would be too coarse.
# As Qwen3-Embedding was trained; the paper tunes that model.
QWEN_PREFIX = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"


def load_embedder(folder: Path, options: RetrieverOptions, device: str, attention: str = "auto") -> SentenceTransformer:
    """Load a base with its pooling, unit vectors and the query prompt; causal bases end each text with a token."""
    pooling = pooling_of(folder, options.pooling)
    chosen = {} if attention == "auto" else {"attn_implementation": attention}
    body = Transformer(str(folder), max_seq_length=options.max_length, model_kwargs={"dtype": torch.float32, **chosen})
    tokenizer = body.tokenizer
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    # "last" pools the state of the final token, which has to be the same end token for every text.
    if pooling == "last" and tokenizer("x")["input_ids"][-1] not in (tokenizer.eos_token_id, tokenizer.pad_token_id):
        end = tokenizer.eos_token
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single=f"$A {end}", pair=f"$A $B {end}", special_tokens=[(end, tokenizer.eos_token_id)]
        )
    tokenizer.padding_side = "right"
    tokenizer.split_special_tokens = True  # A control token in a text stays text, in the published folder as well.
    mode = {"last": "lasttoken"}.get(pooling, pooling)
    size = body.model.config.get_text_config().hidden_size
    prefix = options.query_prefix or (QWEN_PREFIX if pooling == "last" else "")
    modules, prompts = [body, Pooling(size, mode), Normalize()], {"query": prefix, "document": ""}
    return SentenceTransformer(modules=modules, device=device, prompts=prompts)


def published_length(base: Path, trained: int) -> int:
    """Return how many tokens the published model reads: no fewer than its base's folder says."""
    path = base / "sentence_bert_config.json"
    own = json.loads(path.read_text()).get("max_seq_length") if path.exists() else None
    return max(trained, int(own or 0))


class Texts:
    """Token ids of bundles' queries (with prompt) and documents, with end tokens."""

    def __init__(self, task: TrainingTask, model: SentenceTransformer) -> None:
        prompt, self.tokenizer = model.prompts["query"], model.tokenizer
        self.query_prompt, limit = prompt, model.max_seq_length
        passages = (one for bundle in task.data.train for one in (*bundle.positives, *bundle.negatives))
        texts = [*(prompt + bundle.query for bundle in task.data.train), *(one.text for one in passages)]
        self.places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        known = list(self.places)

        def make(number: int) -> dict[str, Any]:
            encode = partial(self.tokenizer, known[number], verbose=False)
            ids = encode(truncation=True, max_length=limit)["input_ids"]
            return {"ids": ids, "whole": len(encode(truncation=False)["input_ids"])}

        self.table = tokenize_rows(task, self.tokenizer, len(known), make, prompt, limit)

    def pad(self, places: Sequence[int], **_rest: Any) -> dict[str, Any]:
        """Return a batch of texts by their places."""
        return dict(self.tokenizer.pad({"input_ids": self.table[list(places)]["ids"]}, return_tensors="pt"))


class Draws(TrainerCallback):
    """The documents that an epoch takes of each bundle: a row, its place, becomes places of texts when a batch asks."""

    def __init__(self, bundles: Sequence[Any], texts: Texts, seed: int) -> None:
        self.bundles, self.texts, self.seed, self.epoch = bundles, texts, seed, 0

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        # transformers counts epochs in floats: 1e-6 keeps 0.9999999 from being epoch 0.
        self.epoch = int((state.epoch or 0) + 1e-6)

    def __call__(self, batch: dict[str, list[int]]) -> dict[str, list[Any]]:
        rows: dict[str, list[Any]] = {name: [] for name in ("anchor", "positive", "negative", "label")}
        for place in batch["anchor"]:
            bundle = self.bundles[place]
            positive, negative = bundle.draw(self.seed, self.epoch)
            drawn = bundle.positives[positive].text, bundle.negatives[negative].text
            for name, text in zip(rows, (self.texts.query_prompt + bundle.query, *drawn), strict=False):
                rows[name].append(self.texts.places[text])
            rows["label"].append([place, positive, negative])
        return rows


class RetrieverTrainer(SentenceTransformerTrainer):
    """sentence-transformers' trainer, which does a step again with half of the tokens when memory runs out in it."""

    callback: JobCallback
    cached: InBatchLoss

    def training_step(self, model: Any, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Any:
        while True:
            self.cached.mini_batch_num_tokens = self.callback.progress.token_budget
            try:
                return super().training_step(model, dict(inputs), num_items_in_batch)
            except RanOutElsewhere:
                pass
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                agree(True)
            # Outside the handler: the error holds the frames, and these hold what does not fit.
            self.shrink(inputs)

    def shrink(self, inputs: dict[str, Any]) -> None:
        """Halve the token budget in all processes, down to a text a pass. Raises DoesNotFit."""
        # Gradients of the failed attempt would add to those of the next one.
        for value in self.model.parameters():
            value.grad = None
        lengths = [mask.sum(1) for name, mask in inputs.items() if name.endswith("attention_mask")]
        # Of the longest text and the longest column of a batch; the largest of all processes, as all shrink alike.
        own = max(int(one.max()) for one in lengths), max(int(one.sum()) for one in lengths)
        longest, used = (max(found) for found in zip(*gather(own), strict=True))
        budget = self.callback.progress.token_budget
        if budget <= longest:
            raise DoesNotFit(f"A text of {longest} tokens alone takes more memory than there is: lower max_length")
        self.callback.progress.token_budget = max(1, min(budget, used) // 2)
        free_memory()
        self.callback.say(f"out of memory: going on with {self.callback.progress.token_budget:,} tokens at once")


class RTriever:
    """`recipe.Recipe` of an embedder."""

    def __init__(self, task: TrainingTask) -> None:
        assert isinstance(task.options, RetrieverOptions)
        self.task, self.options = task, task.options
        self.row_lengths: dict[str, Any] = {}  # Until train has said them.
        # Before its tokenizer is loaded nothing is known of the texts: what the weights take, in fp32, is the bound.
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
        draws = Draws(bundles, self.texts, options.seed)
        rows = Dataset.from_dict({"anchor": list(range(len(bundles)))})
        rows.set_transform(draws)
        callback = JobCallback(folder, self.task, asked_to_stop, self.dev_margins)
        self.row_lengths = callback.tell_lengths(self.texts.table["whole"], options.max_length)
        _, processes = place_in_world()
        arguments = callback.arguments(
            SentenceTransformerTrainingArguments,
            len(bundles),
            batch_sampler="no_duplicates",
            dataloader_drop_last=processes > 1,
            ddp_broadcast_buffers=False,  # Processes may have other numbers of passes, and nothing here changes.
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
        trainer.callback, trainer.cached = callback, loss
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
            "row_lengths": self.row_lengths,
            "embedder": {
                "dimensions": self.model.get_embedding_dimension(),
                "pooling": {"lasttoken": "last"}.get(pooling, pooling),
                "query_prefix": self.model.prompts["query"],
                "temperature": self.options.temperature,
            },
        }


class EmbedderTrained:
    """`finishing.Trained` of base and checkpoint; a margin is query-document cosine."""

    kind: Kind = "embedder"
    random_head = False

    def __init__(self, task: TrainingTask, checkpoint: Path) -> None:
        assert isinstance(task.options, RetrieverOptions)
        self.task, self.checkpoint = task, checkpoint
        # What is measured reads as much as what is published.
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
        """Return the margins by the folder's serving code, not the training library's."""
        served, prefix = open_embedder(folder, self.task.device), read_query_prefix(folder)
        queries, _ = served.encode([prefix + row.query for row in rows])
        documents, _ = served.encode([row.document for row in rows])
        return [float(one) for one in (queries * documents).sum(1)]

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
    """Return the cosine of query, with its prompt, and document of each row."""
    if not rows:  # A set without a dev split; the library's answer to no texts has one dimension.
        return []
    queries = _encode(model, [row.query for row in rows], "query")
    documents = _encode(model, [row.document for row in rows], "document")
    return [float(one) for one in (queries * documents).sum(1)]


def _encode(model: SentenceTransformer, texts: Sequence[str], prompt: str, together: int = 32) -> torch.Tensor:
    """Return the vectors of texts, of half as many at a time where memory runs out."""
    try:
        return model.encode(list(texts), prompt_name=prompt, batch_size=together, convert_to_tensor=True)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        if together == 1:
            raise DoesNotFit("A text alone takes more memory than there is: lower max_length") from None
    # Outside the handler: the error holds the frames, and these hold what does not fit.
    free_memory()
    return _encode(model, texts, prompt, together // 2)
