"""Diagnosis of a call to a judge, and the line of the judges file that mends what is wrong with its settings."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import reduce
from itertools import product
from typing import Any

from django.utils.translation import gettext as _

from charts.translation import gettext_noop
from judges.domain import verdicts
from judges.errors import Overloaded, ProviderError, RateLimited, Rejected, Unreachable
from judges.panels.judge_checks import ROOM_TO_THINK, decided
from judges.presets import UNWRAPS, thinking
from judges.providers.replies import get_path, parse_body, storable_text
from judges.records import Judge, Reply

NEAREST = 3  # Names of models that are offered in place of an unknown one.

# Words of a refusal that speak of the account, the place or the model's kind: no other form of the request would do.
CAUSES = (
    ("key", r"api[_ ]key[_ ](not valid|invalid|expired)|api_key_invalid|(incorrect|invalid|wrong) api key"),
    ("country", r"(user )?location is not supported|country.{0,40}not supported|unsupported_country"),
    ("profile", r"on-demand throughput isn.t supported|inference profile"),
    ("spent", r"api usage limits|credit balance|budget.{0,20}exceeded|exceeded.{0,20}budget|budget_exceeded|arrearage"),
    ("parameters", r"no endpoints found that (can handle|support)"),
    ("versions", r"(enabled|available|supported) only (for|in|with) api.?versions?"),
)
# Words of a refusal, by the judge key that they speak of.
CLUES = (
    (
        "system",
        r"system (role|message|prompt|instruction)s?.{0,30}(not|n.t|un) ?(be )?(support|enabled|allowed)|"
        r"(developer|system) instruction is not enabled|roles must alternate|does not support .?system|"
        r"only user,? (and )?assistant",
    ),
    (
        "model",
        r"(model|deployment).{0,80}(not exist|not found|unknown)|(invalid|unknown|no such) model|model_not_found",
    ),
    ("context", r"context[ _](length|window|size)|maximum context|prompt is too long|input is too long"),
    ("max_output_tokens", r"max_(completion_|output_|new_)?tokens|maxoutputtokens"),
    ("logprobs", r"log_?prob"),
    (
        "schema_mode",
        r"response_?format|text\.format|output_config\.format|json_schema|json_object|json mode|structured|"
        r"response_?(json_?)?schema|response_?mime|tool|function|grammar|guided|schema",
    ),
    ("temperature", r"temperature"),
    ("reasoning_effort", r"reasoning[ _.]?effort|thinking_?level|\beffort\b"),
    ("thinking", r"thinking|budget|reasoning[ _.]?summar"),
)
READING = ("unwrap", "ignore_case", "extra_keys")  # How answers are read.
# Refused for these, a judge would be refused again whatever else were changed.
NO_CHANGE = ("model", "context", "max_output_tokens")
# Statuses with which servers refuse a parameter; 500 and 501 come from those that do not check it before.
SPEAKS = (400, 404, 415, 422, 500, 501)
# A 403 may speak of what the key may not ask for; of the others it speaks of the key itself.
FORBIDDEN = ("logprobs", "reasoning_effort", "thinking", "service_tier")


READINGS = {
    ("unwrap", "fence"): gettext_noop("it answers with JSON in a Markdown fence"),
    ("unwrap", "think"): gettext_noop("it puts a <think> block before its answer"),
    ("unwrap", "both"): gettext_noop("it puts a <think> block and a Markdown fence around its answer"),
    ("ignore_case", True): gettext_noop('it writes "Yes" or "NO" for yes or no'),
    ("extra_keys", "ignore"): gettext_noop("it adds keys that were not asked for"),
}
# What is wrong and what mends it. Numbers are the statuses of errors.
SENTENCES = {
    "refused": gettext_noop("it refused a harmless question; choose another model"),
    "thoughts cut": gettext_noop(
        "its answer was cut at %(now)s tokens, %(thoughts)s of them thinking: set %(settings)s"
    ),
    "cut": gettext_noop("its answer was cut at %(now)s tokens; raise max_output_tokens"),
    "thoughts only": gettext_noop("it used all tokens for thinking and gave no answer: set %(settings)s"),
    "thoughts none": gettext_noop("it thought and gave no answer: set %(settings)s"),
    "answer in thoughts": gettext_noop(
        "its answer stands in its reasoning field: start the server without a reasoning parser"
    ),
    "switch off": gettext_noop(
        "its answer stands in its reasoning field: set %(setting)s, or start the server without a reasoning parser"
    ),
    "thoughts inside": gettext_noop(
        "its answer contains its thinking, with </think> but no opening tag: turn on the server's reasoning parser"
    ),
    "looser": gettext_noop("%(seen)s: set %(wanted)s"),
    "other mode works": gettext_noop(
        'its answer in schema_mode "%(mode)s" does not follow the schema (%(error)s): set %(setting)s'
    ),
    "unusable": gettext_noop("its answer does not follow the schema (%(error)s); choose another model"),
    "later api_version": gettext_noop("%(error)s: this api_version does not know it: set a later api_version"),
    "temperature": gettext_noop('%(error)s: it takes no temperature %(temperature)s: set temperature = "default"'),
    "context": gettext_noop(
        "%(error)s: its context is too short for a small question and max_output_tokens = %(now)s: raise the "
        "server's context length, or lower max_output_tokens"
    ),
    "max_output_tokens": gettext_noop(
        '%(error)s: lower max_output_tokens, now %(now)s; for a model at OpenAI itself set provider = "openai"'
    ),
    "other name": gettext_noop(
        '%(error)s: it knows the limit of the answer by another name: set provider = "openai", and keep the base_url'
    ),
    "system": gettext_noop('%(error)s: its chat template has no system role: set system = "user"'),
    "key": gettext_noop("%(error)s: the key in %(api_key_env)s is not accepted"),
    "country": gettext_noop(
        "%(error)s: the provider does not answer from where this machine is: use a region that it serves, or another "
        "provider"
    ),
    "profile": gettext_noop(
        "%(error)s: the model is asked through an inference profile: set model to its ID, which is the model's with "
        'the region before it, such as "us.%(model)s"'
    ),
    "spent": gettext_noop("%(error)s: a spending limit or the credit is used up: raise it at the provider"),
    "parameters": gettext_noop(
        "%(error)s: the model is there, and nobody who serves it takes all that is sent: remove %(sent)s, or choose "
        "another model"
    ),
    "versions": gettext_noop("%(error)s: set a later api_version"),
    "tier busy": gettext_noop(
        '%(error)s: the service tier "%(tier)s" has no room at the moment: try again later, or remove service_tier'
    ),
    "remove": gettext_noop("%(error)s: it does not take %(key)s: remove it"),
    "set mode": gettext_noop("this server answers %(mode)s with %(status)s: set %(wanted)s (%(error)s)"),
    "try mode": gettext_noop("this server answers %(mode)s with %(status)s: try %(wanted)s (%(error)s)"),
    "no mode": gettext_noop("this server answers %(mode)s with %(status)s: choose another model (%(error)s)"),
    "both": gettext_noop("%(one)s and %(two)s"),
    "either": gettext_noop("%(one)s or %(two)s"),
    "unknown model": gettext_noop('it does not know the model "%(model)s"; the nearest that it has: %(names)s'),
    "limited": gettext_noop("%(error)s: a limit or quota is used up; wait, or lower the judge's limits"),
    "overloaded": gettext_noop("%(error)s: the provider is failing at the moment; try again later"),
    "unreachable": gettext_noop("%(error)s: is the server up and the base_url right?"),
    "credentials": gettext_noop("%(error)s: these credentials are not accepted, or may not use this model"),
    "400": gettext_noop(
        "it refuses every form of the request that was tried; a model that does not "
        'accept temperature 0 needs temperature = "default"'
    ),
    "401": gettext_noop("the key in %(api_key_env)s is not accepted"),
    "402": gettext_noop("the account has no credit left"),
    "403": gettext_noop("the key in %(api_key_env)s may not use this model"),
    "404": gettext_noop('it does not know the model "%(model)s", or the base_url is wrong'),
    "short thoughts": gettext_noop(
        "it thinks before it answers, and max_output_tokens = %(now)s cuts longer thoughts: set %(settings)s"
    ),
    "short thoughts counted": gettext_noop(
        "it thinks before it answers (%(thoughts)s tokens on this small question), and max_output_tokens = %(now)s "
        "cuts longer thoughts: set %(settings)s"
    ),
    "nearly cut": gettext_noop(
        "its answer to a small question took %(used)s of %(now)s tokens: raise max_output_tokens"
    ),
    "no usage": gettext_noop(
        "it does not say how many tokens it used: the cost of its calls stays unknown, and budgets count the "
        "most that they can cost"
    ),
    "fewer logprobs": gettext_noop("it gives %(given)s alternatives of %(asked)s: set logprobs = %(given)s"),
    "short context": gettext_noop(
        "its context is %(context)s tokens: documents of %(characters)s characters do not fit; raise the server's "
        "context length to %(needed)s, or to %(most)s for Chinese and other scripts with a token for each character"
    ),
    "chinese context": gettext_noop(
        "its context is %(context)s tokens: enough for documents of %(characters)s characters in English, and not in "
        "Chinese and other scripts with a token for each character, which need %(most)s"
    ),
    "prompt cut": gettext_noop(
        "it cuts long prompts without a word (%(context)s): what is judged would not be what was asked; set the "
        "server's context length to %(needed)s tokens, or to %(most)s for Chinese and other scripts with a token for "
        "each character"
    ),
    "long refused": gettext_noop(
        "it does not answer about a document of %(characters)s characters (%(error)s): set the server's context "
        "length to %(needed)s tokens, or to %(most)s for Chinese and other scripts with a token for each character"
    ),
    "ends": gettext_noop("%(model)s answers until %(day)s, as the provider's list of models says: choose another"),
    "no logprobs": gettext_noop(
        "it was asked for log-probabilities and gave none: its grades and LARA would go without them; "
        "choose a model that gives them, or remove logprobs"
    ),
}


def say(key: str, /, **values: object) -> str:
    """Fill a sentence of the table."""
    return _(SENTENCES[key]) % values


@dataclass(frozen=True, slots=True)
class ProbeCall:
    """Call of a check and what came of it: a reply, or an error."""

    judge: Judge
    role: str
    document: str
    reply: Reply | None = None
    error: ProviderError | None = None

    @property
    def was_sent(self) -> bool:
        """True if the request left this machine: not where a key is missing or no connection was made."""
        return self.error is None or self.error.status is not None or self.error.billed

    @property
    def unusable(self) -> str:
        """Return why the reply is no verdict; "" where it is one, or where the judge gives none by its kind."""
        assert self.reply is not None
        if not (self.reply.ended or self.reply.refused or self.reply.truncated):
            return _("it ended with %(reason)s, which is no end of an answer") % {"reason": self.reply.finish_reason}
        return "" if self.role in ("embed", "web") else _unusable_reason(self, self.judge, self.reply.text)

    @property
    def works(self) -> bool:
        """True if the judge gave a usable answer to this request."""
        reply = self.reply
        return reply is not None and not reply.refused and not reply.truncated and not self.unusable

    @property
    def thinks(self) -> bool:
        """True if the answer shows thoughts, or counts them; an endpoint that only decides leaves them no room."""
        reply = self.reply
        if reply is None or self.judge.decides:
            return False
        return bool(reply.usage.reasoning or reply.reasoning or reply.text.lstrip().startswith("<think>"))


def change_parameters(judge: Judge, **parameters: Any) -> Judge:
    """The judge with other parameters; None takes one away. Of another mode it is what a judges file would make."""
    kept = {**judge.parameters, **parameters}
    if "schema_mode" in parameters:
        # What the present mode alone decided about reading answers is not the other one's.
        usual = decided({"model": judge.model, **judge.parameters}, judge.preset)
        stale = {key for key in READING if key not in parameters and key in usual and kept.get(key) == usual[key]}
        kept = {key: value for key, value in kept.items() if key not in stale}
        kept = {**decided({"model": judge.model, **kept}, judge.preset), **kept}
    return replace(judge, parameters={key: value for key, value in kept.items() if value is not None})


def other_modes(judge: Judge) -> list[str]:
    """Return the provider's schema modes that the judge does not use, the provider's default first."""
    preset = judge.preset
    return [mode for mode in dict.fromkeys((preset.schema_mode, *preset.schema_modes)) if mode != judge.schema_mode]


def suspect_key(judge: Judge, error: ProviderError) -> str:
    """Return the judge key that a refusal speaks of; "" where it names none that the judge sends."""
    if error.status not in (*SPEAKS, 403) or known_cause(error):
        return ""
    body = parse_body(error.raw)
    said = [storable_text(get_path(body, "error", "param")), str(error), error.raw]
    for words in (word.lower() for word in said if word):
        for key, clue in CLUES:
            if _sends_key(judge, key) and re.search(clue, words):
                return key if error.status != 403 or key in FORBIDDEN else ""
        for key in judge.parameters:
            if key in ("seed", "stop", "top_p", "service_tier", "safety_settings") and key.replace("_", "") in (
                words.replace("_", "")
            ):
                return key
        for name in judge.parameters.get("extra_body", {}):
            if name.lower() in words:
                return "extra_body"
    return ""


def known_cause(error: ProviderError) -> str:
    """Return what a refusal speaks of that no other request would change; "" where it is nothing known."""
    said = f"{error} {error.raw}".lower()
    return next((cause for cause, words in CAUSES if re.search(words, said)), "")


def next_try(first: ProbeCall) -> Judge | None:
    """Return the judge as the second call asks it, for what the first left open; None where it would show nothing."""
    judge, preset = first.judge, first.judge.preset
    if not preset.asks or judge.decides:
        return None
    if first.error is not None:
        return _without_suspect(judge, first.error)
    if first.works:
        wanted = preset.logprobs if not (judge.alternatives or first.thinks) else 0
        return change_parameters(judge, logprobs=wanted) if wanted else None
    reply = first.reply
    assert reply is not None
    readable = reply.text.strip() and not reply.refused and not reply.truncated and not _thoughts_only_end(reply)
    return _in_next_mode(judge) if readable and looser_reading(first) is None else None


def _without_suspect(judge: Judge, error: ProviderError) -> Judge | None:
    """Without what the refusal speaks of; in another schema mode where it speaks of that, or of nothing."""
    key = suspect_key(judge, error)
    if not isinstance(error, Rejected | Overloaded) or error.status not in (*SPEAKS, *((403,) if key else ())):
        return None
    if known_cause(error):
        return None
    if key == "system":
        return change_parameters(judge, system="user")
    if key in NO_CHANGE or (error.status in (404, 500, 501) and key != "schema_mode"):
        return None
    if key in ("", "schema_mode"):
        return _in_next_mode(judge)
    return change_parameters(judge, **{key: "default" if key == "temperature" else None})


def _in_next_mode(judge: Judge) -> Judge | None:
    modes = other_modes(judge)
    return change_parameters(judge, schema_mode=modes[0]) if modes else None


def _sends_key(judge: Judge, key: str) -> bool:
    """Return whether a request of the judge has something that the key decides."""
    if key == "schema_mode":
        return judge.schema_mode != "text"
    if key == "logprobs":
        return judge.alternatives > 0
    if key == "temperature":
        return sent_temperature(judge) is not None
    if key == "system":
        return judge.preset.wire in ("chat", "generate") and not judge.merges_system
    if key == "max_output_tokens":
        return not judge.decides
    return key in NO_CHANGE or key in judge.parameters


def sent_temperature(judge: Judge) -> float | None:
    """Return the temperature that is sent; None: none is."""
    given = judge.parameters.get("temperature", 0)
    return None if given == "default" or "temperature" not in judge.preset.names else float(given)


def looser_reading(tried: ProbeCall) -> dict[str, Any] | None:
    """Return the fewest reading settings with which the answer would be a verdict; None where none help."""
    assert tried.reply is not None
    judge, ways = tried.judge, list[dict[str, Any]]()
    wraps = UNWRAPS if judge.unwrap == "none" else (judge.unwrap, "both")
    for unwrap, case, extra in product(wraps, (judge.ignore_case, True), (judge.extra_keys, "ignore")):
        wanted = {"unwrap": unwrap, "ignore_case": case, "extra_keys": extra}
        ways.append({key: value for key, value in wanted.items() if value != getattr(judge, key)})
    for settings in sorted(ways, key=len):
        if settings and not _unusable_reason(tried, change_parameters(tried.judge, **settings), tried.reply.text):
            return settings
    return None


def _unusable_reason(tried: ProbeCall, judge: Judge, answer: str) -> str:
    try:
        verdicts.parse_answer(tried.role, answer, tried.document, judge)
    except verdicts.Unusable as error:
        return str(error)
    return ""


def describe_problem(first: ProbeCall, second: ProbeCall | None, names: tuple[str, ...] = ()) -> str:
    """Return why the judge cannot work and the remedy; "" where it can. `names`: the provider's models."""
    if first.works:
        return ""
    if first.error is not None:
        return _describe_refusal(first, first.error, second, names)
    judge, reply = first.judge, first.reply
    assert reply is not None
    if reply.refused:
        return say("refused")
    if reply.truncated:
        limits = thinking_room(judge) | {"now": judge.max_output_tokens, "thoughts": reply.usage.reasoning}
        thought = first.thinks and judge.max_output_tokens < ROOM_TO_THINK
        return say("thoughts cut" if thought else "cut", **limits)
    if not reply.text.strip() and first.thinks:
        if _answers_in_thoughts(first):
            if judge.preset.thinking:
                return say("switch off", setting=setting_line("thinking", False))
            return say("answer in thoughts")
        return say("thoughts none" if reply.finish_reason == "stop" else "thoughts only", **thinking_room(judge))
    if (settings := looser_reading(first)) is not None:
        seen = "; ".join(_(READINGS[key, value]) for key, value in settings.items())
        wanted = _join("both", (setting_line(key, value) for key, value in settings.items()))
        return say("looser", seen=seen, wanted=wanted)
    if _thoughts_only_end(reply):
        return say("thoughts inside")
    if second is not None and second.works:
        setting = setting_line("schema_mode", second.judge.schema_mode)
        return say("other mode works", mode=judge.schema_mode, error=first.unusable, setting=setting)
    return say("unusable", error=first.unusable)


