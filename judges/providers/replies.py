"""Reading of untrusted bodies: the parts of an answer, and the error that a refusal means."""

import html
import json
import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from judges.errors import BadAnswer, Declined, Overloaded, ProviderError, RateLimited, Refused, Rejected, Unreachable
from judges.rates import read_duration
from judges.records import Token, Usage

LARGEST = 2**31 - 1  # Maximum of the columns with token counts.
LONGEST_REASON = 200  # Characters of a provider's message that a reason includes.
# Statuses that concern the account, the model or the address, and not the question: a proxy that wants
# authentication (407), a retired model (410), an account that Fireworks suspended (412), a server without this
# endpoint (501). 403 is not among them, because moderation and firewalls use it as well.
REFUSALS = (401, 402, 404, 407, 410, 412, 501)
# Temporary statuses below 500: a conflict, a failed dependency (Bedrock's ModelErrorException, TGI), too early, Groq's
# flex tier without capacity (498), and a gateway that took us for disconnected (499).
PASSING = (409, 424, 425, 498, 499)
# Some providers name the wait only in the message: "Please try again in 1m3.5s" (OpenAI), "retry after 20 seconds"
# (Azure).
WAIT_IN_WORDS = re.compile(
    r"(?:try again|retry) (?:in ((?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+)|(?:after|in) (\d+) seconds?)", re.I
)
# Codes of a 400 that means that the model did not follow the schema this time (Groq). Another try may.
MISSED = {"json_validate_failed", "tool_use_failed"}
# Codes of a 400, 403 or 429 that waiting does not solve: no quota, credit or budget is left.
NO_QUOTA = {
    *("insufficient_quota", "billing_not_active", "billing_hard_limit_reached", "exceeded_current_quota_error"),
    *("budget_exceeded", "Arrearage", "AllocationQuota.FreeTierOnly"),
}
# The same in words: no money is left (xAI, Zhipu, Google's prepaid accounts and spending limits).
SPENT = re.compile(
    r"insufficient (account )?(balance|funds|credits?)|please recharge|out of credits|used all available credits|"
    r"credits? (balance )?(is|are|has been|have been) (depleted|exhausted|used up)|spend(ing)? (cap|limit)|"
    r"free tier .{0,40}exhausted|budget has been exceeded",
    re.IGNORECASE,
)
# Google's words for a model that the project's tier does not include: the limit will not be reset.
NEVER = re.compile(r"\blimit: 0\b")
# The time zone of Google's days, and how long after midnight a refusal may still concern the day before.
PACIFIC, NEW_DAY = ZoneInfo("America/Los_Angeles"), timedelta(minutes=10)
# Words of a 400 or 403 about the account or its settings: credit and spending limits (Anthropic), a wrong key (Google,
# xAI), a model that does not exist (LiteLLM, Groq) or needs an inference profile (Bedrock), a country (Google), a
# disabled organization (Anthropic, Groq), an address that is not the API's (LM Studio, which answers 200).
ACCOUNT = re.compile(
    r"credit balance is too low|reached your specified .{0,20}usage limits?|incorrect api key|api[_ ]key[_ ]invalid|"
    r"invalid model name|has been decommissioned|on-demand throughput isn.t supported|user location is not supported|"
    r"organization has been (disabled|restricted)|unexpected endpoint or method",
    re.IGNORECASE,
)
# Words of a 400 about a temporary problem: the model crashed or is being loaded (LM Studio).
MOMENT = re.compile(r"has crashed|model (is )?unloaded|temporarily unavailable|is overloaded|try again later", re.I)
# Words of a 403 about the key's permissions, if none concern the text that was sent.
DENIED = re.compile(
    r"permission.?(denied|error)|does not have.{0,20}permission|accessdenied|unrecognizedclient|signature|credential|"
    r"security token|unsupported_country|not authorized|access denied due to",
    re.IGNORECASE,
)
# Words of a refusal about the text that was sent: moderation, filters, guardrails.
CONTENT = re.compile(
    r"content.{0,3}(policy|filter|management|safety|violat|moderation|risk|exists risk)|moderat(ion|ed)|flagged|"
    r"safety.{0,3}(check|system|polic|filter|reason)|usage.{0,3}(guideline|polic)|responsible.?ai|"
    r"data.?inspection|inappropriate|sensitive.{0,3}(content|words?|information)|invalid_prompt|prohibited.{0,3}content|"
    r"harmful|jailbreak|guardrail|unsafe|high.risk|blocked by|violat.{0,60}(polic|guideline|terms|practice)|敏感|违规",
    re.IGNORECASE,
)
CONTEXT = re.compile(r"context[ _]?(length|window|size)|maximum (context|model length)|max_model_len", re.IGNORECASE)
LENGTH = re.compile(
    CONTEXT.pattern + r"|too (long|large|many tokens)|exceeds?.{0,40}(tokens?|length|size)|tokens?.{0,40}must be <=",
    re.IGNORECASE,
)
HTML = re.compile(r"\s*(<!doctype html|<html|<head|<body|<title|<h1|<center)", re.IGNORECASE)
HEADLINE = re.compile(r"<(title|h1)\b[^>]*>(.*?)</\1", re.IGNORECASE | re.DOTALL)
TAG = re.compile(r"<[^>]*>")
# Fields of an error with its message, and with its codes.
WORDS = ("message", "msg", "detail", "error", "errors", "title", "description")
CODES = ("code", "type", "error_type", "status", "param")


