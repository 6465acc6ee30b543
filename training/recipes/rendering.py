"""Prompts of causal rerankers: one string for a pair, with a constant tail after the document (pure).

The score is read from the last token before the answer, so the prompt ends where the answer begins. CrossEncoder
renders the same string from the published chat template, and keeps the tail when it cuts a document (ADR 0013).
"""

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import NamedTuple

from corpus.rubric import HELPFULNESS

# The default rule: a reranker sees no reference answers, so it is the rule for queries without them.
DEFAULT_INSTRUCTION = HELPFULNESS.statement
# Qwen3's own template writes an empty thought when thinking is switched off.
TAIL = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
END = "<|im_end|>"  # Ends the answer.
YES, NO = "yes", "no"


@dataclass(frozen=True)
class RerankPrompt:
    """A rerank prompt: fixed text around an instruction, a query and a document."""

    name: str
    system: str
    instruction: str  # The default.
    to_instruction: str
    to_query: str
    to_document: str
    is_fixed: bool = False  # The model was trained with this instruction alone: other instructions are ignored.

    def render(self, query: str, document: str, instruction: str = "") -> str:
        """Return the prompt of a pair up to the answer, with unchanged texts."""
        if self.is_fixed or not instruction:
            instruction = self.instruction
        return f"{self.head}{instruction}{self.to_query}{query}{self.to_document}{document}{TAIL}"

    @property
    def head(self) -> str:
        """The part before the instruction."""
        return f"<|im_start|>system\n{self.system}<|im_end|>\n<|im_start|>user\n{self.to_instruction}"

    @property
    def text(self) -> str:
        """The prompt with placeholders for the texts, as it is published with a model."""
        return self.render("{query}", "{document}", "{instruction}")

    @property
    def sha256(self) -> str:
        """The hash of the prompt; a model trained with another prompt is refused when it is loaded."""
        return sha256(f"{self.text}\0{self.instruction}".encode()).hexdigest()


# Our prompt asks for the targets of Prism 3.1: one sentence of contribution, and evidence to replace the document.
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
# The template in the paper (Prism A.1), which is shorter than the model card's.
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
# The answers of sequence-to-sequence rerankers, monoT5 and mMARCO's multilingual ones, all with the same prompt.
SEQ2SEQ_ANSWERS = {"monot5": ("true", "false"), "mmonot5": ("yes", "no")}
PROMPT_NAMES = (*PROMPTS, *SEQ2SEQ_ANSWERS)


class RenderedPair(NamedTuple):
    """The text that a model wrote for a pair, label first; "" for models that do not write."""

    text: str
    is_cut: bool = False  # Whether the text reached the maximum number of tokens before its end.


def render_target(label: int, contribution_evidence: str) -> str:
    """Return the text that the model learns to write: label, contribution, evidence (Prism 4.4)."""
    word = YES if label else NO
    return f"{word}\n{contribution_evidence}".strip() + END
