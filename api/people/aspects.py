"""Aspects of queries: read them with their documents, revise them, keep and discard documents, weigh a blind sample."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from django.db import transaction
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from annotation.aspects import listing, second
from annotation.aspects.forms import MOST_PARTS
from annotation.aspects.reviews import blind_review_of, count_reviewed
from annotation.aspects.workspace import load_workspace
from annotation.audit_log.recording import record
from annotation.models.aspects import BlindSample
from annotation.permissions import Scope
from annotation.queue.annotators import explain_refusal
from api.authentication import may, scope_of
from api.idempotency import once
from api.models import AccessToken
from api.problems import CleanText, Given
from api.routes.pages import Cursor, Page, find_row
from corpus.aspects import documents, revising
from corpus.aspects.documents import NewPassage
from corpus.aspects.entries import LONGEST, MOST, Wording
from corpus.aspects.exchange import export_lines
from corpus.errors import BadInput
from corpus.models import Document
from corpus.models import Query as QueryRow

router = Router(tags=["aspects"])
JUDGE = AccessToken.TokenScope.JUDGE
LINES: dict[str, Any] = {
    "responses": {
        200: {"description": "The file.", "content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
    }
}
Name = Annotated[CleanText, Field(max_length=255)]
Importance = Annotated[int, Field(ge=1, le=5, description="1: peripheral, 5: dominant.")]
Importances = Annotated[dict[Name, Importance], Field(max_length=MOST)]
AspectAct = Literal[
    "add", "clarify", "weigh", "merge", "split", "remove", "take-over", "undo",
    "keep", "discard", "reopen", "join", "paste",
]  # fmt: skip


class WordingIn(Given):
    """Wording of an aspect: what it is about, and in one or two sentences why an answer needs it."""

    text: Annotated[CleanText, Field(max_length=LONGEST)] = ""
    rationale: Annotated[CleanText, Field(max_length=LONGEST)] = ""
    importance: Importance = 3


class AspectActIn(WordingIn):
    """Fields of an act on aspects or documents; docs/api.md says which act takes which."""

    base: int | None = Field(None, ge=0, lt=1 << 31, description="The revision that you read: refused if another is.")
    aspect: Name = ""
    aspects: list[Name] = Field([], max_length=MOST)
    importances: Importances = {}
    parts: list[WordingIn] = Field([], max_length=MOST_PARTS, description="Of split.")
    revision: int = Field(0, ge=0, lt=1 << 31, description="Of undo: the one that is taken back.")
    document: Name = ""
    documents: list[Name] = Field([], max_length=100, description="Of join: passages that follow each other.")
    reason: Annotated[CleanText, Field(max_length=5_000)] = ""
    title: Annotated[CleanText, Field(max_length=1_000)] = ""
    passage: Annotated[CleanText, Field(max_length=1_000_000)] = ""
    url: Annotated[CleanText, Field(max_length=2_000)] = Field("", description="Of paste: where the passage is from.")


class AspectQueryOut(Schema):
    """A query with the state of its aspects."""

    number: int
    id: str
    text: str = Field(description="Its beginning.")
    aspects: int
    kept: int
    to_review: int
    reviewed: bool | None = Field(description="By a second person; false: the aspects changed since.")


class AspectTotalsOut(Schema):
    """Counts of a collection's queries and aspects, and how many queries were reviewed."""

    queries: int
    decomposed: int
    aspects: int
    reviewed: int


class AspectOut(Schema):
    """An aspect with the documents that are kept under it."""

    id: str
    text: str
    rationale: str
    importance: int
    weight: float
    documents: list[str]


class DiscardedOut(Schema):
    """A document that supports no aspect, and why."""

    document: str
    reason: str


class AspectRevisionOut(Schema):
    """An act on the aspects of a query."""

    number: int
    act: str
    note: str
    author: str
    created_at: datetime


class QueryAspectsOut(Schema):
    """The aspects of a query and its documents. `revision` goes with an act as `base`."""

    number: int
    id: str
    revision: int
    aspects: list[AspectOut]
    to_review: list[str]
    discarded: list[DiscardedOut]
    undoable: int | None = Field(description="The revision that can be taken back.")
    history: list[AspectRevisionOut]


class SampleIn(Given):
    """A sample of queries whose aspects a second person weighs without seeing the weights."""

    size: int = Field(second.SIZE, ge=1, le=second.MOST)
    seed: int = Field(0, ge=0, lt=1 << 31)


class BlindAspectOut(Schema):
    """An aspect without its weight."""

    id: str
    text: str
    rationale: str


class WeighingOut(Schema):
    """A query of the sample to weigh, if any. `revision` goes with the importances."""

    revision: int | None
    query: str
    text: str
    aspects: list[BlindAspectOut]
    weighed: int
    drawn: int


