"""What is known of comparisons: the sets of a collection, what a person is shown, and the answers that count."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db.models import Count, F, Q, QuerySet
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import clopper_pearson
from annotation.models import Membership
from annotation.models.comparisons import ComparisonLease, ComparisonSet
from annotation.models.snapshots import QuerySplit
from annotation.work.comparing import counting
from annotation.work.comparing.bradley_terry import Strength, fit
from annotation.work.comparing.counting import ComparisonOutcome, DocumentCounts, Hits, Kind, Sources
from annotation.work.comparing.drawing import count_couples, draw_couples
from annotation.work.comparing.options import ComparisonOptions
from annotation.work.judging.debates import DebateText, text_of
from annotation.work.judging.document import document_html, formatted_answers
from corpus.errors import BadOption
from corpus.models import Collection, Document, Query
from corpus.numbered import numbered_or_404
from store.sql import fetch_row, fetch_rows, read_sql

DRAW = read_sql(__file__, "draw_documents")
OPEN = read_sql(__file__, "read_open_comparisons")
OUTCOMES = read_sql(__file__, "read_outcomes")
PROGRESS = read_sql(__file__, "read_own_progress")
TIME = read_sql(__file__, "read_comparison_time")
TIMED = 30  # Answers with a time from which a median is used.
ASSUMED_SECONDS = 30.0


# Sets


def sets_of(collection: Collection) -> QuerySet[ComparisonSet]:
    """Return the sets of a collection, oldest first, with the number of comparisons and of people's answers."""
    answered = Count("comparisons__leases", filter=Q(comparisons__leases__is_open=False), distinct=True)
    counted = ComparisonSet.objects.filter(collection=collection).select_related("collection", "created_by")
    return counted.annotate(
        size=Count("comparisons", distinct=True), answered=answered, wanted=F("size") * F("people")
    ).order_by("number")


def find_set(collection: Collection, number: int) -> ComparisonSet:
    """Return a set of the collection by its number. Raises Http404."""
    return numbered_or_404(sets_of(collection), collection, number, _("Set of comparisons not found."))


def sets_at_work(collection: Collection) -> QuerySet[ComparisonSet]:
    """Return the sets that are neither paused nor ended, oldest first."""
    return ComparisonSet.objects.filter(collection=collection, paused_at=None, ended_at=None).order_by("number")


def draw_set(collection: Collection, options: ComparisonOptions) -> list[tuple[int, int]]:
    """Return the pairs of each comparison, query by query, in a seeded random order of the queries."""
    return [
        couple
        for _query, pairs in _draw_queries(collection, options)
        for couple in draw_couples(pairs, options.opponents, options.seed)
    ]


def estimate_set(_actor: Any, collection: Collection, options: ComparisonOptions) -> dict[str, Any]:
    """Return how many comparisons the options draw, and how many minutes people need for them."""
    drawn = _draw_queries(collection, options)
    comparisons = sum(count_couples(len(pairs), options.opponents) for _query, pairs in drawn)
    timed, median = fetch_row(TIME, collection=collection.pk)
    seconds = median if timed >= TIMED else ASSUMED_SECONDS
    return {
        "queries": len(drawn),
        "documents": sum(len(pairs) for _query, pairs in drawn),
        "comparisons": comparisons,
        "answers": comparisons * options.people,
        "seconds": round(seconds, 1),
        "is_assumed": timed < TIMED,
        "minutes": round(comparisons * options.people * seconds / 60),
    }


def _draw_queries(collection: Collection, options: ComparisonOptions) -> list[tuple[int, list[int]]]:
    """Return the drawn queries with their pairs. Raises BadOption for a list that does not exist."""
    names = None
    if options.query_list:
        split = QuerySplit.objects.filter(collection=collection, name=options.query_list).first()
        if split is None:
            raise BadOption("query_list", _("There is no list of this name."))
        names = split.query_ids
    rows = fetch_rows(
        DRAW,
        collection=collection.pk,
        relevant_from=collection.relevant_from,
        names=names,
        most=options.per_query,
        **options.model_dump(include={"documents", "queries", "seed"}),
    )
    return [(query, [pair for *_turn, pair in group]) for query, group in groupby(rows, key=lambda row: row[1])]


# People at work


@dataclass(frozen=True, slots=True)
class ComparedText:
    """A document as a side of a comparison."""

    title: DebateText
    document: DebateText
    html: SafeString
    is_formatted: bool


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """A comparison as a person sees it: the query, and two documents without names, labels or votes."""

    set: int
    seq: int
    query: DebateText
    shown_answers: list[tuple[DebateText, SafeString | str]]
    need: DebateText
    left: ComparedText
    right: ComparedText

    @property
    def heading(self) -> str:
        """The id of the query's element on the page."""
        return f"query-{self.set}-{self.seq}"

    @property
    def answers(self) -> list[tuple[DebateText, SafeString | str]]:
        """The reference answers, under the name that the template of a query reads."""
        return self.shown_answers


@dataclass(frozen=True, slots=True)
class OwnProgress:
    """A member's answers in the sets at work, and how many more comparisons there are for them."""

    answered: int
    left: int

    @property
    def total(self) -> int:
        """Number of comparisons, answered or left."""
        return self.answered + self.left


