"""Pages of aspects: the list of queries, the workspace of a query, and every action in it."""

import re

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.work.aspects import drafts, forms, listing
from annotation.work.aspects.reviews import count_reviewed
from annotation.work.aspects.workspace import incoming_of, load_workspace
from annotation.work.queue.annotators import closed, why_closed
from corpus.aspects import documents, revising
from corpus.aspects.documents import NewPassage
from corpus.aspects.entries import ANCHORS
from corpus.aspects.exchange import export_lines
from corpus.errors import BadInput
from corpus.models import Document, Query
from corpus.models.aspects import AspectReview, ReviewStep

# Suggested reasons for discarding a document; any other text is accepted too.
REASONS = [
    gettext_lazy("On topic, but states nothing that an aspect needs"),
    gettext_lazy("Off topic"),
    gettext_lazy("A heading, a menu or a list of references"),
    gettext_lazy("Repeats another passage"),
    gettext_lazy("Not verifiable or not credible"),
]


@action("adjudicate")
@require_GET
def queries(request: HttpRequest, scope: Scope) -> HttpResponse:
    """List the queries of a collection with the state of their aspects and passages."""
    parameters = request.GET
    search = parameters.get("q", "").strip()[:200]
    state = parameters.get("state", "") if parameters.get("state") in listing.STATES else ""
    # Longer numbers are no ids, and PostgreSQL would refuse them.
    cursors = {name: parameters.get(name, "") for name in ("after", "before")}
    cursor_ids = {name: int(value) for name, value in cursors.items() if re.fullmatch("[0-9]{1,17}", value)}
    context = {
        "scope": scope,
        "q": search,
        "state": state,
        "totals": listing.count_totals(scope.collection),
        "reviewed": count_reviewed(scope.collection),
        "listing": listing.list_queries(scope.collection, search=search, state=state, **cursor_ids),
    }
    return render(request, "aspects/queries.html", context)


