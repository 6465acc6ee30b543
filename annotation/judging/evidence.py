"""Contribution and evidence on the judging page: what a judge wrote and what failed, and what a person makes of it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import Max
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.judging.forms import Invalid, milliseconds
from annotation.judging.forms import item as item_of
from annotation.models import Membership
from corpus.evidence import measures as evidence
from corpus.evidence.targets import last_of_judge, last_text
from corpus.models import Item, Pair, Target
from judges.evidence.quality import DIMENSIONS, problems, row

LONGEST = 20_000
"""Characters of a contribution or of evidence."""
RATINGS = {
    1: gettext_lazy("useless"),
    2: gettext_lazy("poor"),
    3: gettext_lazy("usable"),
    4: gettext_lazy("good"),
    5: gettext_lazy("nothing to change"),
}


@dataclass(frozen=True, slots=True)
class Score:
    """A judged dimension, as the page shows it."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class Draft:
    """What stands in the two fields, and what a judge's own text failed at."""

    contribution: str
    evidence: str
    writer: str
    """The judge whose texts failed; empty when none wrote."""
    problems: tuple[str, ...]
    scores: tuple[Score, ...]
    scored_by: str
    meaning: str
    """quality, or fidelity to teacher."""


@dataclass(frozen=True, slots=True)
class Edited:
    """A submitted form."""

    item: int
    token: str
    target: evidence.EvidenceTarget
    milliseconds: int | None
    rating: int | None = None
    """Of the texts as they were found."""


def draft_of(item: int) -> Draft:
    """What the desk shows for an item with the reason `evidence`; two statements, on such items only."""
    pair = Item.objects.values_list("pair", flat=True).get(pk=item)
    newest, judge = last_text(pair), last_of_judge(pair)
    measures: dict[str, Any] = judge.measures if judge else {}
    judged = measures.get("judged") or {}
    scores = judged.get("scores") or {}
    return Draft(
        contribution=newest.contribution if newest else "",
        evidence=newest.evidence if newest else "",
        writer=judge.writer if judge else "",
        problems=tuple(measures.get("problems", ())),
        scores=tuple(Score(name.replace("_", " "), scores[name]) for name in DIMENSIONS if name in scores),
        scored_by=judged.get("judge", ""),
        meaning=judged.get("as", ""),
    )


def edited(data: QueryDict, membership: Membership) -> Edited:
    """The form, parsed strictly. Raises Invalid."""
    contribution, text = _field(data, "contribution"), _field(data, "evidence")
    try:
        evidence.check(contribution, text)
    except evidence.Malformed as error:
        words = str(error)
        raise Invalid(_("%(problem)s. Nothing was saved.") % {"problem": words[0].upper() + words[1:]}) from None
    return Edited(
        item=item_of(data, membership),
        token=data.get("token", ""),
        target=evidence.EvidenceTarget(contribution, text),
        milliseconds=milliseconds(data),
        rating=_rating(data),
    )


def _rating(data: QueryDict) -> int | None:
    """What the person thought of the texts as they found them, 1 to 5; None: they did not say."""
    value = data.get("rating", "")
    if value not in ("", *map(str, RATINGS)):
        raise Invalid(_("A rating is a number from 1 to 5. Nothing was saved."))
    return int(value) if value else None


def _field(data: QueryDict, name: str) -> str:
    value = data.get(name, "").replace("\x00", "").replace("\r\n", "\n").strip()
    if len(value) > LONGEST:
        long = (
            _("The contribution has %(count)s characters; at most %(most)s fit. Nothing was saved.")
            if name == "contribution"
            else _("The evidence has %(count)s characters; at most %(most)s fit. Nothing was saved.")
        )
        raise Invalid(long % {"count": f"{len(value):,}", "most": f"{LONGEST:,}"})
    return value


def writer(membership: Membership, form: Edited) -> Callable[[int], None]:
    """What stores the person's texts as the target of the pair it is given."""
    return partial(_append, membership, form)


def _append(membership: Membership, form: Edited, pair_id: int) -> None:
    pair = _locked(pair_id)
    document = f"{pair.document.title}\n{pair.document.text}" if pair.document.title else pair.document.text
    rules = evidence.measure(form.target, query=pair.query.text, document=document)
    Target.objects.create(
        pair=pair,
        version=next_version(pair.pk),
        kind=Target.Kind.PERSON,
        writer=membership.assessor.name,
        contribution=form.target.contribution,
        evidence=form.target.evidence,
        measures={**row(evidence.as_json(rules), problems(rules)), "milliseconds": form.milliseconds},
        good=True,
        rating=form.rating,
        item_id=form.item,
    )


def withdraw(item: Item, membership: Membership) -> None:
    """Take back what was saved on this item: a row that withdraws it; the texts stay for who goes on."""
    pair = _locked(item.pair_id)
    last = Target.objects.filter(item=item, withdraws=None, withdrawn_by=None).order_by("-version").first()
    if last is not None:
        Target.objects.create(
            pair=pair,
            version=next_version(pair.pk),
            kind=Target.Kind.PERSON,
            writer=membership.assessor.name,
            good=False,
            item=item,
            withdraws=last,
        )


def _locked(pair: int) -> Pair:
    """Whoever adds a target locks its pair first: versions count without a gap."""
    rows = Pair.objects.select_for_update(no_key=True, of=("self",))
    return rows.select_related("query", "document").get(pk=pair)


def next_version(pair: int) -> int:
    """The number of the next text of a pair, which is locked."""
    return int(Target.objects.filter(pair=pair).aggregate(last=Max("version"))["last"] or 0) + 1
