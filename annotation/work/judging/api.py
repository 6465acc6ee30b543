"""API of the task queue: claim a pair; judge, skip or flag it; undo the decision. The rules are the judging page's."""

from collections.abc import Callable
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Field, Router, Schema
from ninja.decorators import decorate_view

from annotation.models import Assignment, Membership
from annotation.work.judging import evidence, page, submitting
from annotation.work.judging.evidence import MAX_TEXT_CHARACTERS
from annotation.work.judging.forms import LONGEST, check_grade, check_spans
from annotation.work.quality_control import onboarding
from annotation.work.queue import assignment, undo
from annotation.work.queue.annotators import AnnotatorContext, SubmittedAnswer
from api.authentication import JUDGE, may, scope_of
from api.idempotency import once
from api.problems import CleanText, RequestBody, clean_text
from corpus.evidence.measures import EvidenceTarget

router = Router(tags=["tasks"])
# JavaScript, as a reader of JSON, rounds whole numbers from here on.
BIG = 1 << 53


class QuoteOut(Schema):
    """A sentence that a side quotes; `label`: its place in the document (empty: not there)."""

    text: str
    label: str


class TurnOut(Schema):
    """Statement of one side in a round of the debate."""

    round: int
    side: Literal["for", "against"]
    verdict: int | None
    reason: str
    quotes: list[QuoteOut]


class PairTextsOut(Schema):
    """A pair as a person judges it: its texts, the scale, and the debate where it is shown."""

    query: str
    answers: list[str]
    instruction: str
    title: str
    document: str
    source: str
    highest_grade: int
    debate: list[TurnOut]


class EvidenceDraftOut(Schema):
    """Contribution and evidence as they were found: a judge's that failed its checks, or empty."""

    contribution: str
    evidence: str
    writer: str
    problems: list[str]
    scores: dict[str, float]


class TaskOut(PairTextsOut):
    """A pair that the person holds. `item` and `token` go with every decision on it."""

    item: int
    token: str
    seconds_left: int = Field(description="Of the lease; negative: it ran out and may be assigned to someone else.")
    asks: Literal["grade", "texts"] = Field(description="texts: contribution and evidence, which write takes.")
    texts: EvidenceDraftOut | None = Field(description="The present contribution and evidence.")
    why: str
    step: str = Field(description="first or final where the debate is shown after a first judgment; else empty.")
    first_grade: int | None


class QueueOut(Schema):
    """The pair that is held, if any; and why there is none where something closes the queue."""

    task: TaskOut | None
    waiting: int
    judged_today: int
    closed: str = Field(
        "", description="paused, consent, failed, untested, practice, trial, passed, deadline, quota, daily_quota."
    )


class HeldTask(RequestBody):
    """The pair that a decision is about, with the token of its assignment."""

    item: int = Field(ge=0, lt=BIG)
    token: str = Field(max_length=100)


class JudgmentIn(HeldTask):
    """A judgment."""

    grade: int = Field(ge=0, le=100)
    comment: str = Field("", max_length=LONGEST)
    milliseconds: int | None = Field(None, ge=0, le=86_400_000, description="Time that the person spent on it.")
    spans: list[tuple[int, int]] = Field([], max_length=100, description="Evidence: [start, end) in characters.")


class EvidenceTextsIn(HeldTask):
    """Contribution and evidence of a pair that asks for texts."""

    contribution: CleanText = Field(max_length=MAX_TEXT_CHARACTERS)
    evidence: CleanText = Field(max_length=MAX_TEXT_CHARACTERS)
    milliseconds: int | None = Field(None, ge=0, le=86_400_000, description="Time that the person spent on it.")
    rating: int | None = Field(None, ge=1, le=5, description="Of the texts as they were found.")


class SkipIn(HeldTask):
    """A pair that the person cannot judge."""

    reason: Assignment.SkipReason


class FlagIn(HeldTask):
    """A pair for the adjudicators."""

    note: str = Field("", max_length=LONGEST)


class DecidedIn(RequestBody):
    """The pair whose decision is taken back."""

    item: int = Field(ge=0, lt=BIG)


@router.get("/collections/{slug:name}/task", auth=may("judge", JUDGE), response=QueueOut)
def read_task(request: HttpRequest, name: str) -> Any:
    """Read the pair that is held; reading never claims one."""
    return _show_queue(scope_of(request).member)


# Needs no idempotency key: claiming again renews the lease of the same pair.
@router.post("/collections/{slug:name}/task/claim", auth=may("judge", JUDGE), response=QueueOut)
def claim_task(request: HttpRequest, name: str) -> Any:
    """Claim the next pair, or renew the lease of the one that is held."""
    return _decide(request, submitting.claim)


