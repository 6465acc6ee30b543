"""Checks that the keys of a [[judge]] fit each other, the provider and its preset."""

from typing import Any

from django.utils.translation import gettext as _

from charts.translation import gettext_noop
from corpus.importing.toml_files import problem
from judges.costs.price_entries import PRICES
from judges.offline.judges import ASSESSORS
from judges.presets import PRESETS, UNBOUND, Preset
from judges.presets.thinking import THINKING, thinks
from judges.records import SCALES, Side

ROOM_TO_THINK = 4096  # Default of max_output_tokens for a model that thinks.
LIMITS = ("max_concurrency", "requests_per_minute", "tokens_per_minute")
# Keys that a Decisions endpoint does not accept.
NO_DECISION = {
    *("temperature", "top_p", "logprobs", "generations", "seed", "stop", "reasoning_effort", "thinking"),
    *("schema_mode", "system", "unwrap", "ignore_case", "extra_keys", "safety_settings", "service_tier"),
}
# Prompts of a vote with the scales that each supports: ours, DREAM table 17, ERank figure 5.
BALLOTS: dict[str, tuple[str, ...]] = {"rubric": tuple(SCALES), "verdict-only": ("binary",), "score-chain": ("0-10",)}
GRADED = {"scale", "relevant_from"}
COMMON = {"name", "provider", "model", "family"}
SERVER = {"base_url", "api_key_env", "timeout_s", *LIMITS, *PRICES}
# Keys of judges that take a prompt.
PROMPT_KEYS = {
    *(*GRADED, "generations", "endpoint", "prompt"),
    *("schema_mode", "unwrap", "ignore_case", "extra_keys", "extra_body", "extra_headers"),
}
# Keys of endpoints that take no prompt, by wire format. A web search is paid per call and counts no tokens.
OF_ENDPOINTS = {
    "rerank": SERVER | {"threshold", "evidence"},
    "embed": SERVER,
    "search": (SERVER - {*PRICES, "tokens_per_minute"}) | {"results", "call_price"},
}
NEEDED = {"base_url": gettext_noop("is missing: where is the server? e.g. http://127.0.0.1:8001/v1")}
NOT_TAKEN_BY_DECISIONS = gettext_noop("is not supported by a Decisions endpoint: remove it")


def accepted_keys(preset: Preset) -> set[str]:
    """Return the keys that a judge of the preset may have; others would silently have no effect."""
    if preset.wire == "offline":
        return COMMON | GRADED
    if not preset.asks:
        return COMMON | OF_ENDPOINTS[preset.wire]
    preset_keys = {*preset.names, *preset.needs, *preset.takes}
    preset_keys |= {"logprobs"} if preset.logprobs else set()
    preset_keys |= {"thinking"} if preset.thinking else set()
    preset_keys |= {"system"} if preset.wire in ("chat", "generate") else set()
    return COMMON | SERVER | PROMPT_KEYS | preset_keys


def preset_defaults(keys: dict[str, Any], preset: Preset) -> dict[str, Any]:
    """Return the preset's values for keys that the file omits, as far as they differ from the general defaults."""
    # They are stored with the version, so that a later change of the preset changes no stored judge.
    if not preset.asks:
        return {}
    decisions: dict[str, Any] = {}
    # A Decisions endpoint accepts neither a temperature nor a length of the answer.
    is_chat = keys.get("endpoint", "chat") == "chat"
    unwrap, thinking = preset.unwrap, is_chat and thinks(str(keys["model"]), keys, preset)
    default_mode = (preset.thinking_schema_mode if thinking else "") or preset.schema_mode
    mode = keys.get("schema_mode", default_mode)
    if mode != "json_schema":
        decisions["schema_mode"] = mode
    if mode in UNBOUND:
        decisions |= {"ignore_case": True, "extra_keys": "ignore"}
        unwrap = "both" if unwrap == "none" else unwrap
    if unwrap != "none":
        decisions["unwrap"] = unwrap
    if "temperature" in preset.names and (thinking or not preset.temperature):
        decisions["temperature"] = "default"
    if thinking:
        decisions["max_output_tokens"] = ROOM_TO_THINK
    if preset.says_thinking:
        decisions["thinking"] = thinking
    return decisions


