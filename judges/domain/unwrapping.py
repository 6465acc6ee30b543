"""Remove the one wrapping that a judge's version allows around an answer's JSON object, before it is parsed. Pure.

A model that is not bound to a schema often puts the object in a Markdown fence, or after a block of reasoning. Only
these two are removed, and nothing is searched for: neither reasoning nor prose beside the object is ever read as an
answer. Unwrapping twice gives the same as once.
"""

import re

WHITESPACE = " \t\r\n"  # What JSON takes for white space.
_FENCE = re.compile(r"```(?:json)?[ \t]*\r?\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
_REASONING = re.compile(r"<think>(.*)</think>(.*)", re.DOTALL)


def unwrap_answer(text: str, how: str) -> tuple[str, str]:
    """The answer without its wrapping, and the reasoning that stood before it. `how`: none, fence, think or both.

    `think` removes one block `<think>...</think>` at the beginning. Where either mark occurs a second time, even in a
    quotation, nobody can say where the reasoning ends, so nothing is removed. `fence` removes three backticks with
    nothing or `json` behind them and three at the end, each on a line of its own, around an object and nothing else.
    `both` removes the block if there is one, then the fence if there is one.
    """
    left, reasoning = _without_reasoning(text) if how in ("think", "both") else (text, "")
    return (_without_code_block(left) if how in ("fence", "both") else left), reasoning


def _without_reasoning(text: str) -> tuple[str, str]:
    found = _REASONING.fullmatch(text.strip(WHITESPACE))
    if found is None or text.count("<think>") > 1 or text.count("</think>") > 1:
        return text, ""
    return found[2].strip(WHITESPACE), found[1].strip()


def _without_code_block(text: str) -> str:
    found = _FENCE.fullmatch(text.strip(WHITESPACE))
    held = found[1].strip(WHITESPACE) if found else ""
    return held if held.startswith("{") else text
