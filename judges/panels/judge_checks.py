"""Checks of the keys of a [[judge]] against each other, its provider and its preset."""

from typing import Any

from django.utils.translation import gettext as _

from charts.translation import gettext_noop
from corpus.importing.toml_files import problem
from judges.costs.price_entries import PRICES
from judges.offline.judges import ASSESSORS
from judges.presets import PRESETS, UNBOUND, Preset
from judges.presets.thinking import THINKING, thinks
from judges.records import SCALES, Side

ROOM_TO_THINK = 4096  # Tokens of an answer by a model that thinks, where the file does not say.
LIMITS = ("max_concurrency", "requests_per_minute", "tokens_per_minute")
# What a Decisions endpoint does not take.
NO_DECISION = {
    *("temperature", "top_p", "logprobs", "generations", "seed", "stop", "reasoning_effort", "thinking"),
    *("schema_mode", "system", "unwrap", "ignore_case", "extra_keys", "safety_settings", "service_tier"),
}
# Prompts that ask for a vote, and the scales that each has: ours, DREAM table 17, ERank figure 5.
BALLOTS: dict[str, tuple[str, ...]] = {"rubric": tuple(SCALES), "verdict-only": ("binary",), "score-chain": ("0-10",)}
GRADED = {"scale", "relevant_from"}
COMMON = {"name", "provider", "model", "family"}
SERVER = {"base_url", "api_key_env", "timeout_s", *LIMITS, *PRICES}
# Of whoever is asked with a prompt.
ASKED = {
    *(*GRADED, "generations", "endpoint", "prompt"),
    *("schema_mode", "unwrap", "ignore_case", "extra_keys", "extra_body", "extra_headers"),
}
# Of endpoints that are not asked with a prompt, by wire. A web search is paid by the call and counts no tokens.
OF_ENDPOINTS = {
    "rerank": SERVER | {"threshold", "evidence"},
    "embed": SERVER,
    "search": (SERVER - {*PRICES, "tokens_per_minute"}) | {"results", "call_price"},
}
NEEDED = {"base_url": gettext_noop("is missing: where is the server? e.g. http://127.0.0.1:8001/v1")}
NOT_TAKEN_BY_DECISIONS = gettext_noop("is nothing that a Decisions endpoint takes: remove it")


def taken(preset: Preset) -> set[str]:
    """Keys that a judge of the preset may have; others would be a wish that nobody hears."""
    if preset.wire == "offline":
        return COMMON | GRADED
    if not preset.asks:
        return COMMON | OF_ENDPOINTS[preset.wire]
    own = {*preset.names, *preset.needs, *preset.takes}
    own |= {"logprobs"} if preset.logprobs else set()
    own |= {"thinking"} if preset.thinking else set()
    own |= {"system"} if preset.wire in ("chat", "generate") else set()
    return COMMON | SERVER | ASKED | own


def decided(given: dict[str, Any], preset: Preset) -> dict[str, Any]:
    """Return what the preset says where the file is silent, as far as it differs from what silence always meant."""
    # It is written into the version: a later change of the preset changes no judge that is stored.
    if not preset.asks:
        return {}
    found: dict[str, Any] = {}
    # A Decisions endpoint takes neither a temperature nor a length of the answer.
    chats = given.get("endpoint", "chat") == "chat"
    unwrap, thinking = preset.unwrap, chats and thinks(str(given["model"]), given, preset)
    usual = (preset.thinking_schema_mode if thinking else "") or preset.schema_mode
    mode = given.get("schema_mode", usual)
    if mode != "json_schema":
        found["schema_mode"] = mode
    if mode in UNBOUND:
        found |= {"ignore_case": True, "extra_keys": "ignore"}
        unwrap = "both" if unwrap == "none" else unwrap
    if unwrap != "none":
        found["unwrap"] = unwrap
    if "temperature" in preset.names and (thinking or not preset.temperature):
        found["temperature"] = "default"
    if thinking:
        found["max_output_tokens"] = ROOM_TO_THINK
    if preset.says_thinking:
        found["thinking"] = thinking
    return found


def check(given: dict[str, Any]) -> None:
    """The keys of one [[judge]], each of which is right by itself. Raises the problem of the first that is not."""
    preset = PRESETS[given["provider"]]
    provider = {"provider": preset.name}
    for key in sorted(given.keys() - taken(preset)):
        raise problem(_("is nothing that provider %(provider)s takes: remove it") % provider, key)
    for key in preset.needs:
        if key not in given:
            words = _(NEEDED[key]) if key in NEEDED else _("is missing: provider %(provider)s needs it") % provider
            raise problem(words, key)
    _check_grading(given, preset)
    _check_ballot(given)
    _check_request_options(given, preset)
    _check_offline(given)


