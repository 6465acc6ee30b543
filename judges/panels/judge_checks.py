"""What the keys of a [[judge]] must have to do with each other and with its provider, and what a preset decides."""

from typing import Any

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
    *("schema_mode", "unwrap", "ignore_case", "extra_keys", "safety_settings", "service_tier"),
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
NEEDED = {"base_url": "where is the server? e.g. http://127.0.0.1:8001/v1"}


def taken(preset: Preset) -> set[str]:
    """Keys that a judge of the preset may have; others would be a wish that nobody hears."""
    if preset.wire == "offline":
        return COMMON | GRADED
    if not preset.asks:
        return COMMON | SERVER | ({"threshold", "evidence"} if preset.wire == "rerank" else set())
    own = {*preset.names, *preset.needs, *preset.takes}
    own |= {"logprobs"} if preset.logprobs else set()
    own |= {"thinking"} if preset.thinking else set()
    return COMMON | SERVER | ASKED | own


def decided(given: dict[str, Any], preset: Preset) -> dict[str, Any]:
    """What the preset says where the file is silent, as far as it differs from what a silent version always meant."""
    # It is written into the version: a later change of the preset changes no judge that is stored.
    if not preset.asks:
        return {}
    found: dict[str, Any] = {}
    unwrap, thinking = preset.unwrap, thinks(str(given["model"]), given, preset)
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
    for key in sorted(given.keys() - taken(preset)):
        raise problem(f"is nothing that provider {preset.name} takes: remove it", key)
    for key in preset.needs:
        if key not in given:
            raise problem(f"is missing: {NEEDED.get(key, f'provider {preset.name} needs it')}", key)
    _check_grading(given, preset)
    _check_ballot(given)
    _check_request_options(given, preset)
    _check_offline(given)


def _check_grading(given: dict[str, Any], preset: Preset) -> None:
    """How it answers: scale, generations and endpoint go together, or the wish would be heard by nobody."""
    highest = SCALES[given.get("scale", "binary")]
    if "relevant_from" in given and (highest == 1 or given["relevant_from"] > highest):
        raise problem(f"must be a grade of the judge's scale, from 1 to {highest}", "relevant_from")
    sent = 0 if "temperature" in preset.names or not preset.asks else "default"
    warm = {**decided(given, preset), **given}.get("temperature", sent)
    if given.get("generations", 1) > 1 and not (highest > 1 and (warm == "default" or warm > 0)):
        raise problem('needs a scale ("0-3" or "0-10") and a temperature above 0: else all are alike', "generations")
    if given.get("generations", 1) > 1 and "seed" in given:
        raise problem("makes all generations alike: take it out", "seed")
    endpoint = given.get("endpoint", "chat")
    if "endpoint" in given and endpoint not in preset.endpoints:
        raise problem(f'"{endpoint}" is nothing that provider {preset.name} has', "endpoint")
    if endpoint == "decisions" and (found := sorted(given.keys() & NO_DECISION)):
        raise problem("is nothing that a Decisions endpoint takes: remove it", found[0])


def _check_ballot(given: dict[str, Any]) -> None:
    """The prompt of its votes fits its scale and its endpoint."""
    prompt, scale = given.get("prompt", "rubric"), given.get("scale", "binary")
    if scale not in BALLOTS[prompt]:
        raise problem(f'"{prompt}" needs scale = "{BALLOTS[prompt][0]}"', "prompt")
    if "prompt" in given and given.get("endpoint") == "decisions":
        raise problem("is nothing that a Decisions endpoint takes: remove it", "prompt")
    if prompt == "score-chain" and "relevant_from" not in given:
        raise problem('is missing: "score-chain" names no grade that counts as relevant', "relevant_from")


def _check_request_options(given: dict[str, Any], preset: Preset) -> None:
    """The mode is one of the API's, and so is the way to think."""
    mode = given.get("schema_mode", preset.schema_mode)
    if mode not in preset.schema_modes:
        known = ", ".join(preset.schema_modes)
        raise problem(f'"{mode}" is nothing that provider {preset.name} has; use one of {known}', "schema_mode")
    most = given.get("logprobs", False)
    if not isinstance(most, bool) and most > preset.logprobs:
        raise problem(f"must be at most {preset.logprobs}: provider {preset.name} gives no more", "logprobs")
    if "thinking" in given:
        try:
            THINKING[preset.thinking](given["thinking"])
        except ValueError as error:
            raise problem(str(error), "thinking") from None
        if "reasoning_effort" in given:
            raise problem("and reasoning_effort say the same in two ways: keep one", "thinking")
    room = {"max_output_tokens": ROOM_TO_THINK, **given}["max_output_tokens"]
    budget = given.get("thinking", False)
    if not isinstance(budget, bool) and budget >= room:
        raise problem(f"must leave room for the answer: fewer than max_output_tokens ({room})", "thinking")


def _check_offline(given: dict[str, Any]) -> None:
    """Offline judges have fixed models, and the names of the built-in panel's judges are theirs."""
    models = {f"offline-{model}": model for model in (*ASSESSORS, *Side)}
    own = given["provider"] == "offline"
    if own and given["model"] not in models.values():
        raise problem(f'"{given["model"]}" is no offline model; use one of {", ".join(models.values())}', "model")
    if given["name"] in models and (not own or models[given["name"]] != given["model"]):
        raise problem(f'"{given["name"]}" is a judge of the built-in panel; choose another name', "name")
