"""Presets: what `provider = "..."` in a judges file stands for. Data; the wires that read it are judges.providers."""

from judges.presets import first_facts, thinkers
from judges.presets.hosted import HOSTED
from judges.presets.local import LOCAL
from judges.presets.native import NATIVE
from judges.presets.record import CHAT, SCHEMA_MODES, UNBOUND, UNWRAPS, Context, Fact, Preset

FIRST = (
    Preset(
        name="openai",
        title="OpenAI",
        wire="chat",
        base_url="https://api.openai.com/v1",
        key_env="OPENAI_API_KEY",
        schema_modes=("json_schema", "json_object", "tool", "text"),
        names={
            **CHAT,
            "max_output_tokens": "max_completion_tokens",
            "reasoning_effort": "reasoning_effort",
            "service_tier": "service_tier",
        },
        known_thinkers=thinkers.OPENAI,
        logprobs=20,
        endpoints=("chat", "decisions"),
        batch=True,
        cache="automatic",
        facts=first_facts.OPENAI,
    ),
    Preset(
        name="openai-compatible",
        title="OpenAI-compatible",
        wire="chat",
        needs=("base_url",),
        names={**CHAT, "reasoning_effort": "reasoning_effort", "service_tier": "service_tier"},
        logprobs=20,
    ),
    Preset(
        name="anthropic",
        title="Anthropic",
        wire="messages",
        base_url="https://api.anthropic.com",
        key_env="ANTHROPIC_API_KEY",
        schema_modes=("json_schema", "tool", "text"),
        names={
            "max_output_tokens": "max_tokens",
            "stop": "stop_sequences",
            "service_tier": "service_tier",
            "reasoning_effort": "output_config.effort",
        },
        thinking="anthropic",
        known_thinkers=thinkers.CLAUDE,
        temperature=False,
        batch=True,
        cache="marked",
        facts=first_facts.ANTHROPIC,
    ),
    Preset(
        name="google",
        title="Google AI",
        wire="generate",
        base_url="https://generativelanguage.googleapis.com",
        key_env="GEMINI_API_KEY",
        schema_modes=("json_schema", "json_object", "tool", "text"),
        names={
            "temperature": "temperature",
            "top_p": "top_p",
            "max_output_tokens": "max_output_tokens",
            "seed": "seed",
            "stop": "stop_sequences",
            "service_tier": "service_tier",
            "safety_settings": "safety_settings",
            "reasoning_effort": "thinking_config.thinking_level",
        },
        thinking="gemini",
        known_thinkers=thinkers.GEMINI,
        logprobs=20,
        endpoints=("chat", "decisions"),
        batch=True,
        cache="automatic",
        facts=first_facts.GOOGLE,
    ),
    Preset(name="rerank-endpoint", title="rerank endpoint", wire="rerank", needs=("base_url",)),
    Preset(name="embed-endpoint", title="embed endpoint", wire="embed", needs=("base_url",)),
    Preset(name="offline", title="offline", wire="offline"),
)
"""The providers that there have always been. What they decide must not change: stored judges do not repeat it."""

PRESETS: dict[str, Preset] = {one.name: one for one in (*FIRST, *NATIVE, *HOSTED, *LOCAL)}
"""By name, in the order in which they are listed."""


def preset(name: str) -> Preset:
    """The preset of this name. Raises KeyError."""
    return PRESETS[name]


__all__ = ["CHAT", "PRESETS", "SCHEMA_MODES", "UNBOUND", "UNWRAPS", "Context", "Fact", "Preset", "preset"]
