"""A trained causal model: measured as base and adapter, merged in fp32, and written."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from training.published.base import dtype_of, warn_of_slow_path
from training.published.margins import PromptTokens
from training.published.publication import Kind, chat_template
from training.published.publishing import copy_adapter, write_causal
from training.published.torch_memory import free_memory


class LoraTrained:
    """A `finishing.Trained` of a base folder and an adapter folder, loaded in fp32 whatever format they trained in."""

    kind: Kind = "causal"
    has_adapter = True
    random_head = False

    def __init__(self, base: Path, adapter: Path, prompt: PromptTokens, *, device: str = "cpu") -> None:
        self.adapter, self.prompt, self.device = adapter, prompt, device
        self.tokenizer = AutoTokenizer.from_pretrained(base)
        self.model = PeftModel.from_pretrained(load_causal(base, device), str(adapter)).eval()

    def base_margins(self, rows: Sequence[Any]) -> list[float]:
        with self.model.disable_adapter():
            return self.prompt.margins(self.model, self.tokenizer, rows)

    def trained_margins(self, rows: Sequence[Any]) -> list[float]:
        return self.prompt.margins(self.model, self.tokenizer, rows)

    def write(self, folder: Path) -> None:
        """Write the merged model, and the adapter in `adapter/`. Afterwards the adapter can no longer be measured."""
        # safe_merge raises an error for an adapter that would make weights infinite or NaN.
        merged = self.model.merge_and_unload(safe_merge=True)
        template = chat_template(self.prompt.render)
        write_causal(folder, merged, self.tokenizer, template=template, max_length=self.prompt.max_length)
        # Freed before the written model is loaded.
        del merged, self.model
        free_memory()
        copy_adapter(self.adapter, folder)

    def published_margins(self, folder: Path, rows: Sequence[Any]) -> list[float]:
        """Return the margins of the written model with the prompt of its chat template, as others would use it."""
        tokenizer = AutoTokenizer.from_pretrained(folder)

        def render(query: str, document: str, instruction: str) -> str:
            return str(tokenizer.apply_chat_template(chat_messages(query, document, instruction), tokenize=False))

        return replace(self.prompt, render=render).margins(load_causal(folder, self.device), tokenizer, rows)


def chat_messages(query: str, document: str, instruction: str) -> list[dict[str, str]]:
    """Return a pair as messages with the roles of the chat template, as sentence-transformers makes them."""
    system = [{"role": "system", "content": instruction}] if instruction else []
    return [*system, {"role": "query", "content": query}, {"role": "document", "content": document}]


def load_causal(folder: Path, device: str = "cpu", precision: str = "fp32", attention: str = "auto") -> Any:
    """Load a causal model for scoring."""
    implementation = {} if attention == "auto" else {"attn_implementation": attention}
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype_of(precision), **implementation)
    warn_of_slow_path(model.config, device)
    return model.to(device).eval()
