"""The list of pairs: filters that live in the URL, and pages by key (never by offset)."""

from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Left
from django.utils.translation import gettext_lazy

from annotation.agreement.grade_matrix import pairs_where
from annotation.policies.cells import of_cell
from annotation.policies.rules import HUMAN, LARA
from annotation.queue.skipped import skipped_by_all
from corpus.models import Assessor, Collection, CurrentJudgment, Document, Item, Label, Pair, Query
from judges.campaigns.configurations import JUDGING
from judges.domain.routing import ORIGINS as ROUTES
from judges.models import Audit, Campaign, Work

PAGE = 50
COUNTED = 1000  # Totals are exact up to here; beyond, "more than".

ITEM_STATES = frozenset({Item.State.OPEN, Item.State.CONFLICT, Item.State.SETTLED})
STATES = [
    ("labelled", gettext_lazy("labelled by judges")),
    ("escalated", gettext_lazy("escalated to people")),
    ("failed", gettext_lazy("failed")),
    ("running", gettext_lazy("being judged")),
    ("pending", gettext_lazy("waiting for judges")),
    ("open", gettext_lazy("waits for people")),
    ("conflict", gettext_lazy("waits for an adjudicator")),
    ("skipped", gettext_lazy("skipped by all annotators")),
    ("settled", gettext_lazy("settled by people")),
    ("new", gettext_lazy("in no campaign")),
]
WITHOUT_CONTROL = ("campaign", "verdict", "round", "route", "cross", "a", "b", "cell")
ORIGINS = ["people", "adjudicator", *(policy for policy in JUDGING if policy != HUMAN), LARA, *ROUTES.values()]


@dataclass(frozen=True)
class PairFilters:
    """What the list is narrowed to; every field is a parameter of the URL, and empty means any."""

    q: str = ""
    state: str = ""
    reason: str = ""
    label: str = ""
    verdict: str = ""
    round: str = ""
    # Pairs that were drawn for the audit of this route (judges.domain.audits), in any state.
    route: str = ""
    # A cell of debate against ensemble (annotation.policies.crossing), of one campaign.
    cross: str = ""
    origin: str = ""
    gold: str = ""
    campaign: str = ""
    a: str = ""
    b: str = ""
    cell: str = ""

    @classmethod
    def read(cls, parameters: Any) -> "PairFilters":
        """From a query string; names that are no filter are left out."""
        return cls(**{field.name: parameters.get(field.name, "").strip()[:200] for field in fields(cls)})

    def query(self, **changes: object) -> str:
        """As a query string, with changes; empty ones are left out."""
        chosen = replace(self, **{name: str(value) for name, value in changes.items()})
        return urlencode({f.name: value for f in fields(chosen) if (value := getattr(chosen, f.name))})

    @property
    def kept(self) -> list[tuple[str, str]]:
        """Filters that came with a link and have no control of their own."""
        return [(name, value) for name in WITHOUT_CONTROL if (value := getattr(self, name))]

    @property
    def without_kept(self) -> str:
        """The query string with the other filters alone."""
        return self.query(**dict.fromkeys(WITHOUT_CONTROL, ""))

    @property
    def is_set(self) -> bool:
        """Whether anything is narrowed."""
        return bool(self.query())


def load_page(
    collection: Collection, filters: PairFilters, *, campaign: Campaign | None, after: int = 0, before: int = 0
) -> dict[str, Any]:
    """One page in a fixed number of statements. `campaign` gives the states of judging, and may be None."""
    found = matching_pairs(collection, filters, campaign=campaign)
    # Backwards from the key, and then turned round, where `before` is given.
    beyond = found.filter(pk__lt=before).order_by("-pk") if before else found.filter(pk__gt=after).order_by("pk")
    rows = list(_select_columns(beyond)[: PAGE + 1])
    more, rows = len(rows) > PAGE, rows[:PAGE][:: -1 if before else 1]
    earlier, later = (more, True) if before else (after > 0, more)
    total = found.order_by()[: COUNTED + 1].count()
    return {
        "rows": _with_state(rows, campaign, asked=filters.state),
        "before": rows[0]["pk"] if rows and earlier else None,
        "after": rows[-1]["pk"] if rows and later else None,
        "total": total,
        "many": total > COUNTED,
    }


def matching_pairs(collection: Collection, filters: PairFilters, *, campaign: Campaign | None) -> QuerySet[Pair]:
    """The pairs that all filters let through. A value that means nothing lets none through.

    Pairs that only an imported grade names are no candidates for judging: they show when grades are asked for.
    """
    found = Pair.objects.filter(collection=collection)
    compared = bool(filters.a and filters.b)
    if compared:
        cell = pairs_where(collection, filters.a, filters.b, filters.cell or "disagree").tolist()
        found = found.filter(pk__in=RawSQL("SELECT unnest(%s::bigint[])", [cell]))  # one parameter, however many
    elif not filters.gold:
        found = found.filter(is_candidate=True)
    if filters.route:
        found = found.filter(pk__in=Audit.objects.filter(campaign=campaign, stratum=filters.route).values("pair"))
    if filters.gold:
        gold = Exists(CurrentJudgment.objects.filter(pair=OuterRef("pk"), assessor__kind=Assessor.Kind.REFERENCE))
        found = found.filter({"yes": Q(gold), "no": ~Q(gold)}.get(filters.gold, Q(pk__in=[])))
    return found.filter(
        _text_condition(collection, filters.q),
        _state_condition(collection, filters, campaign),
        of_cell(campaign, filters.cross),
        _label_condition(filters),
    )


