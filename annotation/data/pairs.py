"""The list of pairs: what matches the filters of the URL, a page of it, and where its pairs are."""

from typing import Any
from urllib.parse import urlencode

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Left

from annotation.agreement.grade_matrix import pairs_where
from annotation.data.pair_filters import PairFilters
from annotation.data.pair_order import FIRST_PAGE, PageKey, list_keys
from annotation.models import Assignment
from annotation.policies.cells import of_cell
from annotation.queue.skipped import skipped_by_all
from annotation.queue.statements import one_array
from corpus.labels import reference_grades
from corpus.models import Assessor, Collection, CurrentJudgment, Document, Item, Label, Pair, Query
from corpus.search import full_text
from judges.campaigns.pair_states import PairState, states_of
from judges.models import Audit, Campaign, Work

PAGE = 50
COUNTED = 1000  # Totals are exact up to here; beyond, "more than".
LISTED_DOCUMENTS = 20_000  # Documents whose texts match, up to which pairs are found by their ids.
ITEM_STATES = frozenset({Item.State.OPEN, Item.State.CONFLICT, Item.State.SETTLED})
PEOPLES = [PairState.OPEN.value, PairState.SETTLED.value]
# Each value twice: null matches every pair.
IN_STATE = """
SELECT pair FROM pair_states(ARRAY[%s::bigint])
WHERE (%s::text[] IS NULL OR state = ANY(%s)) AND (%s::text IS NULL OR reason = %s)
  AND (%s::int IS NULL OR verdict = %s) AND (%s::int IS NULL OR agreed = %s)
"""


def load_page(
    collection: Collection, filters: PairFilters, *, campaign: Campaign | None, key: PageKey = FIRST_PAGE
) -> dict[str, Any]:
    """Load a page in a fixed number of statements. `campaign`: states are those in it; None: in the collection."""
    found = matching_pairs(collection, filters, campaign=campaign)
    # One more than a page tells whether there is another, without counting a million pairs.
    keys = list_keys(found, filters.sort, key, PAGE + 1, collection=collection, campaign=campaign)
    more, keys = len(keys) > PAGE, keys[:PAGE][:: -1 if key.backwards else 1]
    earlier, later = (more, True) if key.backwards else (key.pair > 0, more)
    total = found.order_by()[: COUNTED + 1].count()
    return {
        "rows": load_rows([pk for pk, _ in keys], collection, campaign, asked=filters.state),
        "before": _write_key("before", keys[0]) if keys and earlier else "",
        "after": _write_key("after", keys[-1]) if keys and later else "",
        "total": total,
        "many": total > COUNTED,
    }


def _write_key(name: str, key: tuple[int, Any]) -> str:
    """Return what a URL says beside the filters to begin at a pair."""
    pk, value = key
    return urlencode({name: pk} | ({"key": value} if value != "" else {}))


def matching_pairs(collection: Collection, filters: PairFilters, *, campaign: Campaign | None) -> QuerySet[Pair]:
    """Return the pairs that pass all filters. A value that means nothing lets none pass.

    Pairs that only an imported grade names are no candidates for judging: they show when grades are asked for.
    """
    found = Pair.objects.filter(collection=collection)
    compared = bool(filters.a and filters.b)
    if compared:
        cell = pairs_where(collection, filters.a, filters.b, filters.cell or "disagree").tolist()
        found = found.filter(pk__in=one_array(cell))
    elif not filters.gold:
        found = found.filter(is_candidate=True)
    if filters.route:
        drawn = Audit.objects.filter(stratum=filters.route, campaign__collection=collection)
        found = found.filter(pk__in=(drawn.filter(campaign=campaign) if campaign else drawn).values("pair"))
    if filters.gold:
        gold = Exists(CurrentJudgment.objects.filter(pair=OuterRef("pk"), assessor__kind=Assessor.Kind.REFERENCE))
        found = found.filter({"yes": Q(gold), "no": ~Q(gold)}.get(filters.gold, Q(pk__in=[])))
    return found.filter(
        # Texts and documents are looked up first and pairs by their keys: as one condition over
        # three tables a million pairs take seconds, so they take a tenth of one.
        _query_condition(collection, filters.q) | _document_condition(collection, filters.q) if filters.q else Q(),
        _state_condition(collection, filters, campaign),
        of_cell(campaign, filters.cross),
        _label_condition(filters),
    )


def _query_condition(collection: Collection, q: str) -> Q:
    queries = Query.objects.filter(collection=collection).filter(Q(text__icontains=q) | Q(external_id=q))
    few = list(queries.values_list("pk", flat=True)[: COUNTED + 1])
    if len(few) > COUNTED:
        # Beside the OR the planner keeps the subquery as a hash and walks pairs by their key: the page fills at once.
        return Q(query__in=queries.values("pk"))
    return Q(query__in=few) if few else Q(pk__in=[])