def _answers_in_thoughts(tried: ProbeCall) -> bool:
    """A server's reasoning parser took the whole answer for thoughts."""
    assert tried.reply is not None
    thoughts = tried.reply.reasoning.strip()
    loose = change_parameters(tried.judge, unwrap="both", ignore_case=True, extra_keys="ignore")
    return bool(thoughts) and not _unusable_reason(tried, loose, thoughts)


def _thoughts_only_end(reply: Reply) -> bool:
    """The chat template wrote the <think>, so that the answer has its end alone: nobody can say where thoughts end."""
    return "</think>" in reply.text and "<think>" not in reply.text


def thinking_room(judge: Judge) -> dict[str, Any]:
    """Settings that leave room for thinking, or switch it off where the provider has a switch."""
    preset, settings = judge.preset, [setting_line("max_output_tokens", ROOM_TO_THINK)]
    if preset.thinking and "thinking" not in judge.parameters:
        settings.append(setting_line("thinking", False))
    elif "reasoning_effort" in preset.names and "reasoning_effort" not in judge.parameters:
        settings.append(setting_line("reasoning_effort", "low"))
    return {"settings": _join("either", settings)}


def _join(key: str, settings: Iterable[str]) -> str:
    """Join settings with the words of a sentence of two places; "" for none."""
    found = list(settings)
    return reduce(lambda one, two: say(key, one=one, two=two), found) if found else ""