@router.post("/collections/{slug:name}/task/judge", auth=may("judge", JUDGE), response=QueueOut)
@decorate_view(once)
def judge_task(request: HttpRequest, name: str, body: JudgmentIn) -> Any:
    """Submit a judgment and claim the next pair.

    The same one sent again with its token changes nothing; another one on a decided pair is rejected (409).
    """
    member = scope_of(request).member
    # The schema of the request cannot check the grade, since each collection has its own scale.
    check_grade(body.grade, member.collection)
    answer = SubmittedAnswer(
        item=body.item,
        token=body.token,
        grade=body.grade,
        comment=clean_text(body.comment),
        milliseconds=body.milliseconds,
        spans=check_spans(body.spans),
    )
    # The token of the assignment serves as an idempotency key: the same answer sent twice with it is stored once.
    return _decide(request, lambda db, annotator: submitting.submit(db, annotator, answer))


@router.post("/collections/{slug:name}/task/write", auth=may("judge", JUDGE), response=QueueOut)
@decorate_view(once)
def write_texts(request: HttpRequest, name: str, body: EvidenceTextsIn) -> Any:
    """Write contribution and evidence of the pair, and claim the next."""
    member = scope_of(request).member
    submission = evidence.EvidenceSubmission(
        item=Assignment.item_of(member, body.item),
        token=body.token,
        writer=member.assessor.name,
        target=EvidenceTarget(body.contribution, body.evidence),
        milliseconds=body.milliseconds,
        rating=body.rating,
    )

    def check_and_store(db: Any, annotator: AnnotatorContext) -> int | None:
        evidence.check_texts(submission.target)
        return evidence.store_and_claim(db, annotator, submission)

    return _decide(request, check_and_store)


@router.post("/collections/{slug:name}/task/skip", auth=may("judge", JUDGE), response=QueueOut)
@decorate_view(once)
def skip_task(request: HttpRequest, name: str, body: SkipIn) -> Any:
    """Give the pair back with a reason, and claim the next."""
    return _decide(
        request, lambda db, annotator: submitting.skip(db, annotator, body.item, body.token, str(body.reason))
    )


@router.post("/collections/{slug:name}/task/flag", auth=may("judge", JUDGE), response=QueueOut)
@decorate_view(once)
def flag_task(request: HttpRequest, name: str, body: FlagIn) -> Any:
    """Hand the pair to the adjudicators with a note, and claim the next."""
    note = clean_text(body.note)
    return _decide(request, lambda db, annotator: submitting.flag(db, annotator, body.item, body.token, note))


@router.post("/collections/{slug:name}/task/undo", auth=may("judge", JUDGE), response=QueueOut)
@decorate_view(once)
def undo_task(request: HttpRequest, name: str, body: DecidedIn) -> Any:
    """Take a decision back: its pair is held again."""
    member = scope_of(request).member
    undo.undo_decision(member, Assignment.item_of(member, body.item))
    return _show_queue(member)


def _decide(request: HttpRequest, decision: Callable[[Any, AnnotatorContext], object]) -> dict[str, Any]:
    member = scope_of(request).member
    annotator = AnnotatorContext.of(member)
    assignment.in_transaction(lambda db: decision(db, annotator))
    return _show_queue(member)


def _show_queue(member: Membership) -> dict[str, Any]:
    task, figures = page.read_open_task(member)
    # Somebody with an open pair may finish it, even if the queue was closed to them in the meantime.
    stop = onboarding.find_stop(member) if task is None else None
    return {
        "task": task
        and {
            **show_texts(task, member.collection.grades),
            "item": task.item,
            "token": task.token,
            "seconds_left": task.seconds,
            "asks": "texts" if task.draft is not None else "grade",
            "texts": task.draft,
            "why": task.why,
            "step": task.step,
            "first_grade": task.grade,
        },
        "waiting": figures.waiting,
        "judged_today": figures.today,
        "closed": stop.kind if stop else "",
    }


def show_texts(task: page.TaskView, highest: int) -> dict[str, Any]:
    """Return the texts of a pair as the fields of PairTextsOut."""
    return {
        "query": task.query.text,
        "answers": [answer.text for answer in task.answers],
        "instruction": task.need.text,
        "title": task.title.text,
        "document": task.document.text,
        "source": task.source,
        "highest_grade": highest,
        "debate": [
            {
                "round": debate_round.number,
                "side": turn.side,
                "verdict": turn.verdict,
                "reason": turn.reason.text if turn.reason else "",
                "quotes": turn.quotes,
            }
            for debate_round in task.debate.rounds
            for turn in debate_round.turns
        ],
    }