def _text_condition(collection: Collection, q: str) -> Q:
    """Words of the query, the id of the query, or the id of the document.

    Texts and documents are looked up first and pairs by their keys: as one condition over three tables a million
    pairs take seconds, so they take a tenth of one.
    """
    if not q:
        return Q()
    queries = Query.objects.filter(collection=collection).filter(Q(text__icontains=q) | Q(external_id=q))
    few = list(queries.values_list("pk", flat=True)[: COUNTED + 1])
    documents = list(Document.objects.filter(collection=collection, external_id=q).values_list("pk", flat=True))
    if len(few) > COUNTED:
        # Beside the OR the planner keeps the subquery as a hash and walks pairs by their key: the page fills at once.
        return Q(query__in=queries.values("pk")) | Q(document__in=documents or [0])
    condition = Q(query__in=few) if few else Q(pk__in=[])
    return condition | Q(document__in=documents) if documents else condition


def _state_condition(collection: Collection, filters: PairFilters, campaign: Campaign | None) -> Q:
    state, reason = filters.state, filters.reason
    if state == "new":
        return ~Q(Exists(Work.objects.filter(pair=OuterRef("pk"))))
    if state == "skipped":
        return Q(pk__in=skipped_by_all(collection).values("pair"))
    if state in ITEM_STATES or (reason == Item.Reason.AUDIT and not state):
        return Q(pk__in=_item_pairs(collection, filters))
    numbers = {"label": filters.verdict, "agreed_in_round": filters.round}
    work: dict[str, object] = {name: int(text) for name, text in numbers.items() if text.isdecimal()}
    work |= {name: text for name, text in (("state", state), ("reason", reason)) if text}
    if not work:
        return Q()
    return Q(pk__in=Work.objects.filter(campaign=campaign, **work).values("pair")) if campaign else Q(pk__in=[])


def _item_pairs(collection: Collection, filters: PairFilters) -> QuerySet[Any]:
    """Pairs of items; of one campaign when the filters name it."""
    items = (_items_in_state(filters.state) if filters.state else Item.objects.all()).filter(collection=collection)
    if filters.reason:
        items = items.filter(reason=filters.reason)
    if filters.campaign.isdecimal():
        items = items.filter(campaign=int(filters.campaign))
    return items.values("pair")


def _label_condition(filters: PairFilters) -> Q:
    labels = Label.objects.filter(pair=OuterRef("pk"), aspect=None)
    condition = Q()
    if filters.label == "none":
        condition &= ~Q(Exists(labels))
    elif filters.label:
        condition &= Q(Exists(labels.filter(grade=int(filters.label)))) if filters.label.isdecimal() else Q(pk__in=[])
    if filters.origin:
        condition &= Q(Exists(labels.filter(origin=filters.origin)))
    return condition


def _select_columns(found: QuerySet[Pair]) -> QuerySet[Pair, Any]:
    return found.values(
        "pk",
        "query__external_id",
        "document__external_id",
        query_text=Left("query__text", 200),
        title=Left("document__title", 120),
        text=Left("document__text", 200),
    )


def _with_state(rows: list[dict[str, Any]], campaign: Campaign | None, *, asked: str) -> list[dict[str, Any]]:
    """Where the pairs of one page stand, in four statements. Who asked for a state of people sees that state."""
    pairs = [row["pk"] for row in rows]
    work = {w.pair_id: w for w in Work.objects.filter(campaign=campaign, pair__in=pairs)} if campaign else {}
    items = {item.pair_id: item for item in _items_in_state(asked).filter(pair__in=pairs).order_by("pk")}
    if asked in ITEM_STATES:
        work = {pair: row for pair, row in work.items() if pair not in items}
    labels = {label.pair_id: label for label in Label.objects.filter(pair__in=pairs, aspect=None)}
    gold = dict(
        CurrentJudgment.objects.filter(pair__in=pairs, assessor__kind=Assessor.Kind.REFERENCE)
        .order_by("pk")
        .values_list("pair", "grade")
    )
    return [_build_row(row, work.get(row["pk"]), items.get(row["pk"]), labels.get(row["pk"]), gold) for row in rows]


def _items_in_state(state: str) -> QuerySet[Item]:
    """Items in a state; what waits for an adjudicator is open, too. Any state but withdrawn unless one is asked for."""
    if state == "open":
        return Item.objects.filter(state__in=[Item.State.OPEN, Item.State.CONFLICT])
    return Item.objects.filter(state=state) if state in ITEM_STATES else Item.objects.exclude(state="withdrawn")


def _build_row(
    row: dict[str, Any], work: Work | None, item: Item | None, label: Label | None, gold: dict[int, int]
) -> dict[str, Any]:
    people = item if item and (not work or work.state == "escalated") else None
    stands = people or work
    return row | {
        "state": stands.state if stands else "new",
        "reason": stands.reason if stands else "",
        "grade": label.grade if label else None,
        "origin": label.origin if label else "",
        "gold": gold.get(row["pk"]),
    }