def _document_condition(collection: Collection, q: str) -> Q:
    documents = list(Document.objects.filter(collection=collection, external_id=q).values_list("pk", flat=True))
    if search := full_text.write_search(q):
        matches = full_text.find_documents(collection.pk, search)
        documents += matches.values_list("pk", flat=True)[: LISTED_DOCUMENTS + 1]
        if len(documents) > LISTED_DOCUMENTS:
            # So frequent that pairs walked by their key soon fill the page.
            return Q(Exists(matches.filter(document=OuterRef("document"))))
    return Q(document__in=one_array(documents)) if documents else Q(pk__in=[])


def _state_condition(collection: Collection, filters: PairFilters, campaign: Campaign | None) -> Q:
    state, reason = filters.state, filters.reason
    if state == "new":
        return ~Q(Exists(Work.objects.filter(pair=OuterRef("pk"))))
    if state == "skipped":
        return Q(pk__in=skipped_by_all(collection).values("pair"))
    if state == "assigned":
        held = Assignment.objects.filter(state=Assignment.State.OPEN, item__collection=collection)
        return Q(pk__in=held.values("item__pair"))
    if (state in ITEM_STATES and (campaign or state != PairState.SETTLED)) or (
        reason == Item.Reason.AUDIT and not state
    ):
        items = (_items_in_state(state) if state else Item.objects.all()).filter(collection=collection)
        items = items.filter(reason=reason) if reason else items
        items = items.filter(campaign=campaign.pk) if campaign is not None else items
        return Q(pk__in=items.values("pair"))
    if campaign is None:
        # The state that a pair has in the collection, whoever labelled it (judges.campaigns.pair_states).
        states = PEOPLES if state == Work.State.ESCALATED else [state]
        verdict, agreed = (int(text[:9]) if text.isdecimal() else None for text in (filters.verdict, filters.round))
        values = [states if state else None, reason or None, verdict, agreed]
        if values == [None] * 4:
            return Q()
        return Q(pk__in=RawSQL(IN_STATE, [collection.pk, *(value for value in values for _twice in range(2))]))
    numbers = {"label": filters.verdict, "agreed_in_round": filters.round}
    work: dict[str, object] = {name: int(text) for name, text in numbers.items() if text.isdecimal()}
    work |= {name: text for name, text in (("state", state), ("reason", reason)) if text}
    if not work:
        return Q()
    return Q(pk__in=Work.objects.filter(campaign=campaign, **work).values("pair"))


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


def load_rows(
    pairs: list[int], collection: Collection, campaign: Campaign | None, *, asked: str = ""
) -> list[dict[str, Any]]:
    """Load the table's rows, in the order of `pairs`, in five statements; people's state where it was asked for."""
    rows = Pair.objects.filter(pk__in=pairs).values(
        "pk",
        "query__external_id",
        "document__external_id",
        query_text=Left("query__text", 200),
        title=Left("document__title", 120),
        text=Left("document__text", 200),
    )
    texts: dict[int, dict[str, Any]] = {row["pk"]: dict(row) for row in rows}
    items = {item.pair_id: item for item in _items_in_state(asked).filter(pair__in=pairs).order_by("pk")}
    if campaign:
        work = Work.objects.filter(campaign=campaign, pair__in=pairs).values_list("pair", "state", "reason")
        states = {pair: (state, reason) for pair, state, reason in work}
    else:
        states = states_of(collection, pairs)
    for pair, item in items.items():
        # What people have is said as they have it: in the campaign's pairs that went to them, and where it is asked.
        if pair not in states or states[pair][0] in ("escalated", "open") or asked in ITEM_STATES:
            states[pair] = (item.state, item.reason)
    labels = {label.pair_id: label for label in Label.objects.filter(pair__in=pairs, aspect=None)}
    gold = reference_grades(collection, pairs)
    return [_build_row(texts[pk], states.get(pk, ("new", "")), items.get(pk), labels.get(pk), gold) for pk in pairs]


def _items_in_state(state: str) -> QuerySet[Item]:
    """Return the items in a state (open: those for an adjudicator, too); without a state all but withdrawn ones."""
    if state == "open":
        return Item.objects.filter(state__in=[Item.State.OPEN, Item.State.CONFLICT])
    return Item.objects.filter(state=state) if state in ITEM_STATES else Item.objects.exclude(state="withdrawn")


def _build_row(
    row: dict[str, Any], stands: tuple[str, str], item: Item | None, label: Label | None, gold: dict[int, int]
) -> dict[str, Any]:
    state, reason = stands
    return row | {
        "state": state,
        "reason": reason,
        "grade": label.grade if label else None,
        "origin": label.origin if label else "",
        "gold": gold.get(row["pk"]),
        "priority": item.priority if item and item.state in (Item.State.OPEN, Item.State.CONFLICT) else None,
    }
