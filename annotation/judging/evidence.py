"""Contribution and evidence as people write them: the form, and what is stored."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from psycopg import Connection

from annotation.judging.forms import Invalid, parse_item, parse_milliseconds
from annotation.judging.page import RATINGS
from annotation.judging.submitting import claim_next
from annotation.models import Membership
from annotation.queue import assignment
from annotation.queue.annotators import AnnotatorContext
from corpus.evidence import measures as evidence
from corpus.evidence.targets import locked_pair, next_version
from corpus.models import Target
from judges.evidence.quality import find_problems, target_measures

LONGEST = 20_000  # Characters of a contribution or of evidence.
TOO_LONG = {
    "contribution": gettext_noop(
        "The contribution is %(count)s characters long; the limit is %(most)s. Nothing was saved."
    ),
    "evidence": gettext_noop("The evidence is %(count)s characters long; the limit is %(most)s. Nothing was saved."),
}


@dataclass(frozen=True, slots=True)
class Edited:
    """A submitted form of contribution and evidence."""

    item: int
    token: str
    writer: str
    target: evidence.EvidenceTarget
    milliseconds: int | None
    rating: int | None = None  # Of the texts as they were found.

    @property
    def texts(self) -> tuple[str, str, str]:
        """What is stored, as far as two forms differ."""
        return self.target.contribution, self.target.evidence, str(self.rating or "")


def parse_edit(data: QueryDict, membership: Membership) -> tuple[Edited]:
    """Parse the form strictly. Raises Invalid."""
    contribution, text = _parse_field(data, "contribution"), _parse_field(data, "evidence")
    rating = data.get("rating", "")
    if rating not in ("", *map(str, RATINGS)):
        raise Invalid(_("Choose a rating from 1 to 5. Nothing was saved."))
    form = Edited(
        item=parse_item(data, membership),
        token=data.get("token", ""),
        writer=membership.assessor.name,
        target=evidence.EvidenceTarget(contribution, text),
        milliseconds=parse_milliseconds(data),
        rating=int(rating) if rating else None,
    )
    return (check_edit(form),)


def check_edit(form: Edited) -> Edited:
    """Return the form. Raises Invalid unless its texts can stand as contribution and evidence."""
    try:
        evidence.check_target(form.target.contribution, form.target.evidence)
    except evidence.Malformed as error:
        words = str(error)
        raise Invalid(_("%(problem)s. Nothing was saved.") % {"problem": words[0].upper() + words[1:]}) from None
    return form


def _parse_field(data: QueryDict, name: str) -> str:
    value = data.get(name, "").replace("\x00", "").replace("\r\n", "\n").strip()
    if len(value) > LONGEST:
        raise Invalid(_(TOO_LONG[name]) % {"count": f"{len(value):,}", "most": f"{LONGEST:,}"})
    return value


def finish(db: Connection[Any], desk: AnnotatorContext, form: Edited) -> int | None:
    """Settle an item that asks for texts and their rating, and claim the next."""
    write = partial(append_target, form)
    return claim_next(db, desk, assignment.submit_texts(db, desk, form.item, form.token, form.texts, write))


def append_target(form: Edited, pair_id: int) -> None:
    """Store the person's texts as the newest target of the pair."""
    # Locked, because the next version number follows from the pair's targets.
    pair = locked_pair(pair_id)
    document = f"{pair.document.title}\n{pair.document.text}" if pair.document.title else pair.document.text
    # By the rules alone: no judge is asked while a person waits.
    rules = evidence.measure_target(form.target, query=pair.query.text, document=document)
    Target.objects.create(
        pair=pair,
        version=next_version(pair.pk),
        kind=Target.Kind.PERSON,
        writer=form.writer,
        contribution=form.target.contribution,
        evidence=form.target.evidence,
        measures={**target_measures(evidence.as_json(rules), find_problems(rules)), "milliseconds": form.milliseconds},
        # What a person wrote holds, whatever the rules find in it.
        good=True,
        rating=form.rating,
        item_id=form.item,
    )
