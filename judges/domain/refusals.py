"""Of whom a refusal speaks: of one call, until several different documents show that it is of the account or the judge.

The engine keeps, of each judge of a campaign, its failures since it last gave a usable answer. What
they mean is decided here and nowhere else, whoever asks: from the same failures every worker comes
to the same decision.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

# Different documents that are refused in a row with the same words before the campaign pauses. Of
# moderation and length more: a corpus may well have some such documents one after the other.
DOCUMENTS, DOCUMENTS_FOR_CONTENT = 8, 12
UNUSABLE = 20  # Answers in a row, none of them usable, before the campaign pauses.
# Seconds that an answer must have left after a call whose text was declined, to show that the
# account answers: what leaves together arrives in any order.
AFTER_S = 0.1
PAIRS_LEFT = 8  # So few pairs that all fail cannot show that their account is at fault: as many as the documents above.
KEPT = 2 * UNUSABLE  # Failures that are kept of a judge.

# What differs between two refusals for the same reason: numbers, ids, quoted names.
_OWN = re.compile(r"[0-9a-f]{8,}(-[0-9a-f]+)*|\b[\w-]*\d[\w.-]*|\"[^\"]*\"|'[^']*'|`[^`]*`", re.IGNORECASE)
# What to do about a refusal, by its words. The first that fits.
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
    "truncated": "raise its max_output_tokens",
    "prompt_cut": "raise the context length of its server",
    "refused": "it declines to answer: take another judge",
}


class Meaning(StrEnum):
    """What a judge's failures since its last usable answer mean."""

    CALL = "call"  # Each is of its own call.
    TRIAL = "trial"  # The last one may be of the account: one call at a time shows it.
    ACCOUNT = "account"  # The account, or the judge's settings, would be refused whatever is asked.
    UNUSABLE = "unusable"  # The judge answers, and nothing that can be used.


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that was refused (with `words`), or an answer that could not be used (without)."""

    document: int
    # Seconds since 1970: an answer to a call that left later shows that the account answers. Of a
    # refused text that is when it left itself, and a little; of every other refusal when that had
    # arrived, so that the next call shows it.
    after: float
    reason: str  # As people read it.
    outcome: str = "error"
    words: str = ""
    content: bool = False  # The refusal speaks of the text that was sent.


def refusal_text(reason: str) -> str:
    """Return the words of a refusal without what differs from call to call."""
    return " ".join(_OWN.sub("#", reason).lower().split()) or "#"


def weigh(failures: Sequence[Failure], beside: Iterable[Sequence[Failure]] = ()) -> Meaning:
    """Return what the failures of a judge mean. `beside`: those of its account's other judges."""
    if not failures:
        return Meaning.CALL
    last = failures[-1]
    if last.words:
        documents = {failure.document for each in (failures, *beside) for failure in _alike(each, last.words)}
        if len(documents) >= (DOCUMENTS_FOR_CONTENT if last.content else DOCUMENTS):
            return Meaning.ACCOUNT
    # Of few documents it is the documents: each is tried several times.
    if len(failures) >= UNUSABLE and len({failure.document for failure in failures}) > PAIRS_LEFT:
        return Meaning.UNUSABLE
    return Meaning.TRIAL if last.words else Meaning.CALL


def unusable_row(answers: Iterable[Failure | None], before: Sequence[Failure] = ()) -> Sequence[Failure]:
    """Return the first row of failures among answers in their order, each usable (None) or not, that is unusable.

    `before`: the failures that stood before them. () where no row is so long; a refusal counts, whatever it says.
    """
    row = list(before)
    for failure in answers:
        row = [] if failure is None else [*row, replace(failure, words="")][-KEPT:]
        if weigh(row) is Meaning.UNUSABLE:
            return row
    return ()


def is_isolated(failing_s: float, patience_s: float, pairs_left: int, *, answers: bool, answers_others: bool) -> bool:
    """Return whether a question whose tries are used up fails by itself, though its account is in trouble.

    `answers_others`: to a call that left after the question first failed. `answers`: at any time in
    this campaign. Where nothing else is left that could be answered, patience decides: shortly
    where few pairs are left, an hour and more where it may be an outage.
    """
    if answers_others:
        return True
    longest = patience_s if pairs_left <= PAIRS_LEFT else 120 * patience_s
    return answers and failing_s >= longest


def refused_documents(failures: Sequence[Failure]) -> set[int]:
    """Return the documents that were refused as the last one was: asking about them again would show nothing."""
    return {failure.document for failure in _alike(failures, failures[-1].words)} if failures else set()


def _alike(failures: Sequence[Failure], words: str) -> list[Failure]:
    """Return refusals with these words since the last answer, usable or not."""
    answered = max((at for at, failure in enumerate(failures) if not failure.words), default=-1)
    return [failure for failure in failures[answered + 1 :] if failure.words == words]


def is_cleared(failures: Sequence[Failure], sent: float) -> bool:
    """Return whether a usable answer to a call that left at `sent` ends the row of failures."""
    refused = [failure.after for failure in failures if failure.words]
    return not refused or sent >= min(refused)


def describe(meaning: Meaning, name: str, account: str, failures: Sequence[Failure]) -> str:
    """Return why the campaign pauses, whose account it is, and what to do."""
    last = failures[-1]
    if meaning is Meaning.UNUSABLE:
        advice = _UNUSABLE_ADVICE.get(last.outcome, "run check_judges: it names what to change in the judges file")
        said = f"the last: {last.reason}"
        return f"{name}, account {account}: {UNUSABLE} answers in a row and none usable ({said}): {advice}"
    count = len({failure.document for failure in _alike(failures, last.words)})
    row = f"{count} different documents in a row were refused like this, and none was answered"
    return f"{name}, account {account}: {last.reason}; {row}{advise(last.reason, ': run check_judges')}"


def advise(reason: str, otherwise: str = "") -> str:
    """Return what to do about a refusal, to stand behind it; "" where its own words say it."""
    advice = next((advice for words, advice in _ADVICE if words.search(reason)), None)
    return otherwise if advice is None else f": {advice}" if advice else ""
