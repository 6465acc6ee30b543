"""How somebody else scores a published folder: plain transformers, and sentence-transformers' CrossEncoder."""

import json
from pathlib import Path

PAIRS = [
    ("Why must keys be hashable?", "A dictionary finds a key by its hash."),
    ("no", "yes"),
    ("What does yield do?", "A generator function pauses at each yield. "),
    ('quotes " and {{ braces }}', "line\nbreaks\n\n\tand tabs  "),
    ("too long", "the order of evaluation is left to right " * 200),
]


def by_transformers(folder: Path, pairs=PAIRS, instruction: str = "") -> list[float]:
    """Raw margins: the chat template, one pair at a time, the last position's logits of yes and no."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = json.loads((folder / "reranker.json").read_text())
    margins = []
    for query, document in pairs:
        text = tokenizer.apply_chat_template(messages(query, document, instruction), tokenize=False)
        encoded = tokenizer(text, return_tensors="pt", add_special_tokens=False)
        with torch.no_grad():
            logits = model(**encoded).logits[0, -1]
        margins.append(float(logits[ids["yes_id"]] - logits[ids["no_id"]]))
    return margins


def messages(query: str, document: str, instruction: str = "") -> list[dict[str, str]]:
    """The roles that CrossEncoder gives to a pair and to its prompt."""
    system = [{"role": "system", "content": instruction}] if instruction else []
    return [*system, {"role": "query", "content": query}, {"role": "document", "content": document}]


def by_cross_encoder(folder: Path, pairs=PAIRS, instruction: str = "", batch: int = 1) -> list[float]:
    """Raw margins. In batches, padding on the left moves the chunks of Qwen3.5's linear attention: 3e-5."""
    import torch
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(folder), device="cpu")
    found = model.predict(
        pairs, prompt=instruction or None, activation_fn=torch.nn.Identity(), show_progress_bar=False, batch_size=batch
    )
    return [float(value) for value in found]


def scores_by_cross_encoder(folder: Path, pairs=PAIRS) -> list[float]:
    """What predict() gives by itself, in one batch."""
    from sentence_transformers import CrossEncoder

    return [float(value) for value in CrossEncoder(str(folder), device="cpu").predict(pairs, show_progress_bar=False)]
