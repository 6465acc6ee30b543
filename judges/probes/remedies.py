"""Diagnosis of calls to a judge: what the provider answered, and the line of the judges file that solves the problem.

A line is advised only if it was tried, by a second call or on the answer itself; otherwise the message contains the
provider's words.
"""

import json
import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import product
from typing import Any

from django.utils.translation import gettext as _

from charts.translation import gettext_noop
from judges.domain import verdicts
from judges.errors import Overloaded, ProviderError, Rejected
from judges.panels.judge_checks import preset_defaults
from judges.presets import UNWRAPS, thinking
from judges.providers.replies import get_path, parse_body, storable_text
from judges.records import Judge, Reply
from judges.stored_keys import STORED

NEAREST = 3  # Number of models that are offered in place of an unknown one.
# Words of a refusal, by the judge key that they concern.
CLUES = {
    "system": r"system (role|message|prompt|instruction)s?.{0,30}(not|n.t|un) ?(be )?(support|enabled|allowed)|"
    r"(developer|system) instruction is not enabled|roles must alternate|does not support .?system|only user,? (and )?"
    r"assistant",
    "model": r"(model|deployment).{0,80}(not exist|not found|unknown)|(invalid|unknown|no such) model|model_not_found",
    "max_output_tokens": r"context[ _](length|window|size)|maximum context|(prompt|input) is too long|"
    r"max_(completion_|output_|new_)?tokens|maxoutputtokens",
    "logprobs": r"log_?prob",
    "schema_mode": r"response_?format|text\.format|output_config\.format|json_schema|json_object|json mode|structured|"
    r"response_?(json_?)?schema|response_?mime|tool|function|grammar|guided|schema",
    "temperature": r"temperature",
    "reasoning_effort": r"reasoning[ _.]?effort|thinking_?level|\beffort\b",
    "thinking": r"thinking|budget|reasoning[ _.]?summar",
}
# Refusals of the key, the account, the region or the address, which no other form of the request would avoid.
SETTLED = r"api.?(key|version)|location|country|inference profile|usage limits|credit|budget.{0,20}exceed|no endpoints"
READING = ("unwrap", "ignore_case", "extra_keys")  # Keys that determine how answers are parsed.
# Refusals that concern these keys would recur whatever else were changed.
NO_CHANGE = ("model", "max_output_tokens")
# Statuses with which servers refuse a parameter; 500 and 501 come from servers that do not check it.
PARAMETER_STATUSES = (400, 403, 404, 415, 422, 500, 501)

READINGS = {
    ("unwrap", "fence"): gettext_noop("it answers with JSON in a Markdown fence"),
    ("unwrap", "think"): gettext_noop("it puts a <think> block before its answer"),
    ("unwrap", "both"): gettext_noop("it puts a <think> block and a Markdown fence around its answer"),
    ("ignore_case", True): gettext_noop('it writes "Yes" or "NO" for yes or no'),
    ("extra_keys", "ignore"): gettext_noop("it adds keys that were not asked for"),
}


@dataclass(frozen=True, slots=True)
class ProbeCall:
    """A call of a check with its result: a reply or an error."""

    judge: Judge
    role: str
    document: str
    reply: Reply | None = None
    error: ProviderError | None = None

    @property
    def unusable(self) -> str:
        """Why the reply is no verdict; "" if it is one, or if this kind of judge gives none."""
        assert self.reply is not None
        if not (self.reply.ended or self.reply.refused or self.reply.truncated):
            return _("it ended with %(reason)s, which does not end an answer") % {"reason": self.reply.finish_reason}
        return "" if self.role in ("embed", "web") else _unusable_reason(self, self.judge, self.reply.text)

    @property
    def works(self) -> bool:
        """Whether the judge gave a usable answer to this request."""
        reply = self.reply
        return reply is not None and not reply.refused and not reply.truncated and not self.unusable

    @property
    def mode_result(self) -> str:
        """What the call shows about its schema mode: works, unreadable, refused or not known."""
        if self.works:
            return "works"
        if self.reply is not None:
            return "unreadable"
        assert self.error is not None
        return "refused" if suspect_key(self.judge, self.error) == "schema_mode" else "not known"

    @property
    def thinks(self) -> bool:
        """Whether the answer contains or counts thoughts; a Decisions endpoint leaves them no room."""
        reply = self.reply
        if reply is None or self.judge.decides:
            return False
        return bool(reply.usage.reasoning or reply.reasoning or reply.text.lstrip().startswith("<think>"))