def known_to_think(judge: Judge) -> bool:
    """Return whether the judge's settings or its provider's documentation say that it thinks."""
    return not judge.decides and thinking.known_to_think(judge.model, judge.parameters, judge.preset)


def setting_line(key: str, value: object) -> str:
    """Return a line of the judges file: JSON writes text, numbers and booleans as TOML does."""
    return f"{key} = {json.dumps(value)}"


def _describe_refusal(first: ProbeCall, error: ProviderError, second: ProbeCall | None, names: tuple[str, ...]) -> str:
    """Say what to do about a call that brought no answer."""
    if known_cause(error):
        return error_advice(first.judge, error)
    judge, key = first.judge, suspect_key(first.judge, error)
    if second is not None and second.error is not None and key != "schema_mode":
        # The change did not help. Where the server now speaks of something else, both have to be changed.
        other = suspect_key(second.judge, second.error)
        if key and other and other != key:
            return f"{_changed_line(judge, key, error)}; {_changed_line(second.judge, other, second.error)}"
    if second is not None and (second.works or second.reply is not None or key == "schema_mode"):
        line = _changed_line(judge, key or "schema_mode", error, second)
        more = describe_problem(second, None) if second.reply is not None and not second.works else ""
        return f"{line}; {more}" if more else line
    if names and (key == "model" or (error.status == 404 and not key)):
        return unknown_model(judge, names)
    if key in ("context", "max_output_tokens"):
        return _changed_line(judge, key, error)
    return error_advice(judge, error)


