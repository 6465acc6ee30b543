"""The workshop of aspects: the list of queries, the desk of one query, and every act on it."""

from collections.abc import Callable

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation.aspects import drafts, forms, listing
from annotation.aspects.workspace import desk, incoming_of
from annotation.audit_log.recording import record
from annotation.permissions import Scope, action
from annotation.queue.annotators import refuses
from corpus.aspects import documents, revising
from corpus.aspects.documents import NewPassage
from corpus.aspects.entries import ANCHORS
from corpus.aspects.exchange import lines
from corpus.errors import BadInput
from corpus.models import Document, Query

Handler = Callable[[HttpRequest, Scope, Query, int | None], str]
"""Does an act; returns the id of the element that has the focus next."""


@action("adjudicate")
@require_GET
def queries(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Every query, how far it is, and the ways to it."""
    asked = request.GET
    words = asked.get("q", "").strip()[:200]
    state = asked.get("state", "") if asked.get("state") in listing.STATES else ""
    context = {
        "scope": scope,
        "section": "aspects",
        "q": words,
        "state": state,
        "totals": listing.totals(scope.collection),
    }
    found = listing.listing(
        scope.collection, q=words, state=state, after=_key(asked, "after"), before=_key(asked, "before")
    )
    return render(request, "aspects/queries.html", {**context, "listing": found})


def _key(asked: object, name: str) -> int:
    value = asked.get(name, "") if hasattr(asked, "get") else ""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 18 else 0


@action("adjudicate")
@require_POST
def export(request: HttpRequest, scope: Scope) -> StreamingHttpResponse:
    """The aspects file, as `aspects NAME export F` writes it."""
    record(scope, "aspects.exported")
    answer = StreamingHttpResponse(lines(scope.collection), content_type="application/x-ndjson; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{scope.collection.name}-aspects.jsonl"'
    return answer


@action("adjudicate")
@require_GET
def workshop(request: HttpRequest, scope: Scope, query: int) -> HttpResponse:
    """The desk of one query; with HX-Request its body alone, for news of pages that are fetched."""
    return show(request, scope, query_of(scope, query), focus=request.GET.get("focus", ""))


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


def show(
    request: HttpRequest,
    scope: Scope,
    query: Query,
    *,
    focus: str = "",
    problem: str = "",
    failed: str = "",
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
        "desk": desk(query),
        "query": query,
        "anchors": [(value, ANCHORS[value]) for value in sorted(ANCHORS)],
        "reasons": reasons(),
        "parts": range(1, forms.MOST_PARTS + 1),
        "focus": focus,
        "problem": problem,
        "failed": failed,
        "typed": forms.typed(request.POST),
    }
    return render(
        request, "aspects/_desk.html" if part else "aspects/desk.html", context, status=422 if problem else 200
    )


def reasons() -> list[str]:
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
            focus = handler(request, scope, found, _base(request))
            record(scope, "aspects.revised", query=found.external_id, did=act)
    except BadInput as wrong:
        return show(request, scope, found, problem=str(wrong), failed=act)
    if request.headers.get("HX-Request"):
        return show(request, scope, found, focus=focus)
    address = reverse("aspects_desk", args=[scope.collection.name, query])
    return redirect(f"{address}?focus={focus}#{focus}")


def may_work(scope: Scope) -> None:
    """BadInput for a member whose work is paused: nothing of theirs would count."""
    if why := refuses(scope.member):
        raise BadInput(why)


def _base(request: HttpRequest) -> int | None:
    return forms.whole(request.POST, "base") if "base" in request.POST else None


def _add(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    revising.add(query, scope.member.assessor, forms.wording(request.POST), base=base)
    return "add-text"


def _clarify(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    name = forms.text(request.POST, "aspect")
    wording = forms.wording(request.POST, weighed=False)
    revising.clarify(query, scope.member.assessor, name, wording, base=base)
    return f"aspect-{name}"


def _weigh(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    revising.weigh(query, scope.member.assessor, forms.importances(request.POST), base=base)
    return "weights"


def _merge(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    names = request.POST.getlist("aspects")
    revising.merge(query, scope.member.assessor, names, forms.wording(request.POST), base=base)
    return "aspects-h"


def _split(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    name = forms.text(request.POST, "aspect")
    revising.split(query, scope.member.assessor, name, forms.parts(request.POST), base=base)
    return "aspects-h"


def _remove(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    revising.remove(query, scope.member.assessor, forms.text(request.POST, "aspect"), base=base)
    return "aspects-h"


def _take_over(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    revising.take_over(query, scope.member.assessor, base=base)
    return "aspects-h"


def _undo(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    revising.undo(query, scope.member.assessor, forms.whole(request.POST, "number"))
    return "undo"


def _keep(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    documents.keep(query, scope.member.assessor, _document(request, scope), request.POST.getlist("aspects"))
    return "next-card"


def _discard(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    documents.discard(query, scope.member.assessor, _document(request, scope), forms.text(request.POST, "reason"))
    return "next-card"


def _reopen(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    document = _document(request, scope)
    documents.reopen(query, scope.member.assessor, document)
    return f"card-{document.pk}"


def _join(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    chosen = [int(value) for value in request.POST.getlist("documents") if value.isdecimal() and len(value) < 18]
    found = list(Document.objects.filter(pk__in=chosen, collection=scope.collection, is_current=True))
    name = forms.text(request.POST, "aspect")
    documents.join(query, scope.member.assessor, found, name)
    return f"aspect-{name}"


def _paste(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    post = request.POST
    address = forms.text(post, "source").strip()[:2000]
    source = {"kind": "paste", **({"url": address} if address else {})}
    new = NewPassage(
        forms.text(post, "title"), forms.text(post, "passage"), post.getlist("aspects"), {"source": source}
    )
    documents.add_passages(query, scope.member.assessor, [new])
    return "passages-h"


def _bring(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    """A document of the collection by its id, put under aspects at once."""
    name = forms.text(request.POST, "document").strip()
    found = Document.objects.filter(collection=scope.collection, external_id=name, is_current=True).first()
    if found is None:
        raise BadInput(_("No document has the id “%(id)s”.") % {"id": name})
    documents.keep(query, scope.member.assessor, found, request.POST.getlist("aspects"))
    return "passages-h"


def _fetch(request: HttpRequest, scope: Scope, query: Query, base: int | None) -> str:
    drafts.ask(scope.member, query, forms.text(request.POST, "url"))
    return "incoming-h"


def _document(request: HttpRequest, scope: Scope) -> Document:
    return get_object_or_404(
        Document, pk=forms.whole(request.POST, "document"), collection=scope.collection, is_current=True
    )


HANDLERS: dict[str, Handler] = {
    "add": _add,
    "clarify": _clarify,
    "weigh": _weigh,
    "merge": _merge,
    "split": _split,
    "remove": _remove,
    "take-over": _take_over,
    "undo": _undo,
    "keep": _keep,
    "discard": _discard,
    "reopen": _reopen,
    "join": _join,
    "paste": _paste,
    "bring": _bring,
    "fetch": _fetch,
}
"""Acts of the desk by their address."""