def change_parameters(judge: Judge, **parameters: Any) -> Judge:
    """Return the judge with other parameters, where None removes one.

    With another schema mode, the defaults change as they would if the judges file named that mode.
    """
    changed = {**judge.parameters, **parameters}
    if "schema_mode" in parameters:
        # Defaults for parsing that come from the current mode do not apply to the other one.
        mode_decisions = preset_defaults({"model": judge.model, **judge.parameters}, judge.preset)
        stale = {
            key
            for key in READING
            if key not in parameters and key in mode_decisions and changed.get(key) == mode_decisions[key]
        }
        changed = {key: value for key, value in changed.items() if key not in stale}
        changed = {**preset_defaults({"model": judge.model, **changed}, judge.preset), **changed}
    return replace(judge, parameters={key: value for key, value in changed.items() if value is not None})


def other_modes(judge: Judge) -> list[str]:
    """Return the provider's schema modes besides the judge's, the default first."""
    preset = judge.preset
    return [mode for mode in dict.fromkeys((preset.schema_mode, *preset.schema_modes)) if mode != judge.schema_mode]


def suspect_key(judge: Judge, error: ProviderError) -> str:
    """Return the judge key that a refusal concerns; "" if it names none that was sent."""
    if error.status not in PARAMETER_STATUSES or re.search(SETTLED, f"{error} {error.raw}".lower()):
        return ""
    param = storable_text(get_path(parse_body(error.raw), "error", "param"))
    for words in (text.lower() for text in (param, str(error), error.raw) if text):
        for key, clue in CLUES.items():
            if _sends_key(judge, key) and re.search(clue, words):
                return key
        for key in judge.parameters:
            if key in ("seed", "stop", "top_p", "service_tier", "safety_settings") and key.replace("_", "") in (
                words.replace("_", "")
            ):
                return key
        if any(name.lower() in words for name in judge.parameters.get("extra_body", {})):
            return "extra_body"
    return ""


def next_try(first: ProbeCall) -> Judge | None:
    """Return the judge with the parameters of the second call; None if a second call would show nothing."""
    judge, preset, reply = first.judge, first.judge.preset, first.reply
    if not preset.asks or judge.decides:
        return None
    if (error := first.error) is not None:
        # Without the refused parameter, or in another schema mode if the refusal concerns that or nothing known.
        key = suspect_key(judge, error)
        if not isinstance(error, Rejected | Overloaded) or error.status not in PARAMETER_STATUSES or key in NO_CHANGE:
            return None
        if not key and (error.status != 400 or re.search(SETTLED, f"{error} {error.raw}".lower())):
            return None
        if key in ("", "schema_mode"):
            return _in_next_mode(judge)
        return change_parameters(judge, **{key: {"temperature": "default", "system": "user"}.get(key)})
    if first.works:
        alternatives = preset.logprobs if not (judge.alternatives or first.thinks) else 0
        return change_parameters(judge, logprobs=alternatives) if alternatives else None
    assert reply is not None
    readable = reply.text.strip() and not reply.refused and not reply.truncated
    return _in_next_mode(judge) if readable and looser_reading(first) is None else None


def _in_next_mode(judge: Judge) -> Judge | None:
    modes = other_modes(judge)
    return change_parameters(judge, schema_mode=modes[0]) if modes else None


def _sends_key(judge: Judge, key: str) -> bool:
    """Return whether a request of the judge contains something that depends on the key."""
    if key == "schema_mode":
        return judge.schema_mode != "text"
    if key == "logprobs":
        return judge.alternatives > 0
    if key == "temperature":
        return sent_temperature(judge) is not None
    if key == "system":
        return judge.preset.wire in ("chat", "generate") and not judge.merges_system
    return key in NO_CHANGE or key in judge.parameters


def sent_temperature(judge: Judge) -> float | None:
    """Return the temperature that is sent; None if none is."""
    temperature = judge.parameters.get("temperature", 0)
    return None if temperature == "default" or "temperature" not in judge.preset.names else float(temperature)


def looser_reading(call: ProbeCall) -> dict[str, Any] | None:
    """Return the fewest changes of the parsing keys that would make the answer a verdict; None if none would."""
    assert call.reply is not None
    judge, settings_lists = call.judge, list[dict[str, Any]]()
    wraps = UNWRAPS if judge.unwrap == "none" else (judge.unwrap, "both")
    for unwrap, case, extra in product(wraps, (judge.ignore_case, True), (judge.extra_keys, "ignore")):
        candidate = {"unwrap": unwrap, "ignore_case": case, "extra_keys": extra}
        settings_lists.append({key: value for key, value in candidate.items() if value != getattr(judge, key)})
    for settings in sorted(settings_lists, key=len):
        if settings and not _unusable_reason(call, change_parameters(call.judge, **settings), call.reply.text):
            return settings
    return None