def parse_body(raw: str) -> dict[str, Any]:
    """Return the JSON object in a body; {} if there is none."""
    try:
        body = json.loads(raw.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return {}
    # Google's endpoint in OpenAI's form wraps its errors in a list.
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    return body if isinstance(body, dict) else {}


def get_path(value: object, *path: str | int) -> Any:
    """Return the value at the end of the path; None if a step is missing."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def get_list(value: object, *path: str | int) -> list[Any]:
    """Return the list at the end of the path; [] if there is none."""
    items = get_path(value, *path)
    return items if isinstance(items, list) else []


def storable_text(value: object, limit: int | None = None) -> str:
    """Return text that the database can store, without lone surrogates and NUL; "" for anything but text."""
    if not isinstance(value, str):
        return ""
    if not value.isascii():
        value = value.encode("utf-8", "replace").decode()
    return value.replace("\0", "\ufffd")[:limit]


def read_tokens(
    text: str, entries: list[Any], name: str, logprob: str, alternatives: list[list[Any]]
) -> tuple[Token, ...]:
    """Return the text's tokens with their log-probabilities; () if one is unreadable, or if the text is not in them.

    `name`, `logprob`: the fields of an entry with its text and number. `alternatives`: in the order of the tokens.
    """
    tokens: list[Token] = []
    decoder = getincrementaldecoder("utf-8")("replace")
    for position, entry in enumerate(entries):
        word, value = get_path(entry, name), finite_number(get_path(entry, logprob))
        if not isinstance(word, str) or value is None:
            return ()
        # A character may be several tokens, whose bytes are right and whose texts are not.
        byte_values = get_list(entry, "bytes")
        if byte_values and all(type(value) is int and 0 <= value < 256 for value in byte_values):
            word = decoder.decode(bytes(byte_values))
        others = alternatives[position] if position < len(alternatives) else []
        pairs = [(get_path(other, name), finite_number(get_path(other, logprob))) for other in others]
        tokens.append(
            Token(
                word,
                value,
                {
                    other_word: other_logprob
                    for other_word, other_logprob in pairs
                    if isinstance(other_word, str) and other_logprob is not None
                },
            )
        )
    # The tokens of the text alone, cut where it begins and ends; () if it is not in them. Servers that read the model's
    # output themselves leave out what surrounds the answer: llama.cpp a Markdown fence, vLLM the reasoning. The
    # answer comes last.
    position = -"".join(token.text for token in tokens).rfind(text)
    if not text or position > 0:
        return ()
    own_tokens = []
    for token in tokens:
        # `position` is the token's in the text.
        part = token.text[max(-position, 0) : max(len(text) - position, 0)]
        position += len(token.text)
        if part:
            own_tokens.append(replace(token, text=part))
    return tuple(own_tokens)


def likeliest_grade(probabilities: dict[Any, Any], grades: int) -> tuple[str, dict[str, float]] | None:
    """Return the likeliest grade as the answer's JSON, and all probabilities; None unless each grade has one."""
    if set(probabilities) != set(range(grades + 1)) or not all(type(grade) is int for grade in probabilities):
        return None
    if not all(finite_number(p) is not None and 0 <= p <= 1 for p in probabilities.values()):
        return None
    likeliest = max(probabilities, key=lambda grade: (probabilities[grade], -grade))
    if grades == 1:
        return json.dumps({"response": "yes" if likeliest else "no"}), {"no": probabilities[0], "yes": probabilities[1]}
    return json.dumps({"score": likeliest}), {str(grade): probabilities[grade] for grade in sorted(probabilities)}


def finite_number(value: object) -> float | None:
    """Return a finite number that the database's JSON can store; None for anything else, including booleans."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Compared, not converted: a whole number beyond every float would raise OverflowError.
    return float(value) if abs(value) <= sys.float_info.max else None


def get_count(value: object, *path: str | int) -> int:
    """Return the count of tokens at the end of the path; 0 if there is none or it is no count."""
    number = get_path(value, *path)
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= LARGEST:
        return 0
    return int(number)


def count_tokens(counts: object, paths_by_count: Mapping[str, str], needed: Sequence[str]) -> Usage:
    """Return the token counts of an answer.

    `paths_by_count`: the path of each count, where "a + b" means a sum. `needed`: paths without which the answer's
    usage is unknown.
    """
    usage = {
        name: sum(get_count(counts, *path.split(".")) for path in paths.split(" + "))
        for name, paths in paths_by_count.items()
    }
    # Some count thoughts only in the total (Gemini in OpenAI's format): they are billed as output.
    if (uncounted := usage.pop("total", 0) - usage["input"] - usage["output"]) > 0:
        usage["output"] += uncounted
        usage["reasoning"] = usage.get("reasoning", 0) + uncounted
    needed_values = [get_path(counts, *path.split(".")) for path in needed]
    return Usage(
        **usage, said=all(isinstance(number, int | float) and not isinstance(number, bool) for number in needed_values)
    )


def refusal_error(
    host: str, status: int, raw: str, retry_after: float | None, body: dict[str, Any] | None = None
) -> ProviderError:
    """Return the error that a status and its body mean; a 2xx means an error body without a usable code.

    `body`: the object in `raw`, if parsing it takes more than JSON.
    """
    error_body: object = body or _parse_any(raw)
    error = get_path(error_body, "error") or error_body
    # In plain words on one line: the error's message, a page's headline, or the beginning of the body.
    message_text = _shorten_text(error) or raw
    # Gateways report another provider's error without its words, which they put into another field.
    if upstream_text := _shorten_text(_error_behind(error)):
        message_text = f"{message_text}: {upstream_text}"
    if HTML.match(message_text):
        headline = HEADLINE.search(message_text)
        message_text = (
            f"a page of HTML in place of an answer: {headline[2]}" if headline else "a page of HTML, no answer"
        )
    message_text = html.unescape(TAG.sub(" ", message_text)) if TAG.search(message_text) else message_text
    message_text = storable_text(" ".join(message_text.split()))
    if len(message_text) > LONGEST_REASON:
        message_text = message_text[: LONGEST_REASON - 3].rstrip() + "..."
    codes = [*_codes_of(error), *_codes_of(error_body), *_codes_of(_error_behind(error))]
    if 300 <= status < 400:
        message_text = "redirects are not followed; correct the base_url"
    kind = _error_kind(status, error, codes, message_text, raw)
    if kind is RateLimited:
        match = WAIT_IN_WORDS.search(message_text)
        wait_in_words = read_duration((match[1] or match[2]).lower()) if match else None
        retry_after = retry_after or _retry_delay(error) or wait_in_words or retry_after
        # Google names a day's quota that is used up, perhaps in the error behind a gateway's.
        details = [*get_list(error, "details"), *get_list(_error_behind(error), "details")]
        violations = [violation for detail in details for violation in get_list(detail, "violations")]
        quotas = [storable_text(get_path(violation, "quotaId"), 100) for violation in violations]
        if quota := next((name for name in quotas if "PerDay" in name), ""):
            message_text = f"the quota of the day is used up ({quota}): {message_text}"
            # Its retryDelay is for the quota of a minute, even if the day's is used up.
            retry_after = max(retry_after or 0.0, seconds_of_day(datetime.now(PACIFIC)))
    message = storable_text(f"{host}: {status} {message_text}".strip())
    return kind(message, status=status, raw=raw, retry_after=retry_after)


def _error_kind(status: int, error: object, codes: list[str], message: str, raw: str) -> type[ProviderError]:
    """Return the class of error that a status, the error's codes and its message mean."""
    codes_and_message = [*codes, message]
    if status in REFUSALS:
        return Refused
    if status == 408:
        return Unreachable
    if status >= 500 or status in PASSING:
        # Gateways answer so if the server behind them refused the text, and llama.cpp if a text is too long.
        return Declined if _is_content(error, codes) or CONTEXT.search(message) else Overloaded
    if not NO_QUOTA.isdisjoint(codes_and_message) or any(map(SPENT.search, codes_and_message)):
        return Refused
    if status == 429:
        # The request has more tokens than the account may use in a minute: waiting does not help.
        if any("request too large" in words.lower() for words in codes_and_message):
            return Declined
        return Refused if NEVER.search(raw) else RateLimited
    if 300 <= status < 400:
        return Rejected
    if status == 400 and not MISSED.isdisjoint(codes_and_message):
        return BadAnswer
    # Google's FAILED_PRECONDITION: the API does not serve the country, or billing is disabled.
    if "FAILED_PRECONDITION" in codes_and_message or any(map(ACCOUNT.search, codes_and_message)):
        return Refused
    # A firewall's page instead of the provider's answer is about the text that was sent through it.
    if status == 413 or (status == 403 and HTML.match(raw)) or _is_content(error, codes_and_message):
        return Declined
    if status == 403 and any(map(DENIED.search, codes_and_message)):
        return Refused
    if status == 400 and MOMENT.search(message):
        return Overloaded
    return BadAnswer if status < 300 else Rejected


def _parse_any(raw: str) -> object:
    """Return the JSON in a body; of a list, in which Google streams errors, the first element."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return body[0] if isinstance(body, list) and body else body


def _error_behind(error: object) -> object:
    """Return another provider's error that a gateway's error includes; None if there is none."""
    upstream = get_path(error, "metadata", "raw")
    upstream_body = (_parse_any(upstream) or upstream) if isinstance(upstream, str) else upstream
    return get_path(upstream_body, "error") or upstream_body


def _shorten_text(value: object, depth: int = 4) -> str:
    """Return the first text in the fields that errors use for their message."""
    if isinstance(value, str) or not depth:
        return storable_text(value).strip()
    if isinstance(value, list):
        return next(filter(None, (_shorten_text(entry, depth - 1) for entry in value)), "")
    if isinstance(value, dict):
        return next(filter(None, (_shorten_text(value.get(name), depth - 1) for name in WORDS)), "")
    return ""


def _codes_of(error: object) -> list[str]:
    """Return the codes of an error and of the errors within it (Azure's innererror)."""
    codes = [storable_text(get_path(error, name)) for name in CODES]
    codes += [
        storable_text(get_path(error, "innererror", "code")),
        storable_text(get_path(error, "inner_error", "code")),
    ]
    codes += [storable_text(get_path(detail, "reason")) for detail in get_list(error, "details")]
    return [code for code in codes if code]


def _is_content(error: object, codes_and_message: list[str]) -> bool:
    """Return whether a refusal is about the text that was sent."""
    # OpenRouter gives its reasons and the flagged text; Azure gives the result of its filter.
    content_paths = (("metadata", "reasons"), ("metadata", "flagged_input"), ("innererror", "content_filter_result"))
    return any(get_path(error, *path) for path in content_paths) or any(
        CONTENT.search(words) or LENGTH.search(words) for words in codes_and_message
    )


def error_code(body: dict[str, Any], status: int) -> int:
    """Return the HTTP status that an error body names, as some gateways do under a 2xx, else the answer's own."""
    code = get_path(body, "error", "code")
    code = int(code) if isinstance(code, str) and code.isdecimal() and len(code) == 3 else code
    return code if isinstance(code, int) and 400 <= code < 600 else status


def seconds_of_day(now: datetime) -> float:
    """Return the seconds until Google's day ends; a minute shortly after midnight, in case it has not begun there."""
    day_start = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if now - day_start < NEW_DAY:
        return 60.0
    return (day_start + timedelta(days=1)).timestamp() - now.timestamp()


def _retry_delay(error: object) -> float | None:
    """Return the wait that Google puts into the body: details[].retryDelay = "34s"."""
    for detail in get_list(error, "details"):
        delay = storable_text(get_path(detail, "retryDelay"))
        if delay.endswith("s") and delay[:-1].replace(".", "", 1).isdigit():
            return float(delay[:-1])
    return None
