"""Contribution and evidence that people write: parsing and checking the form, and storing the texts."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from psycopg import Connection

from annotation.models import Membership
from annotation.work.judging.forms import parse_item, parse_milliseconds
from annotation.work.judging.page import RATINGS
from annotation.work.judging.submitting import Decision, claim_next
from annotation.work.queue import assignment
from annotation.work.queue.annotators import AnnotatorContext
from corpus.errors import BadInput
from corpus.evidence.measures import EvidenceTarget, Malformed, as_json, check_target, measure_target
from corpus.evidence.targets import locked_pair, next_version
from corpus.models import Target
from judges.domain.evidence_quality import find_problems, target_measures

MAX_TEXT_CHARACTERS = 20_000  # The limit of a contribution, and of evidence.
TOO_LONG = {
    "contribution": gettext_noop(
        "The contribution is %(count)s characters long; the limit is %(most)s. Nothing was saved."
    ),
    "evidence": gettext_noop("The evidence is %(count)s characters long; the limit is %(most)s. Nothing was saved."),
}


@dataclass(frozen=True, slots=True)
class EvidenceSubmission:
    """A contribution and evidence that a person submitted for an item."""

    item: int  # The primary key; 0 if the form names no item of the person.
    token: str  # The token of the assignment, by which a repeated submission is recognized.
    writer: str  # The name of the person's assessor.
    target: EvidenceTarget
    milliseconds: int | None  # The time that writing took; None if it was not measured.
    rating: int | None = None  # The person's rating, from 1 to 5, of the texts that the form was opened with.


def parse_submission(data: QueryDict, membership: Membership) -> tuple[EvidenceSubmission]:
    """Parse the form of contribution and evidence, and return it as the only argument of `store_and_claim`.

    Raises BadInput if a field has an invalid value, or if the texts fail `check_submission`.
    """
    rating = data.get("rating", "")
    if rating not in ("", *map(str, RATINGS)):
        raise BadInput(_("Choose a rating from 1 to 5. Nothing was saved."))
    submission = EvidenceSubmission(
        item=parse_item(data, membership),
        token=data.get("token", ""),
        writer=membership.assessor.name,
        target=EvidenceTarget(contribution=_parse_text(data, "contribution"), evidence=_parse_text(data, "evidence")),
        milliseconds=parse_milliseconds(data),
        rating=int(rating) if rating else None,
    )
    check_submission(submission)
    return (submission,)


def check_submission(submission: EvidenceSubmission) -> None:
    """Raise BadInput unless both texts are present and free of tags."""
    try:
        check_target(submission.target.contribution, submission.target.evidence)
    except Malformed as error:
        # The error is a clause that begins in lower case, and becomes a sentence here.
        problem = str(error)
        raise BadInput(_("%(problem)s. Nothing was saved.") % {"problem": problem[0].upper() + problem[1:]}) from None


def _parse_text(data: QueryDict, name: str) -> str:
    """Return a text of the form without NUL, which PostgreSQL cannot store. Raises BadInput if it is too long."""
    text = data.get(name, "").replace("\x00", "").replace("\r\n", "\n").strip()
    if len(text) > MAX_TEXT_CHARACTERS:
        raise BadInput(_(TOO_LONG[name]) % {"count": f"{len(text):,}", "most": f"{MAX_TEXT_CHARACTERS:,}"})
    return text


def store_and_claim(db: Connection[Any], annotator: AnnotatorContext, submission: EvidenceSubmission) -> int | None:
    """Store the texts and their rating, claim the next item, and return the id of its assignment.

    Returns None if no item remains. Raises Http404 and DecisionRefused.
    """
    # A submission that is repeated with the same texts and rating is recognized as the one that is stored already.
    content = (submission.target.contribution, submission.target.evidence, str(submission.rating or ""))
    write_target = partial(append_target, submission)
    submitted = assignment.submit_texts(db, annotator, submission.item, submission.token, content, write_target)
    return claim_next(db, annotator, submitted)


# `store_and_claim` is also given as `store`, which is never called: these items do not appear on the page of a query.
WRITE_TEXTS = Decision(parse=parse_submission, store_and_claim=store_and_claim, store=store_and_claim)


def append_target(submission: EvidenceSubmission, pair_id: int) -> None:
    """Store the person's texts as the newest target of the pair."""
    # Locked, because the version number follows from the pair's earlier targets.
    pair = locked_pair(pair_id)
    document = f"{pair.document.title}\n{pair.document.text}" if pair.document.title else pair.document.text
    # The texts are measured by rules alone and not by a judge, because the person is waiting for the response.
    rule_measures = measure_target(submission.target, query=pair.query.text, document=document)
    measures = target_measures(as_json(rule_measures), find_problems(rule_measures))
    Target.objects.create(
        pair=pair,
        version=next_version(pair.pk),
        kind=Target.Kind.PERSON,
        writer=submission.writer,
        contribution=submission.target.contribution,
        evidence=submission.target.evidence,
        measures=measures | {"milliseconds": submission.milliseconds},
        # A person's texts are valid even if the rules find problems in them.
        good=True,
        rating=submission.rating,
        item_id=submission.item,
    )
