"""Pages for passage drafts: refining a fetched or uploaded text, and assigning parts of a document to aspects."""

from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.models.aspects import PassageDraft
from annotation.work.aspects import drafts, forms
from annotation.work.aspects.views.aspects import may_work, query_of, render_workspace, show_workshop
from annotation.work.aspects.workspace import list_aspects
from corpus.aspects import documents
from corpus.aspects.documents import NewPassage
from corpus.aspects.passages import segment_text
from corpus.errors import BadInput
from corpus.models import Document, Query


@action("adjudicate")
@require_POST
def upload(request: HttpRequest, scope: Scope, query: int) -> HttpResponse:
    """A file becomes a text that a person refines on the next page."""
    found, file = query_of(scope, query), request.FILES.get("file")
    try:
        may_work(scope)
        # Before it is read: a large upload lies on the disk and shall not come into memory.
        if file is None or (file.size or 0) > drafts.MOST_UPLOADED:
            raise BadInput(_("Choose a text file or a web page of at most 2 MB."))
        draft = drafts.store_upload(scope.member, found, file.name or "", file.read())
    except BadInput as wrong:
        return render_workspace(request, scope, found, problem=str(wrong), failed="upload")
    return redirect("aspects_draft", scope.collection.name, query, draft.pk)


@action("adjudicate")
@require_http_methods(["GET", "POST"])
def draft(request: HttpRequest, scope: Scope, query: int, draft: int) -> HttpResponse:
    """Refine a text and put it under aspects, as a whole or piece by piece."""
    found = query_of(scope, query)
    row = get_object_or_404(PassageDraft, pk=draft, query=found)
    problem = ""
    if request.method == "POST":
        try:
            return _save_refined(request, scope, found, row)
        except BadInput as wrong:
            problem = str(wrong)
    post = request.POST
    context: dict[str, Any] = {
        "scope": scope, "query": found, "draft": row, "document": None, "problem": problem,
        "aspects": list_aspects(found), "chosen": post.getlist("aspects"),
        "title": post.get("title", row.title), "text": post.get("passage", row.text),
    }  # fmt: skip
    template = "aspects/draft.html"
    if "spread" in request.GET or "s" in post:
        template = "aspects/spread.html"
        context |= _spread_context(row.text, post)
    return render(request, template, context, status=422 if problem else 200)


def _save_refined(request: HttpRequest, scope: Scope, query: Query, row: PassageDraft) -> HttpResponse:
    """Save the refined text; then store it, or go on to its pieces."""
    may_work(scope)
    post = request.POST
    if row.state not in {PassageDraft.State.READY, PassageDraft.State.USED}:
        raise BadInput(_("There is no text yet."))
    # `s` holds the aspect of each segment: it comes from the page that spreads the text.
    if "s" in post:
        new = forms.cut_passages(post, row.title, row.text, {"source": drafts.source_metadata(row)})
        return _store_passages(scope, query, row, new)
    title, text = forms.read_text(post, "title"), forms.read_text(post, "passage").replace("\r\n", "\n")
    # Before the passage is stored and outside its transaction: a refusal loses no refined text.
    PassageDraft.objects.filter(pk=row.pk).update(title=title, text=text)
    if "spread" in post:
        return redirect(reverse("aspects_draft", args=[scope.collection.name, query.pk, row.pk]) + "?spread=1")
    new = [NewPassage(title, text, post.getlist("aspects"), {"source": drafts.source_metadata(row)})]
    return _store_passages(scope, query, row, new)


@transaction.atomic
def _store_passages(scope: Scope, query: Query, row: PassageDraft, new: list[NewPassage]) -> HttpResponse:
    documents.add_passages(query, scope.member.assessor, new)
    PassageDraft.objects.filter(pk=row.pk).update(state=PassageDraft.State.USED)
    record(scope, "aspects.revised", query=query.external_id, did="passage", passages=len(new))
    return show_workshop(scope, query, "passages-h")


@action("adjudicate")
@require_http_methods(["GET", "POST"])
def cut(request: HttpRequest, scope: Scope, query: int, document: int) -> HttpResponse:
    """Assign parts of a document to aspects."""
    found = query_of(scope, query)
    row = get_object_or_404(Document, pk=document, collection=scope.collection, is_current=True)
    problem = ""
    if request.method == "POST":
        try:
            return _cut_document(request, scope, found, row)
        except BadInput as wrong:
            problem = str(wrong)
    context = {"scope": scope, "query": found, "document": row, "problem": problem}
    context |= {"aspects": list_aspects(found), "title": row.title, **_spread_context(row.text, request.POST)}
    return render(request, "aspects/spread.html", context, status=422 if problem else 200)


@transaction.atomic
def _cut_document(request: HttpRequest, scope: Scope, query: Query, row: Document) -> HttpResponse:
    may_work(scope)
    new = forms.cut_passages(request.POST, row.title, row.text, documents.cut_record(row))
    documents.cut(query, scope.member.assessor, row, new)
    record(scope, "aspects.revised", query=query.external_id, did="cut", passages=len(new))
    return redirect(reverse("aspects_workshop", args=[scope.collection.name, query.pk]) + "?focus=next-card")


@action("adjudicate")
@require_POST
def again(request: HttpRequest, scope: Scope, query: int, draft: int) -> HttpResponse:
    """Fetch a page again whose fetch failed."""
    found = query_of(scope, query)
    row = get_object_or_404(PassageDraft, pk=draft, query=found)
    try:
        drafts.retry_fetch(row)
    except BadInput as wrong:
        return render_workspace(request, scope, found, problem=str(wrong))
    return _show_incoming(request, scope, found)


@action("adjudicate")
@require_POST
def dismiss(request: HttpRequest, scope: Scope, query: int, draft: int) -> HttpResponse:
    """Dismiss a passage draft."""
    found = query_of(scope, query)
    drafts.dismiss(get_object_or_404(PassageDraft, pk=draft, query=found))
    return _show_incoming(request, scope, found)


def _show_incoming(request: HttpRequest, scope: Scope, query: Query) -> HttpResponse:
    if request.headers.get("HX-Request"):
        return render_workspace(request, scope, query, focus="incoming-h")
    return show_workshop(scope, query, "incoming-h")


def _spread_context(text: str, post: Any) -> dict[str, Any]:
    """The segments with what was chosen for them, and which text they are of."""
    chosen = post.getlist("s") if post else []
    cut = segment_text(text)
    rows = [
        {
            "number": place,
            "text": text[one.start : one.end],
            # Unless something was chosen, a segment goes with the one above it, and the first with none.
            "mark": chosen[place - 1] if place <= len(chosen) else ("^" if place > 1 else ""),
        }
        for place, one in enumerate(cut, 1)
    ]
    return {"rows": rows, "text_sha256": forms.hash_text(text)}