def _unusable_reason(call: ProbeCall, judge: Judge, answer: str) -> str:
    try:
        verdicts.parse_answer(call.role, answer, call.document, judge)
    except verdicts.Unusable as error:
        return str(error)
    return ""


def describe_problem(first: ProbeCall, second: ProbeCall | None, names: tuple[str, ...] = ()) -> str:
    """Return why the judge does not work, and the remedy; "" if it works. `names`: the provider's models."""
    if first.works:
        return ""
    judge, reply = first.judge, first.reply
    if first.error is not None:
        return _describe_refusal(judge, first.error, second, names)
    assert reply is not None
    if reply.refused:
        return _("it refused a harmless question; choose another model")
    if reply.truncated or (first.thinks and not reply.text.strip()):
        # A server's reasoning parser may have taken the whole answer for thoughts.
        thoughts = reply.reasoning.strip()
        lenient = change_parameters(judge, unwrap="both", ignore_case=True, extra_keys="ignore")
        if thoughts and not _unusable_reason(first, lenient, thoughts):
            return _("its answer is in its reasoning field: start the server without a reasoning parser")
        words = _("its answer was cut at %(now)s tokens, %(thoughts)s of them thinking: raise max_output_tokens")
        if verdicts.repeats_itself(reply.text):
            words = _("its answer repeats itself until it is cut at %(now)s tokens: set a repetition penalty")
        if not reply.truncated:
            words = _("it thought and gave no answer; max_output_tokens is %(now)s")
        return words % {"now": judge.max_output_tokens, "thoughts": reply.usage.reasoning}
    if (settings := looser_reading(first)) is not None:
        observations = "; ".join(_(READINGS[key, value]) for key, value in settings.items())
        lines = ", ".join(setting_line(key, value) for key, value in settings.items())
        return _("%(seen)s: set %(wanted)s") % {"seen": observations, "wanted": lines}
    if second is not None and second.works:
        words = _('its answer in schema_mode "%(mode)s" does not follow the schema (%(error)s): set %(setting)s')
        setting = setting_line("schema_mode", second.judge.schema_mode)
        return words % {"mode": judge.schema_mode, "error": first.unusable, "setting": setting}
    return _("its answer does not follow the schema (%(error)s)") % {"error": first.unusable}


def _describe_refusal(judge: Judge, error: ProviderError, second: ProbeCall | None, names: tuple[str, ...]) -> str:
    """Explain a refusal, with the line to change if the second call succeeded with it."""
    if second is not None and second.reply is not None:
        # The line of the judges file that avoided the refusal.
        other = second.judge
        if other.schema_mode != judge.schema_mode:
            words = _("this server answers %(mode)s with %(status)s: set %(wanted)s (%(error)s)")
            line = setting_line("schema_mode", other.schema_mode)
            advice = words % {"mode": judge.schema_mode, "status": error.status, "wanted": line, "error": error}
        else:
            keys = judge.parameters.keys() | other.parameters.keys()
            (key,) = (name for name in keys if judge.parameters.get(name) != other.parameters.get(name))
            if key in other.parameters:
                line = setting_line(key, other.parameters[key])
                advice = _("%(error)s: set %(wanted)s") % {"error": error, "wanted": line}
            else:
                advice = _("%(error)s: it does not take %(key)s: remove it") % {"error": error, "key": key}
        remaining_problem = describe_problem(second, None)
        return f"{advice}; {remaining_problem}" if remaining_problem else advice
    key = suspect_key(judge, error)
    if names and judge.model not in names and (key == "model" or (error.status == 404 and not key)):
        by_small = {name.lower(): name for name in names}
        nearest_names = get_close_matches(judge.model.lower(), by_small, NEAREST, 0.4) or sorted(by_small)[:NEAREST]
        nearest = ", ".join(by_small[name] for name in nearest_names)
        words = _('it does not know the model "%(model)s"; the nearest that it has: %(names)s')
        return words % {"model": judge.model, "names": nearest}
    if error.status == 401:
        if judge.api_key_env.startswith(STORED):
            return _("%(error)s: the stored key is not accepted") % {"error": error}
        variable = judge.api_key_env or judge.preset.key_env or "api_key_env"
        return _("%(error)s: the key in %(api_key_env)s is not accepted") % {"error": error, "api_key_env": variable}
    return str(error)


def known_to_think(judge: Judge) -> bool:
    """Return whether the judge's settings or its provider's documentation say that it thinks."""
    return not judge.decides and thinking.known_to_think(judge.model, judge.parameters, judge.preset)


def setting_line(key: str, value: object) -> str:
    """Return a line of the judges file; JSON writes strings, numbers and booleans as TOML does."""
    return f"{key} = {json.dumps(value)}"
