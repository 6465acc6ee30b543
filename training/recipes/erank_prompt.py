"""The chat prompt of a model that reasons and then scores, made from judges.domain.chains."""

from hashlib import sha256

from judges.domain.chains import SYSTEM, render_question
from training.recipes.rendering import DEFAULT_INSTRUCTION, END

TAIL = f"{END}\n<|im_start|>assistant\n"
# The format of the answers, as published in the field `answer` of reranker.json.
ANSWER = "<think>...</think><answer>0 to 10</answer>"


def render_chain_prompt(query: str, document: str, instruction: str = "") -> str:
    """Return the prompt of a pair up to the answer, with unchanged texts."""
    message = render_question(query, document, instruction or DEFAULT_INSTRUCTION)
    return f"<|im_start|>system\n{SYSTEM}{END}\n<|im_start|>user\n{message}{TAIL}"


def chain_prompt_text() -> str:
    """Return the prompt with placeholders for the texts, as it is published with a model."""
    return render_chain_prompt("{query}", "{document}", "{instruction}")


def chain_prompt_sha256() -> str:
    """Return the hash of the prompt; a model trained with another prompt is refused when it is loaded."""
    return sha256(f"{chain_prompt_text()}\0{DEFAULT_INSTRUCTION}".encode()).hexdigest()
