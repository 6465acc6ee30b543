"""Prompts of causal rerankers: one string for a pair, whose part after the document never changes (pure).

The score is read from the token before the answer, so the string ends where the answer begins.
CrossEncoder renders the same string from the published chat template, tokenises it whole, and keeps
the tail when it cuts a document (ADR 0013).
"""

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import NamedTuple

from corpus.rubric import HELPFULNESS

# Where no rule was given: a reranker is shown no answers, so it is the one for queries without.
DEFAULT_INSTRUCTION = HELPFULNESS.statement
# The empty thought is what Qwen3's own template writes where thinking is switched off.
TAIL = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
END = "<|im_end|>"  # Ends the answer.
YES, NO = "yes", "no"


@dataclass(frozen=True)
class RerankPrompt:
    """A rerank prompt: fixed pieces around instruction, query and document, each once."""

    name: str
    system: str
    instruction: str  # Where none is given.
    to_instruction: str
    to_query: str
    to_document: str
    is_fixed: bool = False  # It has its own instruction and takes no other: with another its scores mean nothing.

    def render(self, query: str, document: str, instruction: str = "") -> str:
        """Return the prompt of a pair, up to the answer, with the texts unchanged."""
        said = self.instruction if self.is_fixed else instruction or self.instruction
        return f"{self.head}{said}{self.to_query}{query}{self.to_document}{document}{TAIL}"

    @property
    def head(self) -> str:
        """The part before the instruction."""
        return f"<|im_start|>system\n{self.system}<|im_end|>\n<|im_start|>user\n{self.to_instruction}"

    @property
    def text(self) -> str:
        """The prompt with a mark at the place of each text, as it is kept beside a model."""
        return self.render("{query}", "{document}", "{instruction}")

    @property
    def sha256(self) -> str:
        """The hash of the prompt: a model that was trained with another one is refused at load."""
        return sha256(f"{self.text}\0{self.instruction}".encode()).hexdigest()


# Asks for what the targets are (Prism 3.1): one sentence of contribution, and evidence that replaces the document.
QUORUM = RerankPrompt(
    name="quorum",
    system=(
        "You decide whether a document is relevant to a query, by the rule of relevance that comes first. Answer with "
        "one word, yes or no. After yes you may be asked to go on: one sentence with every core point that the "
        "document adds, between <contribution> and </contribution>; then its relevant content rewritten so that it "
        "stands alone, between <evidence> and </evidence>: faithful, nothing added, concise, names, terms, numbers, "
        "dates, code and URLs verbatim, in the document's language."
    ),
    instruction=DEFAULT_INSTRUCTION,
    to_instruction="Rule: ",
    to_query="\nQuery: ",
    to_document="\nDocument: ",
)
# The published template of Qwen3-Reranker (its model card, "Transformers Usage").
QWEN3_RERANKER = RerankPrompt(
    name="qwen3-reranker",
    system=(
        "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
        'Note that the answer can only be "yes" or "no".'
    ),
    instruction="Given a web search query, retrieve relevant passages that answer the query",
    to_instruction="<Instruct>: ",
    to_query="\n<Query>: ",
    to_document="\n<Document>: ",
)
# The published template of Prism-Reranker (its model card, "Quickstart"): one fixed instruction.
PRISM = replace(
    QWEN3_RERANKER,
    name="prism",
    system="Judge whether the Document meets the requirements based on the Query and the Instruct provided. ",
    instruction=(
        'Judge if the document is relevant to the query. Reply "yes" or "no".\nOn "yes", also emit:\n'
        "<contribution>One sentence covering every core point the document contributes to the query, without "
        "elaboration.</contribution>\n<evidence>Self-contained rewrite of the query-relevant content. Rules:\n"
        "- Faithful: rephrase only; add or infer nothing.\n"
        "- Self-contained: evidence alone must fully answer the query.\n"
        "- Concise: drop query-irrelevant background.\n"
        "- Verbatim (no translation): proper nouns, terms, abbreviations, numbers, dates, code, URLs.\n"
        "- Output language: multilingual doc \u2192 query's language; else doc's language.</evidence>"
    ),
    is_fixed=True,
)
# The template that the paper prints (Prism A.1), which is shorter than that of the card.
PRISM_PAPER = replace(
    PRISM,
    name="prism-paper",
    system="Judge whether the Document meets the requirements based on the Query and the Instruct provided.",
    instruction=(
        'Given a query and a document, judge whether the document is relevant to the query. Answer "yes" or "no", then '
        "provide in XML:\n1. <contribution>: what the document contributes to the query.\n"
        "2. <evidence>: a self-contained rewrite of relevant content."
    ),
)
PROMPTS = {prompt.name: prompt for prompt in (QUORUM, PRISM, QWEN3_RERANKER, PRISM_PAPER)}
# What sequence-to-sequence rerankers answer: monoT5, and the multilingual ones of mMARCO. All read the same prompt.
SEQ2SEQ_ANSWERS = {"monot5": ("true", "false"), "mmonot5": ("yes", "no")}
PROMPT_NAMES = (*PROMPTS, *SEQ2SEQ_ANSWERS)


class RenderedPair(NamedTuple):
    """A model's text for a pair, the label first; "" for models that do not write."""

    text: str
    is_cut: bool = False  # It had not come to its end when its tokens were used up.


def render_target(label: int, contribution_evidence: str) -> str:
    """Return what the model learns to write: label, contribution, evidence (Prism 4.4)."""
    word = YES if label else NO
    return f"{word}\n{contribution_evidence}".strip() + END
