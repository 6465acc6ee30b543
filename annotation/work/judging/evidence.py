"""Contribution and evidence that people write: the form, its checks, and the stored texts."""

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
from corpus.evidence import measures as evidence
from corpus.evidence.targets import locked_pair, next_version
from corpus.models import Target
from judges.domain.evidence_quality import find_problems, target_measures

LONGEST = 20_000  # Characters of a contribution or of evidence.
TOO_LONG = {
    "contribution": gettext_noop(
        "The contribution is %(count)s characters long; the limit is %(most)s. Nothing was saved."
    ),
    "evidence": gettext_noop("The evidence is %(count)s characters long; the limit is %(most)s. Nothing was saved."),
}


@dataclass(frozen=True, slots=True)
class SubmittedTexts:
    """A submitted form of contribution and evidence."""

    item: int
    token: str
    writer: str
    target: evidence.EvidenceTarget
    milliseconds: int | None
    rating: int | None = None  # Of the texts that the form was opened with.

    @property
    def texts(self) -> tuple[str, str, str]:
        """Return the texts and the rating, by which two decisions are compared."""
        return self.target.contribution, self.target.evidence, str(self.rating or "")


def parse_texts(data: QueryDict, membership: Membership) -> tuple[SubmittedTexts]:
    """Parse the form of contribution and evidence. Raises BadInput."""
    rating = data.get("rating", "")
    if rating not in ("", *map(str, RATINGS)):
        raise BadInput(_("Choose a rating from 1 to 5. Nothing was saved."))
    texts = SubmittedTexts(
        item=parse_item(data, membership),
        token=data.get("token", ""),
        writer=membership.assessor.name,
        target=evidence.EvidenceTarget(_parse_field(data, "contribution"), _parse_field(data, "evidence")),
        milliseconds=parse_milliseconds(data),
        rating=int(rating) if rating else None,
    )
    return (check_texts(texts),)


def check_texts(texts: SubmittedTexts) -> SubmittedTexts:
    """Return the texts. Raises BadInput where they cannot be a contribution and evidence."""
    try:
        evidence.check_target(texts.target.contribution, texts.target.evidence)
    except evidence.Malformed as error:
        problem = str(error)
        raise BadInput(_("%(problem)s. Nothing was saved.") % {"problem": problem[0].upper() + problem[1:]}) from None
    return texts


def _parse_field(data: QueryDict, name: str) -> str:
    value = data.get(name, "").replace("\x00", "").replace("\r\n", "\n").strip()
    if len(value) > LONGEST:
        raise BadInput(_(TOO_LONG[name]) % {"count": f"{len(value):,}", "most": f"{LONGEST:,}"})
    return value


def finish(db: Connection[Any], annotator: AnnotatorContext, form: SubmittedTexts) -> int | None:
    """Store the texts and their rating, and claim the next item."""
    write = partial(append_target, form)
    return claim_next(db, annotator, assignment.submit_texts(db, annotator, form.item, form.token, form.texts, write))


# Such a pair is never on the page of a query, so that its texts are not stored without a claim.
WRITE_TEXTS = Decision(parse_texts, finish, finish)


def append_target(form: SubmittedTexts, pair_id: int) -> None:
    """Store the person's texts as the newest target of the pair."""
    # Locked, because the version number follows from the pair's earlier targets.
    pair = locked_pair(pair_id)
    document = f"{pair.document.title}\n{pair.document.text}" if pair.document.title else pair.document.text
    # Measured by rules alone, since a person waits for the answer.
    rules = evidence.measure_target(form.target, query=pair.query.text, document=document)
    Target.objects.create(
        pair=pair,
        version=next_version(pair.pk),
        kind=Target.Kind.PERSON,
        writer=form.writer,
        contribution=form.target.contribution,
        evidence=form.target.evidence,
        measures={**target_measures(evidence.as_json(rules), find_problems(rules)), "milliseconds": form.milliseconds},
        # A person's texts are valid even where the rules find problems in them.
        good=True,
        rating=form.rating,
        item_id=form.item,
    )