def _check_grading(given: dict[str, Any], preset: Preset) -> None:
    """Check that scale, generations and endpoint go together: else the wish goes unheard."""
    highest = SCALES[given.get("scale", "binary")]
    if "relevant_from" in given and (highest == 1 or given["relevant_from"] > highest):
        words = _("must be a grade of the judge's scale, from 1 to %(highest)s")
        raise problem(words % {"highest": highest}, "relevant_from")
    sent = 0 if "temperature" in preset.names or not preset.asks else "default"
    warm = {**decided(given, preset), **given}.get("temperature", sent)
    if given.get("generations", 1) > 1 and not (highest > 1 and (warm == "default" or warm > 0)):
        words = _('needs a scale ("0-3" or "0-10") and a temperature above 0: else all are alike')
        raise problem(words, "generations")
    if given.get("generations", 1) > 1 and "seed" in given:
        raise problem(_("makes all generations alike: take it out"), "seed")
    endpoint = given.get("endpoint", "chat")
    if "endpoint" in given and endpoint not in preset.endpoints:
        words = _('"%(endpoint)s" is nothing that provider %(provider)s has')
        raise problem(words % {"endpoint": endpoint, "provider": preset.name}, "endpoint")
    if endpoint == "decisions" and (found := sorted(given.keys() & NO_DECISION)):
        raise problem(_(NOT_TAKEN_BY_DECISIONS), found[0])


def _check_ballot(given: dict[str, Any]) -> None:
    """The prompt of its votes fits its scale and its endpoint."""
    prompt, scale = given.get("prompt", "rubric"), given.get("scale", "binary")
    if scale not in BALLOTS[prompt]:
        words = _('"%(prompt)s" needs scale = "%(scale)s"')
        raise problem(words % {"prompt": prompt, "scale": BALLOTS[prompt][0]}, "prompt")
    if "prompt" in given and given.get("endpoint") == "decisions":
        raise problem(_(NOT_TAKEN_BY_DECISIONS), "prompt")
    if prompt == "score-chain" and "relevant_from" not in given:
        raise problem(_('is missing: "score-chain" names no grade that counts as relevant'), "relevant_from")


def _check_request_options(given: dict[str, Any], preset: Preset) -> None:
    """The mode is one of the API's, and so is the way to think."""
    mode = given.get("schema_mode", preset.schema_mode)
    if mode not in preset.schema_modes:
        words = _('"%(mode)s" is nothing that provider %(provider)s has; use one of %(known)s')
        known = ", ".join(preset.schema_modes)
        raise problem(words % {"mode": mode, "provider": preset.name, "known": known}, "schema_mode")
    if preset.name == "ollama" and "options" in given.get("extra_body", {}):
        words = _(
            'names "options", which Ollama does not read at this address: set the context length where the server '
            "starts (OLLAMA_CONTEXT_LENGTH), or num_ctx in the model's Modelfile"
        )
        raise problem(words, "extra_body")
    most = given.get("logprobs", False)
    if not isinstance(most, bool) and most > preset.logprobs:
        words = _("must be at most %(most)s: provider %(provider)s gives no more")
        raise problem(words % {"most": preset.logprobs, "provider": preset.name}, "logprobs")
    if "thinking" in given:
        try:
            THINKING[preset.thinking](given["thinking"])
        except ValueError as error:
            raise problem(str(error), "thinking") from None
        if "reasoning_effort" in given:
            raise problem(_("does the same as reasoning_effort: keep one of them"), "thinking")
    room = {"max_output_tokens": ROOM_TO_THINK, **given}["max_output_tokens"]
    budget = given.get("thinking", False)
    if not isinstance(budget, bool) and budget >= room:
        words = _("must leave room for the answer: fewer than max_output_tokens (%(room)s)")
        raise problem(words % {"room": room}, "thinking")


def _check_offline(given: dict[str, Any]) -> None:
    """Offline judges have fixed models, and the names of the built-in panel's judges are theirs."""
    models = {f"offline-{model}": model for model in (*ASSESSORS, *Side)}
    own = given["provider"] == "offline"
    if own and given["model"] not in models.values():
        words = _('"%(model)s" is no offline model; use one of %(known)s')
        raise problem(words % {"model": given["model"], "known": ", ".join(models.values())}, "model")
    if given["name"] in models and (not own or models[given["name"]] != given["model"]):
        words = _('"%(name)s" is a judge of the built-in panel; choose another name')
        raise problem(words % {"name": given["name"]}, "name")
