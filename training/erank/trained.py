"""A trained model that reasons and scores: measured with its adapter, merged, written, and read back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peft import PeftModel
from transformers import AutoTokenizer

from training.published.base import generation_ends
from training.published.causal import load_causal
from training.published.chains import ChainPrompt, GeneratedScore, measure_answers
from training.published.publication import Kind, chat_template
from training.published.publishing import copy_adapter, write_causal
from training.recipes.erank_prompt import render_chain_prompt


class ErankTrained:
    """A `finishing.Trained` of a base and a checkpoint, the folder of an adapter or of all weights."""

    kind: Kind = "erank"
    random_head = False

    def __init__(
        self, base: Path, weights: Path, adapter: Path | None, prompt: ChainPrompt, *, device: str = "cpu"
    ) -> None:
        self.base, self.weights, self.adapter, self.prompt, self.device = base, weights, adapter, prompt, device
        self.has_adapter = adapter is not None
        self.tokenizer = AutoTokenizer.from_pretrained(base)
        self.written: list[GeneratedScore] = []
        self.model: Any = None

    def base_margins(self, rows: Sequence[Any]) -> list[float]:
        return self.prompt.margins(load_causal(self.base, self.device), self.tokenizer, rows)

    def trained_margins(self, rows: Sequence[Any]) -> list[float]:
        self.model = load_causal(self.weights, self.device)
        if self.adapter is not None:
            self.model = PeftModel.from_pretrained(self.model, str(self.adapter)).eval()
        self.written = self.prompt.write_scores(self.model, self.tokenizer, rows)
        return [answer.margin for answer in self.written]

    def write(self, folder: Path) -> None:
        """Write the merged model, and the adapter in `adapter/`. Afterwards the adapter can no longer be measured."""
        merged = self.model if self.adapter is None else self.model.merge_and_unload(safe_merge=True)
        longest = self.prompt.max_prompt + self.prompt.max_response
        ends = generation_ends(merged, self.tokenizer)
        write_causal(folder, merged, self.tokenizer, template=chat_template(render_chain_prompt), max_length=longest)
        merged.generation_config.eos_token_id = ends
        merged.generation_config.max_new_tokens = self.prompt.max_response
        merged.generation_config.save_pretrained(folder)
        if self.adapter is not None:
            copy_adapter(self.adapter, folder)
        self.model = None

    def published_margins(self, folder: Path, rows: Sequence[Any]) -> list[float]:
        """Return the margins that the written model gives to the answers of the trained one.

        Generating answers again would compare texts, which diverge where two tokens are almost equally likely.
        """
        model, tokenizer = load_causal(folder, self.device), AutoTokenizer.from_pretrained(folder)
        prompts = self.prompt.encode(tokenizer, rows)
        answers = measure_answers(model, tokenizer, prompts, [answer.ids for answer in self.written])
        return [answer.margin for answer in answers]
