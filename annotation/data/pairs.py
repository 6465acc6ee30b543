"""The list of pairs: those that match the filters of the URL, and a page of them with their states."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from datetime import time as clock
from typing import Any
from urllib.parse import urlencode

from django.db.models import BooleanField, Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Left
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.access.permissions import Scope
from annotation.agreement.grade_matrix import pairs_where
from annotation.data.pair_filters import USUAL, PairFilters, choose_columns, describe_route
from annotation.data.pair_order import FIRST_PAGE, PageKey, list_keys
from annotation.models import Assignment
from annotation.models.threads import Thread
from annotation.quality.policies.cells import of_cell
from annotation.work.queue.skipped import skipped_by_all
from annotation.work.queue.statements import one_array
from corpus.labels import reference_grades
from corpus.models import Assessor, Collection, CurrentJudgment, Document, Item, Label, Pair, Query
from corpus.models.search import DocumentTerms
from corpus.numbered import numbered_or_404
from corpus.search import full_text
from judges.campaigns.pair_states import PairState, states_of
from judges.models import Audit, Campaign, Work
from store.sql import fetch_rows, read_sql

PAGE = 50
COUNTED = 1000  # Totals are exact up to here; beyond, "more than".
LISTED_DOCUMENTS = 20_000  # Up to this many matching documents, pairs are looked up by the documents' ids.
ITEM_STATES = frozenset({Item.State.OPEN, Item.State.CONFLICT, Item.State.SETTLED})
PEOPLES = [PairState.OPEN.value, PairState.SETTLED.value]
CHOICES = read_sql(__file__, "list_choices")
# Each value twice: null matches every pair.
IN_STATE = """
SELECT pair FROM pair_states(ARRAY[%s::bigint])
WHERE (%s::text[] IS NULL OR state = ANY(%s)) AND (%s::text IS NULL OR reason = %s)
  AND (%s::int IS NULL OR verdict = %s) AND (%s::int IS NULL OR agreed = %s)