def leases_of(membership: Membership) -> QuerySet[ComparisonLease]:
    """Return the comparisons that a member has or had."""
    return ComparisonLease.objects.filter(membership=membership)


def open_comparisons(membership: Membership) -> list[ComparisonView]:
    """Return the member's open comparisons: the one to show, and those to keep ready behind it."""
    collection, form = membership.collection, membership.collection.document_format
    views = []
    rows = fetch_rows(OPEN, membership=membership.pk)
    for number, seq, swapped, query, answers, sources, instruction, *texts in rows:
        sides = [
            ComparedText(
                text_of(title),
                text_of(text),
                document_html(text, form=form, source=source),
                form == "markdown" or bool(source),
            )
            for title, text, source in (texts[:3], texts[3:])
        ]
        views.append(
            ComparisonView(
                number,
                seq,
                text_of(query),
                formatted_answers([text_of(answer) for answer in answers], sources, form),
                text_of(instruction or collection.instruction),
                *sides[:: -1 if swapped else 1],
            )
        )
    return views


def own_progress(membership: Membership) -> OwnProgress:
    """Return how far a member is. One statement."""
    return OwnProgress(*fetch_row(PROGRESS, membership=membership.pk, collection=membership.collection_id))


def may_undo(membership: Membership) -> bool:
    """Return whether the member has an answer in a set that has not ended."""
    return leases_of(membership).filter(is_open=False, comparison__set__ended_at=None).exists()


# Results


def outcomes_of(comparison_set: ComparisonSet) -> list[ComparisonOutcome]:
    """Return the answers of a set that count, each assessor's newest, in the order of comparisons and assessors."""
    return read_outcomes(comparison_set.collection, comparison_set)


def read_outcomes(collection: Collection, comparison_set: ComparisonSet | None = None) -> list[ComparisonOutcome]:
    """Return the answers that count in all sets of a collection, or in one."""
    only = comparison_set.pk if comparison_set else None
    return [ComparisonOutcome(*row) for row in fetch_rows(OUTCOMES, collection=collection.pk, set=only)]


@dataclass(frozen=True, slots=True)
class ComparedDocument:
    """A document with its strength and the answers about it."""

    id: str
    title: str
    strength: Strength
    counts: DocumentCounts


@dataclass(frozen=True, slots=True)
class ComparedQuery:
    """A query with its compared documents, the strongest first."""

    key: int
    id: str
    text: str
    documents: list[ComparedDocument]
    answers: int


def share_of(hits: Hits) -> Statistic:
    """Return a share with its exact interval; undefined where there is no answer."""
    if not hits.total:
        return Statistic(None, None, None, 0, _("no answer yet"))
    return Statistic(hits.hits / hits.total, *clopper_pearson(*hits), hits.total, None)


def describe_results(outcomes: Sequence[ComparisonOutcome]) -> list[dict[str, Any]]:
    """Return the figures of people and of judges: answers, agreement, decided, equal, both bad, left preferred."""
    rows = []
    kinds: tuple[tuple[Kind, Sources], ...] = (("person", "people"), ("judge", "machine"))
    for kind, sources in kinds:
        answers = counting.choose_sources(outcomes, sources)
        if answers or kind == "person":
            rows.append(
                {
                    "kind": kind,
                    "answers": len(answers),
                    "assessors": len({answer.assessor_id for answer in answers}),
                    "agreement": share_of(counting.count_agreement(answers)),
                    "decided": share_of(counting.count_outcome(answers, counting.FIRST, counting.SECOND)),
                    "equal": share_of(counting.count_outcome(answers, counting.EQUAL)),
                    "both_bad": share_of(counting.count_outcome(answers, counting.BOTH_BAD)),
                    # Judges see both orders of every comparison.
                    "left": share_of(counting.count_left(answers if kind == "person" else ())),
                }
            )
    return rows


def list_queries(
    outcomes: Sequence[ComparisonOutcome], sources: Sources = "resolved"
) -> dict[int, list[ComparisonOutcome]]:
    """Return the answers by query, in the order of the set."""
    queries: dict[int, list[ComparisonOutcome]] = defaultdict(list)
    for outcome in counting.choose_sources(outcomes, sources):
        queries[outcome.query_id].append(outcome)
    return dict(queries)


def rank_queries(queries: dict[int, list[ComparisonOutcome]]) -> list[ComparedQuery]:
    """Return the queries with the strengths of their documents. Two statements."""
    texts = Query.objects.in_bulk(queries)
    keys = {key for answers in queries.values() for answer in answers for key in (answer.first_id, answer.second_id)}
    documents = {row.pk: row for row in Document.objects.filter(pk__in=keys).only("external_id", "title")}
    ranked = []
    for query, answers in queries.items():
        counts = counting.count_by_document(answers)
        rows = [
            ComparedDocument(documents[key].external_id, documents[key].title, strength, counts[key])
            for key, strength in fit(counting.count_wins(answers)).items()
        ]
        rows.sort(key=lambda row: (-row.strength.estimate, row.id))
        ranked.append(ComparedQuery(query, texts[query].external_id, texts[query].text, rows, len(answers)))
    return ranked
