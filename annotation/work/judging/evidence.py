"""Contribution and evidence that people write about a pair: parsing the form, checking it, and storing the texts.

A contribution and its evidence together are a target: the text that a model is trained to write about the pair.
"""

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
from judges.domain.evidence_quality import build_target_document, find_problems

MAX_TEXT_CHARACTERS = 20_000  # The limit of a contribution, and that of evidence.
TOO_LONG_MESSAGES = {
    "contribution": gettext_noop(
        "The contribution is %(count)s characters long; the limit is %(most)s. Nothing was saved."
    ),
    "evidence": gettext_noop("The evidence is %(count)s characters long; the limit is %(most)s. Nothing was saved."),
}


@dataclass(frozen=True, slots=True)
class EvidenceSubmission:
    """A contribution and evidence that a person has submitted about the pair of an item."""

    item: int  # The primary key of the item; 0 if the form does not name an item of the person.
    token: str  # The token of the assignment. It makes sure that a submission that is sent twice is stored once.
    writer: str  # The name of the person's assessor.
    target: EvidenceTarget
    milliseconds: int | None  # The time that writing took; None if it was not measured.
    rating: int | None = None  # From 1 to 5: how the person rates the texts that the form contained at first.


def parse_submission(form_data: QueryDict, membership: Membership) -> tuple[EvidenceSubmission]:
    """Parse the form of contribution and evidence.

    Returns a tuple of one, because `Decision.parse` returns the further arguments of `store_and_claim`. Raises BadInput
    if a field has an invalid value, or if the texts do not pass `check_texts`.
    """
    rating = form_data.get("rating", "")
    if rating not in ("", *map(str, RATINGS)):
        raise BadInput(_("Choose a rating from 1 to 5. Nothing was saved."))
    submission = EvidenceSubmission(
        item=parse_item(form_data, membership),
        token=form_data.get("token", ""),
        writer=membership.assessor.name,
        target=EvidenceTarget(
            contribution=_parse_text(form_data, "contribution"), evidence=_parse_text(form_data, "evidence")
        ),
        milliseconds=parse_milliseconds(form_data),
        rating=int(rating) if rating else None,
    )
    check_texts(submission.target)
    return (submission,)


def _parse_text(form_data: QueryDict, name: str) -> str:
    """Return a text of the form, whose lines end with LF. Raises BadInput if it is too long."""
    # PostgreSQL cannot store NUL.
    text = form_data.get(name, "").replace("\x00", "").replace("\r\n", "\n").strip()
    if len(text) > MAX_TEXT_CHARACTERS:
        raise BadInput(_(TOO_LONG_MESSAGES[name]) % {"count": f"{len(text):,}", "most": f"{MAX_TEXT_CHARACTERS:,}"})
    return text


def check_texts(target: EvidenceTarget) -> None:
    """Raise BadInput if one of the texts is empty, or contains a <contribution> or <evidence> tag."""
    try:
        check_target(target.contribution, target.evidence)
    except Malformed as error:
        # The error is a clause that begins in lower case; here it becomes a sentence.
        problem = str(error)
        raise BadInput(_("%(problem)s. Nothing was saved.") % {"problem": problem[0].upper() + problem[1:]}) from None


def store_and_claim(db: Connection[Any], annotator: AnnotatorContext, submission: EvidenceSubmission) -> int | None:
    """Store the texts and their rating, claim the next item, and return the id of its assignment.

    Returns None if there is no other item. Raises Http404 if the item was never assigned to the person, and
    DecisionRefused if the assignment does not accept the texts any more, or if its item needs a grade instead.
    """
    # `submit_texts` calls `store_target` with the id of the pair, unless the assignment already has this content: then
    # the form was sent twice.
    content = (submission.target.contribution, submission.target.evidence, str(submission.rating or ""))
    own_assignment = assignment.submit_texts(
        db, annotator, submission.item, submission.token, content, partial(store_target, submission)
    )
    return claim_next(db, annotator, own_assignment)


def store_target(submission: EvidenceSubmission, pair_id: int) -> None:
    """Measure the texts, and store them and the time that writing took as the newest target of the pair."""
    # Locked, because the version number follows from the earlier targets of the pair.
    pair = locked_pair(pair_id)
    document = f"{pair.document.title}\n{pair.document.text}" if pair.document.title else pair.document.text
    # No judge scores the texts, because the person is waiting for the response.
    rule_measures = measure_target(submission.target, query=pair.query.text, document=document)
    measures = build_target_document(as_json(rule_measures), find_problems(rule_measures))
    Target.objects.create(
        pair=pair,
        version=next_version(pair.pk),
        kind=Target.Kind.PERSON,
        writer=submission.writer,
        contribution=submission.target.contribution,
        evidence=submission.target.evidence,
        measures={**measures, "milliseconds": submission.milliseconds},
        good=True,  # The texts of a person are used even if the rules find problems in them.
        rating=submission.rating,
        item_id=submission.item,
    )


WRITE_TEXTS = Decision(parse=parse_submission, store_and_claim=store_and_claim)