"""


def load_page(
    collection: Collection,
    filters: PairFilters,
    *,
    campaign: Campaign | None,
    key: PageKey = FIRST_PAGE,
    columns: Sequence[str] = (),
) -> dict[str, Any]:
    """Load a page in a fixed number of statements, with states in a campaign or (None) in the whole collection."""
    matches = matching_pairs(collection, filters, campaign=campaign)
    # One more than a page tells whether there is another, without counting a million pairs.
    keys = list_keys(matches, filters.sort, key, PAGE + 1, collection=collection, campaign=campaign)
    more, keys = len(keys) > PAGE, keys[:PAGE][:: -1 if key.backwards else 1]
    earlier, later = (more, True) if key.backwards else (key.pair > 0, more)
    total = matches.order_by()[: COUNTED + 1].count()
    return {
        "rows": load_rows([pk for pk, _ in keys], collection, campaign, requested_state=filters.state, columns=columns),
        "before": _write_key("before", keys[0]) if keys and earlier else "",
        "after": _write_key("after", keys[-1]) if keys and later else "",
        "total": total,
        "many": total > COUNTED,
    }


def _write_key(name: str, key: tuple[int, Any]) -> str:
    """Return the query string that makes a page begin at a pair."""
    pk, value = key
    return urlencode({name: pk} | ({"key": value} if value != "" else {}))


def matching_pairs(collection: Collection, filters: PairFilters, *, campaign: Campaign | None) -> QuerySet[Pair]:
    """Return the pairs that match all filters; none where a filter's value is not valid.

    Pairs that were only named by imported grades are no candidates for judging, so they are listed only with `gold`.
    """
    pairs = Pair.objects.filter(collection=collection)
    if filters.a and filters.b:
        cell = pairs_where(collection, filters.a, filters.b, filters.cell or "disagree").tolist()
        pairs = pairs.filter(pk__in=one_array(cell))
    elif not filters.gold:
        pairs = pairs.filter(is_candidate=True)
    if filters.stratum:
        of_campaigns = {"campaign": campaign} if campaign else {"campaign__collection": collection}
        pairs = pairs.filter(pk__in=Work.objects.filter(stratum=filters.stratum, **of_campaigns).values("pair"))
    if filters.route:
        audits = Audit.objects.filter(stratum=filters.route, campaign__collection=collection)
        pairs = pairs.filter(pk__in=(audits.filter(campaign=campaign) if campaign else audits).values("pair"))
    if filters.gold:
        gold = Exists(CurrentJudgment.objects.filter(pair=OuterRef("pk"), assessor__kind=Assessor.Kind.REFERENCE))
        pairs = pairs.filter({"yes": Q(gold), "no": ~Q(gold)}.get(filters.gold, Q(pk__in=[])))
    labels = Label.objects.filter(pair=OuterRef("pk"), aspect=None)
    by_label = Q()
    if filters.label == "none":
        by_label &= ~Q(Exists(labels))
    elif filters.label:
        by_label &= Q(Exists(labels.filter(grade=int(filters.label)))) if filters.label.isdecimal() else Q(pk__in=[])
    if filters.origin:
        by_label &= Q(Exists(labels.filter(origin=filters.origin)))
    unanswered = Thread.objects.filter(collection=collection, waits=True).values("pair")
    by_answer = {"": Q(), "waiting": Q(pk__in=unanswered)}.get(filters.answer, Q(pk__in=[]))
    return pairs.filter(
        # Queries and documents are looked up first and pairs by their keys: a tenth of a second for a million
        # pairs, where one condition over three tables takes seconds.
        _query_condition(collection, filters.q) | _document_condition(collection, filters.q) if filters.q else Q(),
        _state_condition(collection, filters, campaign),
        of_cell(campaign, filters.cross),
        by_label,
        by_answer,
        _judged_condition(collection, filters),
    )


def get_campaign(collection: Collection, number: str) -> Campaign | None:
    """Return the campaign of a number; None for no number: the whole collection. Raises Http404."""
    return numbered_or_404(Campaign.objects, collection, number, _("Campaign not found.")) if number else None


def columns_of(scope: Scope) -> list[str]:
    """Return the columns that a person sees in the table beside query and document."""
    columns = choose_columns(scope.user.display.get("pair_columns", USUAL))
    return columns if scope.may_admin else [column for column in columns if column != "people"]


def read_filters(scope: Scope, parameters: Any) -> PairFilters:
    """Read the filters that a reader may use from a query string."""
    filters = PairFilters.read(parameters)
    if scope.may_admin:
        return filters
    # Others may not know who judged, so the filters that name somebody are left out.
    return replace(filters, person="", a="", b="", cell="")


def list_choices(collection: Collection, campaign: Campaign | None) -> dict[str, list[tuple[str, str]]]:
    """Return what filters offer, as (value, words): campaigns, the newest first, people, and routes of labels."""
    rows = fetch_rows(CHOICES, collection=collection.pk, campaign=campaign and campaign.pk)
    campaigns = {int(number): policy for kind, number, policy in rows if kind == "campaign"}
    return {
        "campaigns": [(str(number), campaigns[number]) for number in sorted(campaigns, reverse=True)],
        "people": [(name, name) for name in sorted(name for kind, name, _rest in rows if kind == "person")],
        "routes": sorted((key, describe_route(key, int(voters))) for kind, key, voters in rows if kind == "route"),
    }


def _query_condition(collection: Collection, q: str) -> Q:
    queries = Query.objects.filter(collection=collection).filter(Q(text__icontains=q) | Q(external_id=q))
    keys = list(queries.values_list("pk", flat=True)[: COUNTED + 1])
    if len(keys) > COUNTED:
        # With the OR, PostgreSQL hashes the subquery and walks pairs by their key: the page fills at once.
        return Q(query__in=queries.values("pk"))
    return Q(query__in=keys) if keys else Q(pk__in=[])


def _document_condition(collection: Collection, q: str) -> Q:
    documents = list(Document.objects.filter(collection=collection, external_id=q).values_list("pk", flat=True))
    if search := full_text.write_search(q):
        # A cast instead of to_tsquery, whose parser would split some of our terms.
        matching = RawSQL("terms @@ %s::tsquery", [search], output_field=BooleanField())
        matches = DocumentTerms.objects.filter(matching, collection=collection.pk)
        documents += matches.values_list("pk", flat=True)[: LISTED_DOCUMENTS + 1]
        if len(documents) > LISTED_DOCUMENTS:
            # With so many matches a walk over pairs by their key soon fills the page.
            return Q(Exists(matches.filter(document=OuterRef("document"))))
    return Q(document__in=one_array(documents)) if documents else Q(pk__in=[])


def _judged_condition(collection: Collection, filters: PairFilters) -> Q:
    """Return the condition of pairs that a person judged, or with `flag` flagged, in this way."""
    if not (filters.person or filters.since or filters.until or filters.comment or filters.flag):
        return Q()
    if filters.comment not in ("", "yes") or filters.flag not in ("", "yes"):
        return Q(pk__in=[])
    time, comment, member = (
        ("ended_at", "flag_note", "membership") if filters.flag else ("created_at", "comment", "assessor__membership")
    )
    condition = ~Q(**{comment: ""}) if filters.comment else Q()
    if filters.person:
        condition &= Q(**{f"{member}__user__username": filters.person})
    for name, lookup in (("since", "gte"), ("until", "lt")):
        if text := getattr(filters, name):
            try:
                day = date.fromisoformat(text) + timedelta(days=lookup == "lt")
            except (ValueError, OverflowError):
                return Q(pk__in=[])
            condition &= Q(**{f"{time}__{lookup}": timezone.make_aware(datetime.combine(day, clock.min))})
    if filters.flag:
        flags = Assignment.objects.filter(condition, flagged=True, item__collection=collection)
        return Q(pk__in=flags.values("item__pair"))
    people = CurrentJudgment.objects.filter(assessor__collection=collection, assessor__kind=Assessor.Kind.PERSON)
    return Q(pk__in=people.filter(condition, aspect=None).values("pair"))


def _state_condition(collection: Collection, filters: PairFilters, campaign: Campaign | None) -> Q:
    state, reason = filters.state, filters.reason
    if state == "new":
        return ~Q(Exists(Work.objects.filter(pair=OuterRef("pk"))))
    if state == "skipped":
        return Q(pk__in=skipped_by_all(collection).values("pair"))
    if state == "assigned":
        assignments = Assignment.objects.filter(state=Assignment.State.OPEN, item__collection=collection)
        return Q(pk__in=assignments.values("item__pair"))
    if (state in ITEM_STATES and (campaign or state != PairState.SETTLED)) or (
        reason == Item.Reason.AUDIT and not state
    ):
        items = (_items_in_state(state) if state else Item.objects.all()).filter(collection=collection)
        items = items.filter(reason=reason) if reason else items
        items = items.filter(campaign=campaign.pk) if campaign is not None else items
        return Q(pk__in=items.values("pair"))
    if campaign is None:
        # The pair's state in the whole collection (judges.campaigns.pair_states).
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


def load_rows(
    pairs: list[int],
    collection: Collection,
    campaign: Campaign | None,
    *,
    requested_state: str = "",
    columns: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Load the table's rows, in the order of `pairs`, in five statements, or six where `columns` name people or times.

    A pair's state is its task's where people have it and where `requested_state` is a task's state.
    """
    rows = Pair.objects.filter(pk__in=pairs).values(
        "pk",
        "query__external_id",
        "document__external_id",
        query_text=Left("query__text", 300),
        title=Left("document__title", 300),
        text=Left("document__text", 300),
    )
    texts: dict[int, dict[str, Any]] = {row["pk"]: dict(row) for row in rows}
    items = {item.pair_id: item for item in _items_in_state(requested_state).filter(pair__in=pairs).order_by("pk")}
    if campaign:
        work = Work.objects.filter(campaign=campaign, pair__in=pairs).values_list("pair", "state", "reason")
        states = {pair: (state, reason) for pair, state, reason in work}
    else:
        states = states_of(collection, pairs)
    for pair, item in items.items():
        if pair not in states or states[pair][0] in ("escalated", "open") or requested_state in ITEM_STATES:
            states[pair] = (item.state, item.reason)
    labels = {label.pair_id: label for label in Label.objects.filter(pair__in=pairs, aspect=None)}
    gold = reference_grades(collection, pairs)
    judged: dict[int, tuple[list[str], datetime]] = {}
    if {"people", "judged"} & set(columns):
        people = CurrentJudgment.objects.filter(pair__in=pairs, aspect=None, assessor__kind=Assessor.Kind.PERSON)
        for pair, name, at in people.order_by("pk").values_list("pair", "assessor__name", "created_at"):
            names, latest = judged.get(pair, ([], at))
            judged[pair] = (names if name in names else [*names, name], max(latest, at))
    table = []
    for pk in pairs:
        state, reason = states.get(pk, ("new", ""))
        task, label = items.get(pk), labels.get(pk)
        is_waiting = task is not None and task.state in (Item.State.OPEN, Item.State.CONFLICT)
        row: dict[str, Any] = {
            "state": state,
            "reason": reason,
            "grade": label.grade if label else None,
            "origin": label.origin if label else "",
            "gold": gold.get(pk),
            "priority": task.priority if task and is_waiting else None,
        }
        row["people"], row["judged"] = judged.get(pk, ([], None))
        table.append(texts[pk] | row)
    return table


def _items_in_state(state: str) -> QuerySet[Item]:
    """Return the tasks in a state ("open" includes conflicts); without a task's state, all but withdrawn tasks."""
    if state == "open":
        return Item.objects.filter(state__in=[Item.State.OPEN, Item.State.CONFLICT])
    return Item.objects.filter(state=state) if state in ITEM_STATES else Item.objects.exclude(state="withdrawn")