@action("adjudicate")
@require_POST
def export(request: HttpRequest, scope: Scope) -> StreamingHttpResponse:
    """Download the aspects file, as the command aspects exports it."""
    record(scope, "aspects.exported")
    answer = StreamingHttpResponse(export_lines(scope.collection), content_type="application/x-ndjson; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{scope.collection.name}-aspects.jsonl"'
    return answer


@action("adjudicate")
@require_GET
def workshop(request: HttpRequest, scope: Scope, query: int) -> HttpResponse:
    """Show the workspace of a query."""
    query_row = query_of(scope, query)
    # A reviewer of the query must give their own weights before they see the first ones.
    weights = ReviewStep.objects.filter(review=OuterRef("pk"), kind=ReviewStep.Kind.WEIGHTS)
    own = AspectReview.objects.filter(query=query_row, reviewer=scope.member.assessor, state=AspectReview.State.OPEN)
    if review := own.exclude(Exists(weights)).first():
        return redirect("aspect_review", scope.collection.name, review.pk)
    return render_workspace(request, scope, query_row, focus=request.GET.get("focus", ""))


@action("adjudicate")
@require_GET
def incoming(request: HttpRequest, scope: Scope, query: int) -> HttpResponse:
    """Show the passage drafts of a query, for polling."""
    query_row = query_of(scope, query)
    context = {"scope": scope, "query": query_row, "desk": {"incoming": incoming_of(query_row)}}
    return render(request, "aspects/_incoming.html", context)


def query_of(scope: Scope, query: int) -> Query:
    """Return a current query of the collection. Raises Http404."""
    return get_object_or_404(
        Query.objects.select_related("collection"), pk=query, collection=scope.collection, is_current=True
    )


def render_workspace(
    request: HttpRequest, scope: Scope, query: Query, *, focus: str = "", problem: str = "", failed: str = ""
) -> HttpResponse:
    """Render a query's workspace, only its body for HTMX; a problem is answered with 422 and keeps what was typed."""
    is_htmx = bool(request.headers.get("HX-Request"))
    # HTMX replaces only the message, so that everything typed stays on the page.
    if problem and is_htmx:
        answer = render(request, "aspects/_problem.html", {"problem": problem}, status=422)
        answer["HX-Retarget"], answer["HX-Reswap"] = "#problem", "innerHTML"
        return answer
    context = {
        "scope": scope,
        "desk": load_workspace(query),
        "query": query,
        "anchors": sorted(ANCHORS.items()),
        "reasons": REASONS,
        "parts": range(1, forms.MOST_PARTS + 1),
        "focus": focus,
        "problem": problem,
        "failed": failed,
        "typed": forms.typed_values(request.POST),
    }
    template = "aspects/_page.html" if is_htmx else "aspects/page.html"
    return render(request, template, context, status=422 if problem else 200)


@action("adjudicate")
@require_POST
def act(request: HttpRequest, scope: Scope, query: int, act: str) -> HttpResponse:
    """Perform an action on a query's aspects or documents, and show its workspace."""
    query_row = query_of(scope, query)
    try:
        require_active(scope)
        with transaction.atomic():
            base = forms.read_row_number(request.POST, "base") if "base" in request.POST else None
            focus = _revise_aspects(request, scope, query_row, act, base) or _put_documents(
                request, scope, query_row, act
            )
            record(scope, "aspects.revised", query=query_row.external_id, did=act)
    except BadInput as error:
        return render_workspace(request, scope, query_row, problem=str(error), failed=act)
    if request.headers.get("HX-Request"):
        return render_workspace(request, scope, query_row, focus=focus)
    return show_workshop(scope, query_row, focus)


def show_workshop(scope: Scope, query: Query, focus: str) -> HttpResponseRedirect:
    """Redirect to the workspace of a query, with the focus on one of its elements."""
    address = reverse("aspects_workshop", args=[scope.collection.name, query.pk])
    return HttpResponseRedirect(f"{address}?focus={focus}#{focus}")


def require_active(scope: Scope) -> None:
    """Raise BadInput for a member whose work is paused."""
    if reason := why_closed(closed(scope.member)):
        raise BadInput(reason)


def _revise_aspects(request: HttpRequest, scope: Scope, query: Query, act: str, base: int | None) -> str | None:
    """Revise the aspects of revision `base`; return the id of the element to focus, None for any other action."""
    post, author = request.POST, scope.member.assessor
    name = forms.read_text(post, "aspect")
    match act:
        case "add":
            revising.add_aspect(query, author, forms.read_wording(post), base=base)
            return "add-text"
        case "clarify":
            revising.clarify_aspect(query, author, name, forms.read_wording(post, weighed=False), base=base)
            return f"aspect-{name}"
        case "weigh":
            revising.weigh_aspects(query, author, forms.read_importances(post), base=base)
            return "weights"
        case "merge":
            revising.merge_aspects(query, author, post.getlist("aspects"), forms.read_wording(post), base=base)
        case "split":
            # Parts without a text are left out.
            parts = [f"_{n}" for n in range(1, forms.MOST_PARTS + 1) if forms.read_text(post, f"text_{n}").strip()]
            wordings = [forms.read_wording(post, part) for part in parts]
            revising.split_aspect(query, author, name, wordings, base=base)
        case "remove":
            revising.remove_aspect(query, author, name, base=base)
        case "take-over":
            revising.copy_earlier_aspects(query, author, base=base)
        case "undo":
            revising.undo_revision(query, author, forms.read_row_number(post, "number"))
            return "undo"
        case _:
            return None
    return "aspects-h"


def _put_documents(request: HttpRequest, scope: Scope, query: Query, act: str) -> str:
    """Perform an action on the query's documents; return the id of the element to focus. Raises Http404."""
    post, author = request.POST, scope.member.assessor
    aspects = post.getlist("aspects")
    match act:
        case "keep":
            documents.keep(query, author, _get_document(request, scope), aspects)
            return "next-card"
        case "discard":
            documents.discard(query, author, _get_document(request, scope), forms.read_text(post, "reason"))
            return "next-card"
        case "reopen":
            document = _get_document(request, scope)
            documents.reopen(query, author, document)
            return f"card-{document.pk}"
        case "join":
            document_ids = [int(value) for value in post.getlist("documents") if value.isdecimal() and len(value) < 18]
            joined = list(Document.objects.filter(pk__in=document_ids, collection=scope.collection, is_current=True))
            name = forms.read_text(post, "aspect")
            documents.join(query, author, joined, name)
            return f"aspect-{name}"
        case "paste":
            address = forms.read_text(post, "source").strip()[:2000]
            source = {"kind": "paste", **({"url": address} if address else {})}
            title, text = forms.read_text(post, "title"), forms.read_text(post, "passage")
            documents.add_passages(query, author, [NewPassage(title, text, aspects, {"source": source})])
            return "passages-h"
        case "bring":
            name = forms.read_text(post, "document").strip()
            document_row = Document.objects.filter(
                collection=scope.collection, external_id=name, is_current=True
            ).first()
            if document_row is None:
                raise BadInput(_("No document has the id “%(id)s”.") % {"id": name})
            documents.keep(query, author, document_row, aspects)
            return "passages-h"
        case "fetch":
            drafts.request_page(scope.member, query, forms.read_text(post, "url"))
            return "incoming-h"
    raise Http404("Unknown action.")


def _get_document(request: HttpRequest, scope: Scope) -> Document:
    return get_object_or_404(
        Document, pk=forms.read_row_number(request.POST, "document"), collection=scope.collection, is_current=True
    )