def check(keys: dict[str, Any]) -> None:
    """Check the keys of one [[judge]], each of which is valid by itself. Raises the first problem."""
    preset = PRESETS[keys["provider"]]
    provider = {"provider": preset.name}
    for key in sorted(keys.keys() - accepted_keys(preset)):
        raise problem(_("is not supported by provider %(provider)s: remove it") % provider, key)
    for key in preset.needs:
        if key not in keys:
            words = _(NEEDED[key]) if key in NEEDED else _("is missing: provider %(provider)s needs it") % provider
            raise problem(words, key)
    # Check that scale, generations and endpoint fit each other.
    highest = SCALES[keys.get("scale", "binary")]
    if "relevant_from" in keys and (highest == 1 or keys["relevant_from"] > highest):
        words = _("must be a grade of the judge's scale, from 1 to %(highest)s")
        raise problem(words % {"highest": highest}, "relevant_from")
    default_temperature = 0 if "temperature" in preset.names or not preset.asks else "default"
    temperature = {**preset_defaults(keys, preset), **keys}.get("temperature", default_temperature)
    if keys.get("generations", 1) > 1 and not (highest > 1 and (temperature == "default" or temperature > 0)):
        words = _('needs a scale ("0-3" or "0-10") and a temperature above 0: else all are alike')
        raise problem(words, "generations")
    if keys.get("generations", 1) > 1 and "seed" in keys:
        raise problem(_("makes all generations alike: remove it"), "seed")
    endpoint = keys.get("endpoint", "chat")
    if "endpoint" in keys and endpoint not in preset.endpoints:
        words = _('"%(endpoint)s" is not supported by provider %(provider)s')
        raise problem(words % {"endpoint": endpoint, "provider": preset.name}, "endpoint")
    if endpoint == "decisions" and (unsupported_keys := sorted(keys.keys() & NO_DECISION)):
        raise problem(_(NOT_TAKEN_BY_DECISIONS), unsupported_keys[0])
    # Check that the prompt of the votes fits the scale and the endpoint.
    prompt, scale = keys.get("prompt", "rubric"), keys.get("scale", "binary")
    if scale not in BALLOTS[prompt]:
        words = _('"%(prompt)s" needs scale = "%(scale)s"')
        raise problem(words % {"prompt": prompt, "scale": BALLOTS[prompt][0]}, "prompt")
    if "prompt" in keys and keys.get("endpoint") == "decisions":
        raise problem(_(NOT_TAKEN_BY_DECISIONS), "prompt")
    if prompt == "score-chain" and "relevant_from" not in keys:
        raise problem(_('is missing: "score-chain" names no grade that counts as relevant'), "relevant_from")
    _check_request_options(keys, preset)
    # Check that an offline judge has an offline model, and that no other judge has the name of a built-in one.
    models = {f"offline-{model}": model for model in (*ASSESSORS, *Side)}
    is_offline = keys["provider"] == "offline"
    if is_offline and keys["model"] not in models.values():
        words = _('"%(model)s" is not an offline model; use one of %(known)s')
        raise problem(words % {"model": keys["model"], "known": ", ".join(models.values())}, "model")
    if keys["name"] in models and (not is_offline or models[keys["name"]] != keys["model"]):
        words = _('"%(name)s" is a judge of the built-in panel; choose another name')
        raise problem(words % {"name": keys["name"]}, "name")


def _check_request_options(keys: dict[str, Any], preset: Preset) -> None:
    """Check that the API supports the schema mode, the log-probabilities and the thinking."""
    mode = keys.get("schema_mode", preset.schema_mode)
    if mode not in preset.schema_modes:
        words = _('"%(mode)s" is not supported by provider %(provider)s; use one of %(known)s')
        known_modes = ", ".join(preset.schema_modes)
        raise problem(words % {"mode": mode, "provider": preset.name, "known": known_modes}, "schema_mode")
    if preset.name == "ollama" and "options" in keys.get("extra_body", {}):
        words = _(
            'names "options", which Ollama does not read at this address: set the context length where the server '
            "starts (OLLAMA_CONTEXT_LENGTH), or num_ctx in the model's Modelfile"
        )
        raise problem(words, "extra_body")
    alternatives = keys.get("logprobs", False)
    if not isinstance(alternatives, bool) and alternatives > preset.logprobs:
        words = _("must be at most %(most)s: provider %(provider)s gives no more")
        raise problem(words % {"most": preset.logprobs, "provider": preset.name}, "logprobs")
    if "thinking" in keys:
        try:
            THINKING[preset.thinking](keys["thinking"])
        except ValueError as error:
            raise problem(str(error), "thinking") from None
        if "reasoning_effort" in keys:
            raise problem(_("does the same as reasoning_effort: keep one of them"), "thinking")
    room = {"max_output_tokens": ROOM_TO_THINK, **keys}["max_output_tokens"]
    budget = keys.get("thinking", False)
    if not isinstance(budget, bool) and budget >= room:
        words = _("must leave room for the answer: fewer than max_output_tokens (%(room)s)")
        raise problem(words % {"room": room}, "thinking")
