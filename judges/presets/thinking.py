"""How requests ask a model to think before it answers, or not to, by provider.

`thinking` of a judge is true, false, or the maximum number of tokens for its thoughts.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from judges.presets.record import Preset

Thinking = bool | int
LEAST_BUDGET = 1024  # Fewest tokens of Anthropic's extended thinking.


def anthropic(thinking: Thinking) -> dict[str, Any]:
    """Return the fields of Anthropic's Messages API: adaptive thinking, a budget, or none."""
    # Without `display`, models since Claude 4.7 omit the text of their thoughts.
    if isinstance(thinking, bool):
        return {"thinking": {"type": "adaptive", "display": "summarized"} if thinking else {"type": "disabled"}}
    if thinking < LEAST_BUDGET:
        words = _("must be at least %(least)s tokens: Anthropic takes no smaller budget")
        raise ValueError(words % {"least": LEAST_BUDGET})
    return budget(thinking)


def gemini(thinking: Thinking) -> dict[str, Any]:
    """Return Gemini's fields: a budget for thoughts, -1 to let the model decide; it returns them as summaries."""
    budget = (-1 if thinking else 0) if isinstance(thinking, bool) else thinking
    return {"thinking_config": {"thinking_budget": budget, "include_thoughts": bool(budget)}}


def qwen(thinking: Thinking) -> dict[str, Any]:
    """Return DashScope's fields: a switch and a budget. Requests with thoughts are refused unless streamed."""
    if not thinking:
        return {"enable_thinking": False}
    budget = {} if isinstance(thinking, bool) else {"thinking_budget": thinking}
    return {"enable_thinking": True, **budget, "stream": True, "stream_options": {"include_usage": True}}


def deepseek(thinking: Thinking) -> dict[str, Any]:
    """Return DeepSeek's fields: a switch without a budget."""
    return budget(_switch(thinking))


def openrouter(thinking: Thinking) -> dict[str, Any]:
    """Return OpenRouter's fields: a switch or a budget."""
    return {"reasoning": {"enabled": thinking} if isinstance(thinking, bool) else {"max_tokens": thinking}}


def switch(thinking: Thinking) -> dict[str, Any]:
    """Return Together's fields: a switch without a budget."""
    return {"reasoning": {"enabled": _switch(thinking)}}


def budget(thinking: Thinking) -> dict[str, Any]:
    """Return Fireworks' fields: a switch that may include a budget."""
    if isinstance(thinking, bool):
        return {"thinking": {"type": "enabled" if thinking else "disabled"}}
    return {"thinking": {"type": "enabled", "budget_tokens": thinking}}


def summary(thinking: Thinking) -> dict[str, Any]:
    """Return the fields of OpenAI's Responses API: reasoning models always reason, and return a summary on request."""
    return {"reasoning": {"summary": "auto"} if _switch(thinking) else {"effort": "none"}}


def template(thinking: Thinking) -> dict[str, Any]:
    """Return the fields of servers that pass arguments to the model's chat template (vLLM, SGLang, llama.cpp)."""
    # Qwen's template and most others use the first, those of DeepSeek and Granite the second.
    return {"chat_template_kwargs": {"enable_thinking": _switch(thinking), "thinking": thinking}}


def effort(thinking: Thinking) -> dict[str, Any]:
    """Return the fields of servers whose only switch is an effort (Ollama)."""
    return {"reasoning_effort": "medium" if _switch(thinking) else "none"}


def litellm(thinking: Thinking) -> dict[str, Any]:
    """Return LiteLLM's fields: an effort or a budget, which it translates for the model behind it."""
    return {"reasoning_effort": "medium"} if thinking is True else budget(thinking)


def _switch(thinking: Thinking) -> bool:
    if not isinstance(thinking, bool):
        raise ValueError(_("must be true or false: this provider takes no number of tokens"))
    return thinking


def thinks(model: str, parameters: Mapping[str, Any], preset: Preset) -> bool:
    """Return whether the model reasons before it answers: by its parameters, else by the preset's list of models."""
    if "thinking" in parameters:
        return bool(parameters["thinking"])
    if "reasoning_effort" in parameters:
        return str(parameters["reasoning_effort"]) != "none"
    return bool(preset.thinking_models and re.search(preset.thinking_models, model))


def known_to_think(model: str, parameters: Mapping[str, Any], preset: Preset) -> bool:
    """Return whether the model is known to reason before it answers, even if its preset leaves that open."""
    explicit_keys = parameters.keys() & {"thinking", "reasoning_effort"}
    return thinks(model, parameters, preset) or (not explicit_keys and thinks_by_name(model, preset))


def thinks_by_name(model: str, preset: Preset) -> bool:
    """Return whether the provider documents that the model reasons unless a request forbids it."""
    return any(names and re.search(names, model) for names in (preset.thinking_models, preset.known_thinkers))


# By the name that a preset gives. Each raises ValueError for a number if the provider has only a switch.
THINKING: dict[str, Callable[[Thinking], dict[str, Any]]] = {
    thinking_format.__name__: thinking_format
    for thinking_format in (
        anthropic,
        gemini,
        qwen,
        deepseek,
        openrouter,
        switch,
        budget,
        summary,
        template,
        effort,
        litellm,
    )
}
