"""How a pair is asked of a causal reranker: one string, whose part after the document never changes (pure).

The score is read from the token before the answer, so the string ends where the answer begins. CrossEncoder renders the
same string from the published chat template, tokenises it whole, and keeps the tail when it cuts a document (ADR 0013).
"""

from hashlib import sha256
from typing import NamedTuple

from corpus.rubric import HELPFULNESS

SYSTEM = (
    "You decide whether a document is relevant to a query, by the rule of relevance that comes first. Answer with one "
    "word, yes or no. After yes you may be asked to go on: one sentence with every point that the document adds, "
    "between <contribution> and </contribution>, then the passages that show it, short and exact, "
    "between <evidence> and </evidence>."
)
# Where no rule was given: a reranker is shown no answers, so it is the one for queries without.
DEFAULT_INSTRUCTION = HELPFULNESS.statement
HEAD = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\nRule: "
TO_QUERY = "\nQuery: "
TO_DOCUMENT = "\nDocument: "
# The empty thought is what Qwen3's own template writes where thinking is switched off.
TAIL = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
END = "<|im_end|>"  # Ends the answer.
YES, NO = "yes", "no"


class RenderedPair(NamedTuple):
    """What a model wrote for a pair, the label first; "" for models that do not write."""

    text: str
    is_cut: bool = False  # It had not come to its end when its tokens were used up.


def render_prompt(query: str, document: str, instruction: str = "") -> str:
    """Return the prompt of a pair, up to the answer, with the texts unchanged."""
    return f"{prompt_prefix(query, instruction)}{document}{TAIL}"


def prompt_prefix(query: str, instruction: str = "") -> str:
    """Return what the prompts of all documents of a query share."""
    return f"{HEAD}{instruction or DEFAULT_INSTRUCTION}{TO_QUERY}{query}{TO_DOCUMENT}"


def render_target(label: int, contribution_evidence: str) -> str:
    """Return what the model learns to write: the label, then contribution and evidence where there are any (P 4.4)."""
    word = YES if label else NO
    return f"{word}\n{contribution_evidence}".strip() + END


def prompt_text() -> str:
    """Return the prompt with a mark at the place of each text, as it is kept beside a model."""
    return render_prompt("{query}", "{document}", "{instruction}")


def prompt_sha256() -> str:
    """Return the hash of the prompt: a model that was trained with another one is refused at load."""
    return sha256(f"{prompt_text()}\0{DEFAULT_INSTRUCTION}".encode()).hexdigest()