def _changed_line(judge: Judge, key: str, error: ProviderError, second: ProbeCall | None = None) -> str:
    """Return the line to change so that the refusal does not come."""
    if key == "schema_mode":
        return _mode_line(judge, error, second)
    if judge.preset.client == "azure" and "unrecognized request argument" in f"{error} {error.raw}".lower():
        return say("later api_version", error=error)
    if key == "temperature":
        return say("temperature", error=error, temperature=f"{sent_temperature(judge):g}")
    if key == "max_output_tokens" and _is_other_name(error):
        return say("other name", error=error)
    if key in ("context", "max_output_tokens"):
        return say(key, error=error, now=judge.max_output_tokens)
    if key == "system":
        return say("system", error=error)
    return say("remove", error=error, key=key)


def _is_other_name(error: ProviderError) -> bool:
    """The name of the parameter is refused, and not its value."""
    said = f"{error} {error.raw}".lower()
    return "max_completion_tokens" in said and bool(re.search(r"unsupported|not supported|instead|unrecognized", said))


def _mode_line(judge: Judge, error: ProviderError, second: ProbeCall | None) -> str:
    """This server answers json_schema with 400: set ... What the second call showed decides."""
    modes, refused = other_modes(judge), judge.schema_mode
    if second is not None and second.error is None:
        wanted = setting_line("schema_mode", second.judge.schema_mode)
        return say("set mode", mode=refused, status=error.status, wanted=wanted, error=error)
    if second is not None:
        modes = [mode for mode in modes if mode != second.judge.schema_mode]
        refused = say("both", one=judge.schema_mode, two=second.judge.schema_mode)
    wanted = _join("either", (setting_line("schema_mode", mode) for mode in modes))
    return say("try mode" if modes else "no mode", mode=refused, status=error.status, wanted=wanted, error=error)


