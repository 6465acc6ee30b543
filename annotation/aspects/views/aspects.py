"""The workshop of aspects: the list of queries, the desk of one query, and every act on it."""

from collections.abc import Callable

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation.aspects import drafts, forms, listing
from annotation.aspects.workspace import incoming_of, load_workspace
from annotation.audit_log.recording import record
from annotation.permissions import Scope, action
from annotation.queue.annotators import explain_refusal
from corpus.aspects import documents, revising
from corpus.aspects.documents import NewPassage
from corpus.aspects.entries import ANCHORS
from corpus.aspects.exchange import export_lines
from corpus.errors import BadInput
from corpus.models import Document, Query

# Does an act on a query and returns the id of the element that has the focus next. The number is that of the revision
# that the person saw: an act on an older one is refused.
Handler = Callable[[HttpRequest, Scope, Query, int | None], str]


@action("adjudicate")
@require_GET
def queries(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Every query, how far it is, and the ways to it."""
    asked = request.GET
    words = asked.get("q", "").strip()[:200]
    state = asked.get("state", "") if asked.get("state") in listing.STATES else ""
    keys = {name: _parse_key(asked.get(name, "")) for name in ("after", "before")}
    context = {
        "scope": scope,
        "section": "aspects",
        "q": words,
        "state": state,
        "totals": listing.count_totals(scope.collection),
        "listing": listing.list_queries(scope.collection, q=words, state=state, **keys),
    }
    return render(request, "aspects/queries.html", context)


def _parse_key(value: str) -> int:
    return int(value) if value.isascii() and value.isdigit() and len(value) < 18 else 0


@action("adjudicate")
@require_POST
def export(request: HttpRequest, scope: Scope) -> StreamingHttpResponse:
    """The aspects file, as `aspects NAME export F` writes it."""
    record(scope, "aspects.exported")
    answer = StreamingHttpResponse(export_lines(scope.collection), content_type="application/x-ndjson; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{scope.collection.name}-aspects.jsonl"'
    return answer


@action("adjudicate")
@require_GET
def workshop(request: HttpRequest, scope: Scope, query: int) -> HttpResponse:
    """The desk of one query; with HX-Request its body alone, for news of pages that are fetched."""
    return render_workspace(request, scope, query_of(scope, query), focus=request.GET.get("focus", ""))


@action("adjudicate")
@require_GET
def incoming(request: HttpRequest, scope: Scope, query: int) -> HttpResponse:
    """News of passages on their way in."""
    found = query_of(scope, query)
    context = {"scope": scope, "query": found, "desk": {"incoming": incoming_of(found)}}
    return render(request, "aspects/_incoming.html", context)


def query_of(scope: Scope, query: int) -> Query:
    """A current query of the collection, or 404."""
    return get_object_or_404(
        Query.objects.select_related("collection"), pk=query, collection=scope.collection, is_current=True
    )


def render_workspace(
    request: HttpRequest, scope: Scope, query: Query, *, focus: str = "", problem: str = "", failed: str = ""
) -> HttpResponse:
    """The page, or its body for HTMX. With a problem: 422, and what was typed into the form of `failed` is kept."""
    part = bool(request.headers.get("HX-Request"))
    if problem and part:
        answer = render(request, "aspects/_problem.html", {"problem": problem}, status=422)
        answer["HX-Retarget"], answer["HX-Reswap"] = "#problem", "innerHTML"
        return answer
    context = {
        "scope": scope,
        "section": "aspects",
        "desk": load_workspace(query),
        "query": query,
        "anchors": [(value, ANCHORS[value]) for value in sorted(ANCHORS)],
        "reasons": discard_reasons(),
        "parts": range(1, forms.MOST_PARTS + 1),
        "focus": focus,
        "problem": problem,
        "failed": failed,
        "typed": forms.typed_values(request.POST),
    }
    template = "aspects/_page.html" if part else "aspects/page.html"
    return render(request, template, context, status=422 if problem else 200)


def discard_reasons() -> list[str]:
    """Why a document is discarded, as suggestions; any other words will do."""
    return [
        _("It is on the topic, but states nothing that an aspect needs"),
        _("It is off the topic"),
        _("It is a heading, a menu or a list of references"),
        _("It repeats another passage"),
        _("It cannot be verified or is not credible"),
    ]


@action("adjudicate")
@require_POST
def act(request: HttpRequest, scope: Scope, query: int, act: str) -> HttpResponse:
    """One act on a query's aspects or documents; the desk comes back with it done."""
    handler = HANDLERS.get(act)
    if handler is None:
        raise Http404("No such act.")
    found = query_of(scope, query)
    try:
        may_work(scope)
        with transaction.atomic():
            base = forms.read_row_number(request.POST, "base") if "base" in request.POST else None
            focus = handler(request, scope, found, base)
            record(scope, "aspects.revised", query=found.external_id, did=act)
    except BadInput as wrong:
        return render_workspace(request, scope, found, problem=str(wrong), failed=act)
    if request.headers.get("HX-Request"):
        return render_workspace(request, scope, found, focus=focus)
    address = reverse("aspects_workshop", args=[scope.collection.name, query])
    return redirect(f"{address}?focus={focus}#{focus}")


def may_work(scope: Scope) -> None:
    """BadInput for a member whose work is paused: nothing of theirs would count."""
    if why := explain_refusal(scope.member):
        raise BadInput(why)


def _add_aspect(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    revising.add_aspect(query, scope.member.assessor, forms.read_wording(request.POST), base=base)
    return "add-text"


def _clarify_aspect(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    name = forms.read_text(request.POST, "aspect")
    wording = forms.read_wording(request.POST, weighed=False)
    revising.clarify_aspect(query, scope.member.assessor, name, wording, base=base)
    return f"aspect-{name}"


def _weigh_aspects(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    revising.weigh_aspects(query, scope.member.assessor, forms.read_importances(request.POST), base=base)
    return "weights"


def _merge_aspects(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    names = request.POST.getlist("aspects")
    revising.merge_aspects(query, scope.member.assessor, names, forms.read_wording(request.POST), base=base)
    return "aspects-h"


def _split_aspect(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    name = forms.read_text(request.POST, "aspect")
    revising.split_aspect(query, scope.member.assessor, name, forms.read_parts(request.POST), base=base)
    return "aspects-h"


def _remove_aspect(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    revising.remove_aspect(query, scope.member.assessor, forms.read_text(request.POST, "aspect"), base=base)
    return "aspects-h"


def _adopt_earlier_set(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    revising.copy_earlier_aspects(query, scope.member.assessor, base=base)
    return "aspects-h"


def _undo_revision(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    revising.undo_revision(query, scope.member.assessor, forms.read_row_number(request.POST, "number"))
    return "undo"


def _keep_document(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    documents.keep(query, scope.member.assessor, _get_document(request, scope), request.POST.getlist("aspects"))
    return "next-card"


def _discard_document(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    reason = forms.read_text(request.POST, "reason")
    documents.discard(query, scope.member.assessor, _get_document(request, scope), reason)
    return "next-card"


def _reopen_document(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    document = _get_document(request, scope)
    documents.reopen(query, scope.member.assessor, document)
    return f"card-{document.pk}"


def _join_passages(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    chosen = [int(value) for value in request.POST.getlist("documents") if value.isdecimal() and len(value) < 18]
    found = list(Document.objects.filter(pk__in=chosen, collection=scope.collection, is_current=True))
    name = forms.read_text(request.POST, "aspect")
    documents.join(query, scope.member.assessor, found, name)
    return f"aspect-{name}"


def _paste_passage(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    post = request.POST
    address = forms.read_text(post, "source").strip()[:2000]
    source = {"kind": "paste", **({"url": address} if address else {})}
    new = NewPassage(
        forms.read_text(post, "title"), forms.read_text(post, "passage"), post.getlist("aspects"), {"source": source}
    )
    documents.add_passages(query, scope.member.assessor, [new])
    return "passages-h"


def _add_document(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    """A document of the collection by its id, put under aspects at once."""
    name = forms.read_text(request.POST, "document").strip()
    found = Document.objects.filter(collection=scope.collection, external_id=name, is_current=True).first()
    if found is None:
        raise BadInput(_("No document has the id “%(id)s”.") % {"id": name})
    documents.keep(query, scope.member.assessor, found, request.POST.getlist("aspects"))
    return "passages-h"


def _request_page(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    drafts.request_page(scope.member, query, forms.read_text(request.POST, "url"))
    return "incoming-h"


def _get_document(request: HttpRequest, scope: Scope) -> Document:
    return get_object_or_404(
        Document, pk=forms.read_row_number(request.POST, "document"), collection=scope.collection, is_current=True
    )


# Acts of the desk by their address.
HANDLERS: dict[str, Handler] = {
    "add": _add_aspect,
    "clarify": _clarify_aspect,
    "weigh": _weigh_aspects,
    "merge": _merge_aspects,
    "split": _split_aspect,
    "remove": _remove_aspect,
    "take-over": _adopt_earlier_set,
    "undo": _undo_revision,
    "keep": _keep_document,
    "discard": _discard_document,
    "reopen": _reopen_document,
    "join": _join_passages,
    "paste": _paste_passage,
    "bring": _add_document,
    "fetch": _request_page,
}
