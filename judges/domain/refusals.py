"""What a refusal is about: the one call, until several different documents show that it is the account or the judge.

The engine records each judge's failures in a campaign since the judge's last usable answer. What they mean is decided
only here, so that every worker comes to the same decision from the same failures.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

# Different documents refused in a row with the same words before the campaign pauses. Refusals for moderation
# or length need more: a corpus may well contain several such documents in a row.
DOCUMENTS, DOCUMENTS_FOR_CONTENT = 8, 12
UNUSABLE = 20  # Unusable answers in a row before the campaign pauses.
# Seconds by which a call must be sent after one whose text was declined before its answer shows that the
# account works: calls that are sent together are answered in any order.
AFTER_S = 0.1
PAIRS_LEFT = 8  # Failures of so few pairs cannot show that their account is at fault: as many as DOCUMENTS.
KEPT = 2 * UNUSABLE  # Failures that are remembered of a judge.

# What differs between two refusals for the same reason: numbers, ids, quoted names.
_VARIABLE_PARTS = re.compile(r"[0-9a-f]{8,}(-[0-9a-f]+)*|\b[\w-]*\d[\w.-]*|\"[^\"]*\"|'[^']*'|`[^`]*`", re.IGNORECASE)
# What to do about a refusal, by its words. The first match counts.
_ADVICE = tuple(
    (re.compile(words, re.IGNORECASE), advice)
    for words, advice in (
        (r"temperature", 'set temperature = "default" for it in the judges file'),
        (r"on-demand throughput|inference profile", "give its inference profile as the model in the judges file"),
        (r"redirects are not followed", ""),
        (
            r"usage limits?|budget|credit|balance|quota|billing|spend|free tier",
            "raise the limit or the credit at the provider",
        ),
        (r"location|country|region", "the provider does not serve this place: take another provider for it"),
        (
            r"context|too long|too large|max_model_len",
            "raise the server's context length, or take a model with a longer one",
        ),
        (r"system (role|message|prompt)", 'set system = "user" for it in the judges file'),
        (
            r"content|moderat|flagged|safety|polic|guideline|inappropriate|risk|HTML",
            "it does not take these documents: take another judge for them, or have the filter of its account changed",
        ),
        (r"api.version", "set another api_version for it in the judges file"),
    )
)
_UNUSABLE_ADVICE = {
    "truncated": "raise its max_output_tokens, or take another model or temperature if its answers repeat themselves",
    "prompt_cut": "raise the context length of its server",
    "refused": "it declines to answer: take another judge",
}


class Meaning(StrEnum):
    """What a judge's failures since its last usable answer mean."""

    CALL = "call"  # Each failure concerns its own call.
    TRIAL = "trial"  # The last failure may concern the account: asking one call at a time will show it.
    ACCOUNT = "account"  # The account or the judge's settings are at fault: every call would be refused.
    UNUSABLE = "unusable"  # The judge answers, but nothing usable.


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that was refused (with `words`), or an answer that could not be used (without)."""

    document: int
    # Seconds since 1970: an answer to a call sent later than this shows that the account works. For a refused
    # text, shortly after it was sent; for any other refusal, when the refusal arrived.
    after: float
    reason: str  # As people read it.
    outcome: str = "error"
    words: str = ""
    content: bool = False  # The refusal is about the text that was sent.


def refusal_text(reason: str) -> str:
    """Return the words of a refusal without the parts that differ from call to call."""
    return " ".join(_VARIABLE_PARTS.sub("#", reason).lower().split()) or "#"


def weigh(failures: Sequence[Failure], other_judges: Iterable[Sequence[Failure]] = ()) -> Meaning:
    """Return what the failures of a judge mean. `other_judges`: failures of the other judges on its account."""
    if not failures:
        return Meaning.CALL
    last = failures[-1]
    if last.words:
        documents = {
            failure.document
            for judge_failures in (failures, *other_judges)
            for failure in _alike(judge_failures, last.words)
        }
        if len(documents) >= (DOCUMENTS_FOR_CONTENT if last.content else DOCUMENTS):
            return Meaning.ACCOUNT
    # Failures on few documents are due to the documents: each is tried several times.
    if len(failures) >= UNUSABLE and len({failure.document for failure in failures}) > PAIRS_LEFT:
        return Meaning.UNUSABLE
    return Meaning.TRIAL if last.words else Meaning.CALL


def unusable_row(answers: Iterable[Failure | None], earlier: Sequence[Failure] = ()) -> Sequence[Failure]:
    """Return the first run of failures among the answers, in order, that is long enough for UNUSABLE; () if none is.

    `answers`: a failure each, or None for a usable answer. `earlier`: the failures before them. A refusal counts
    like any other failure, whatever it says.
    """
    row = list(earlier)
    for failure in answers:
        row = [] if failure is None else [*row, replace(failure, words="")][-KEPT:]
        if weigh(row) is Meaning.UNUSABLE:
            return row
    return ()


def is_isolated(failing_s: float, patience_s: float, pairs_left: int, *, answers: bool, answers_others: bool) -> bool:
    """Return whether a question that failed all its retries fails alone, although its account is in trouble.

    `answers_others`: the question failed again after the account had answered another call. `answers`: it has answered
    at any time in this campaign. If it answers no other call, `patience_s` decides: that long if few pairs are left,
    120 times as long if it may be an outage.
    """
    if answers_others:
        return True
    longest_wait_s = patience_s if pairs_left <= PAIRS_LEFT else 120 * patience_s
    return answers and failing_s >= longest_wait_s


def refused_documents(failures: Sequence[Failure]) -> set[int]:
    """Return the documents that were refused like the last one: asking about them again would show nothing new."""
    return {failure.document for failure in _alike(failures, failures[-1].words)} if failures else set()


def _alike(failures: Sequence[Failure], words: str) -> list[Failure]:
    """Return the refusals with these words since the last answer, usable or not."""
    last_answer = max((index for index, failure in enumerate(failures) if not failure.words), default=-1)
    return [failure for failure in failures[last_answer + 1 :] if failure.words == words]


def is_cleared(failures: Sequence[Failure], sent: float) -> bool:
    """Return whether a usable answer to a call that was sent at `sent` ends the run of failures."""
    refusal_times = [failure.after for failure in failures if failure.words]
    return not refusal_times or sent >= min(refusal_times)


def describe(meaning: Meaning, name: str, account: str, failures: Sequence[Failure]) -> str:
    """Explain why the campaign pauses, on which account, and what to do."""
    last = failures[-1]
    if meaning is Meaning.UNUSABLE:
        advice = _UNUSABLE_ADVICE.get(last.outcome, "run check_judges: it names what to change in the judges file")
        problem = f"{UNUSABLE} answers in a row and none usable (the last: {last.reason})"
        return f"{name}, account {account}: {problem}: {advice}"
    count = len({failure.document for failure in _alike(failures, last.words)})
    refusals = f"{count} different documents in a row were refused like this, and none was answered"
    return f"{name}, account {account}: {last.reason}; {refusals}{advise(last.reason, ': run check_judges')}"


def advise(reason: str, otherwise: str = "") -> str:
    """Return the advice to append to a refusal: "" if its own words say what to do, `otherwise` if none is known."""
    advice = next((advice for words, advice in _ADVICE if words.search(reason)), None)
    return otherwise if advice is None else f": {advice}" if advice else ""