def unknown_model(judge: Judge, names: tuple[str, ...]) -> str:
    """Return the nearest names of those that the provider has."""
    by_small = {name.lower(): name for name in names}
    near = get_close_matches(judge.model.lower(), by_small, NEAREST, 0.4) or sorted(by_small)[:NEAREST]
    return say("unknown model", model=judge.model, names=", ".join(by_small[name] for name in near))


def error_advice(judge: Judge, error: ProviderError) -> str:
    """Say what failed and what to do about it."""
    tier, said = judge.parameters.get("service_tier"), f"{error} {error.raw}".lower()
    named = judge.api_key_env or judge.preset.key_env
    if cause := known_cause(error):
        sent = ("logprobs", "reasoning_effort", "thinking", "schema_mode")
        keys = [
            key for key in sent if key in judge.parameters or (key == "schema_mode" and judge.schema_mode != "text")
        ]
        values = {"api_key_env": named or "api_key_env", "model": judge.model, "sent": _join("either", keys)}
        return say(cause, error=error, **values)
    if tier and re.search(r"flex|resource.?unavailable|capacity", said) and isinstance(error, RateLimited | Overloaded):
        return say("tier busy", error=error, tier=tier)
    for kind, key in ((RateLimited, "limited"), (Overloaded, "overloaded"), (Unreachable, "unreachable")):
        if isinstance(error, kind):
            return say(key, error=error)
    preset, status = judge.preset, error.status or 0
    if status in (401, 403) and (judge.parameters.get("token_command") or (preset.client and not named)):
        return say("credentials", error=error)
    if str(status) not in SENTENCES:
        return str(error)
    return f"{error}: {say(str(status), api_key_env=named or 'api_key_env', model=judge.model)}"