class WeighedIn(Given):
    """The importance of each aspect of a query of the sample."""

    revision: int = Field(ge=1, lt=1 << 63)
    importances: Importances
    comment: Annotated[CleanText, Field(max_length=5_000)] = ""


class SampleOut(Schema):
    """Agreement of two persons on importances, where a sample was drawn."""

    drawn: int
    agreement: dict[str, Any] | None = Field(description="Kappa and percent agreement with their 95% intervals.")


@router.get("/collections/{slug:name}/aspects", auth=may("adjudicate"), response=Page[AspectQueryOut])
def list_aspect_queries(
    request: HttpRequest,
    name: str,
    state: Literal["", "none", "review", "done"] = "",
    after: Cursor = 0,
) -> Any:
    """List the queries with the state of their aspects, 50 a page; `state`: none, review (documents wait) or done."""
    found = listing.list_queries(scope_of(request).collection, state=state, after=after)
    items = [{**row, "number": row["id"], "id": row["external_id"]} for row in found["lines"]]
    return {"items": items, "next": found["after"]}


@router.get("/collections/{slug:name}/aspects/totals", auth=may("adjudicate"), response=AspectTotalsOut)
def read_aspect_totals(request: HttpRequest, name: str) -> Any:
    """Count the queries, those that are decomposed and reviewed, and their aspects."""
    collection = scope_of(request).collection
    return {**listing.count_totals(collection), "reviewed": count_reviewed(collection)}


# A POST although it changes nothing of the aspects: the audit log tells of every export.
@router.post("/collections/{slug:name}/aspects/export", auth=may("adjudicate"), openapi_extra=LINES)
def export_aspects(request: HttpRequest, name: str) -> Any:
    """Download the aspects file: queries, aspects and the documents under them as JSON lines."""
    scope = scope_of(request)
    record(scope, "aspects.exported")
    headers = {"Content-Disposition": f'attachment; filename="{scope.collection.name}-aspects.jsonl"'}
    lines = export_lines(scope.collection)
    return StreamingHttpResponse(lines, content_type="application/x-ndjson; charset=utf-8", headers=headers)


@router.get("/collections/{slug:name}/aspects/sample", auth=may("adjudicate"), response=SampleOut)
def read_sample(request: HttpRequest, name: str) -> Any:
    """Read how far two persons agree on the importances of the newest blind sample."""
    found = second.newest_sample(scope_of(request).collection)
    if found is None:
        return {"drawn": 0, "agreement": None}
    results = second.sample_results(found)
    return {"drawn": results["drawn"], "agreement": asdict(results["agreement"])}


@router.post("/collections/{slug:name}/aspects/sample", auth=may("adjudicate", JUDGE), response={201: SampleOut})
@decorate_view(once)
def draw_sample(request: HttpRequest, name: str, body: SampleIn) -> Any:
    """Draw a sample of queries whose aspects a second person weighs."""
    made = second.draw_sample(scope_of(request).member, size=body.size, seed=body.seed)
    return Status(201, {"drawn": len(made.revisions), "agreement": None})


@router.get("/collections/{slug:name}/aspects/sample/task", auth=may("adjudicate"), response=WeighingOut)
def read_weighing(request: HttpRequest, name: str) -> Any:
    """Read the next query of the sample that you weigh; nobody's weights are with it."""
    scope = scope_of(request)
    return _show_weighing(scope, second.newest_sample(scope.collection))


@router.post(
    "/collections/{slug:name}/aspects/sample/task",
    auth=may("adjudicate", JUDGE),
    response=WeighingOut,
)
@decorate_view(once)
def weigh_anew(request: HttpRequest, name: str, body: WeighedIn) -> Any:
    """Weigh a query of the sample; the next one comes with the answer."""
    scope = scope_of(request)
    require_admitted(scope)
    sample = second.newest_sample(scope.collection)
    if sample is None:
        raise BadInput(_("No sample was drawn yet."))
    second.submit_reading(sample, scope.member, body.revision, dict(body.importances), body.comment)
    return _show_weighing(scope, sample)


def _show_weighing(scope: Scope, sample: BlindSample | None) -> dict[str, Any]:
    task = second.next_task(sample, scope.member) if sample else None
    query = task.revision.query if task else None
    return {
        "revision": task.revision.pk if task else None,
        "query": query.external_id if query else "",
        "text": query.text if query else "",
        "aspects": task.entries if task else [],
        "weighed": sample.readings.count() if sample else 0,
        "drawn": len(sample.revisions) if sample else 0,
    }


@router.get("/collections/{slug:name}/aspects/{number}", auth=may("adjudicate"), response=QueryAspectsOut)
def read_aspects(request: HttpRequest, name: str, number: int) -> Any:
    """Read the aspects of a query with their documents."""
    return _show_query(scope_of(request), _find_query(request, number))


@router.post(
    "/collections/{slug:name}/aspects/{number}/{act}",
    auth=may("adjudicate", JUDGE),
    response=QueryAspectsOut,
)
@decorate_view(once)
def revise_aspects(request: HttpRequest, name: str, number: int, act: AspectAct, body: AspectActIn) -> Any:
    """Do an act on the aspects of a query, or on a document under them; each appends a revision, none overwrites."""
    scope, query = scope_of(request), _find_query(request, number)
    require_admitted(scope)
    # Before anything is written: a refusal afterwards would say that nothing happened.
    _require_own_weights(scope, query)
    with transaction.atomic():
        if not _revise(scope, query, act, body):
            _put_document(scope, query, act, body)
        record(scope, "aspects.revised", query=query.external_id, did=act)
    return _show_query(scope, query)


def require_admitted(scope: Scope) -> None:
    """Raise BadInput for a member whose work is paused: nothing of theirs would count."""
    if why := explain_refusal(scope.member):
        raise BadInput(why)


def _find_query(request: HttpRequest, number: int) -> QueryRow:
    rows = QueryRow.objects.select_related("collection").filter(collection=scope_of(request).collection)
    return find_row(rows.filter(is_current=True), number, _("Query not found."))


def _revise(scope: Scope, query: QueryRow, act: AspectAct, body: AspectActIn) -> bool:
    """Do an act on the set of aspects; False for an act on documents."""
    author, base = scope.member.assessor, body.base
    match act:
        case "add":
            revising.add_aspect(query, author, _wording(body), base=base)
        case "clarify":
            revising.clarify_aspect(query, author, body.aspect, _wording(body), base=base)
        case "weigh":
            revising.weigh_aspects(query, author, body.importances, base=base)
        case "merge":
            revising.merge_aspects(query, author, body.aspects, _wording(body), base=base)
        case "split":
            revising.split_aspect(query, author, body.aspect, [_wording(one) for one in body.parts], base=base)
        case "remove":
            revising.remove_aspect(query, author, body.aspect, base=base)
        case "take-over":
            revising.copy_earlier_aspects(query, author, base=base)
        case "undo":
            revising.undo_revision(query, author, body.revision)
        case _:
            return False
    return True


def _put_document(scope: Scope, query: QueryRow, act: AspectAct, body: AspectActIn) -> None:
    """Do an act on the query's documents."""
    author = scope.member.assessor
    match act:
        case "keep":
            documents.keep(query, author, _find_document(scope, body.document), body.aspects)
        case "discard":
            documents.discard(query, author, _find_document(scope, body.document), body.reason)
        case "reopen":
            documents.reopen(query, author, _find_document(scope, body.document))
        case "join":
            # A document that is named twice is joined once.
            found = [_find_document(scope, one) for one in dict.fromkeys(body.documents)]
            documents.join(query, author, found, body.aspect)
        case _:
            # Where a passage is from stays with its document, for whoever reviews or exports it.
            source = {"kind": "paste", **({"url": body.url} if body.url else {})}
            passage = NewPassage(body.title, body.passage, body.aspects, {"source": source})
            documents.add_passages(query, author, [passage])


def _wording(body: WordingIn) -> Wording:
    return Wording(body.text, body.rationale, body.importance)


def _find_document(scope: Scope, name: str) -> Document:
    found = Document.objects.filter(collection=scope.collection, external_id=name, is_current=True).first()
    if found is None:
        # In the request's own word: a document is a field of the body here, so this is no 404.
        raise BadInput(_("No document has the id “%(id)s”.") % {"id": name})
    return found


def _require_own_weights(scope: Scope, query: QueryRow) -> None:
    """Raise BadInput for a reviewer of the query who has not given their own weights yet."""
    if blind_review_of(scope.member, query):
        raise BadInput(_("You review this query: give your own weights first, before you see the others."))


def _show_query(scope: Scope, query: QueryRow) -> dict[str, Any]:
    _require_own_weights(scope, query)
    found = load_workspace(query)
    undoable = found["undoable"]
    return {
        "number": query.pk,
        "id": query.external_id,
        "revision": found["number"],
        "aspects": [_show_aspect(one) for one in found["aspects"]],
        "to_review": [card.document.external_id for card in found["to_review"]],
        "discarded": [{"document": card.document.external_id, "reason": card.reason} for card in found["discarded"]],
        "undoable": undoable.number if undoable else None,
        "history": [
            {
                "author": row.author.name,
                **{name: getattr(row, name) for name in ("number", "act", "note", "created_at")},
            }
            for row in found["history"]
        ],
    }


def _show_aspect(one: dict[str, Any]) -> dict[str, Any]:
    entry = one["entry"]
    shown = {name: getattr(entry, name) for name in ("id", "text", "rationale", "importance")}
    return {**shown, "weight": one["weight"], "documents": [card.document.external_id for card in one["cards"]]}
