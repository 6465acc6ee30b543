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
from annotation.work.aspects.views.aspects import query_of, render_workspace, require_active, show_workshop
from annotation.work.aspects.workspace import list_aspects
from corpus.aspects import documents
from corpus.aspects.documents import NewPassage
from corpus.aspects.passages import segment_text
from corpus.errors import BadInput
from corpus.models import Document, Query


@action("adjudicate")
@require_POST
def upload(request: HttpRequest, scope: Scope, query: int) -> HttpResponse:
    """Store an uploaded file as a draft, which is refined on the next page."""
    query_row, file = query_of(scope, query), request.FILES.get("file")
    try:
        require_active(scope)
        # Checked before the file, which may be large, is read into memory.
        if file is None or (file.size or 0) > drafts.MOST_UPLOADED:
            raise BadInput(_("Choose a text file or a web page of at most 2 MB."))
        draft = drafts.store_upload(scope.member, query_row, file.name or "", file.read())
    except BadInput as error:
        return render_workspace(request, scope, query_row, problem=str(error), failed="upload")
    return redirect("aspects_draft", scope.collection.name, query, draft.pk)


@action("adjudicate")
@require_http_methods(["GET", "POST"])
def draft(request: HttpRequest, scope: Scope, query: int, draft: int) -> HttpResponse:
    """Refine a draft and assign it to aspects, as a whole or in parts."""
    query_row = query_of(scope, query)
    row = get_object_or_404(PassageDraft, pk=draft, query=query_row)
    problem = ""
    if request.method == "POST":
        try:
            # Save the refined text; then store it as a passage, or show its parts.
            require_active(scope)
            post = request.POST
            if row.state not in {PassageDraft.State.READY, PassageDraft.State.USED}:
                raise BadInput(_("There is no text yet."))
            # `s` has the aspect of each segment, on the page that assigns parts.
            if "s" in post:
                passages = forms.cut_passages(post, row.title, row.text, {"source": drafts.source_metadata(row)})
                return _store_passages(scope, query_row, row, passages)
            title, text = forms.read_text(post, "title"), forms.read_text(post, "passage").replace("\r\n", "\n")
            # Outside the transaction that stores the passage: the refined text is saved even where that is refused.
            PassageDraft.objects.filter(pk=row.pk).update(title=title, text=text)
            if "spread" in post:
                return redirect(
                    reverse("aspects_draft", args=[scope.collection.name, query_row.pk, row.pk]) + "?spread=1"
                )
            passages = [NewPassage(title, text, post.getlist("aspects"), {"source": drafts.source_metadata(row)})]
            return _store_passages(scope, query_row, row, passages)
        except BadInput as error:
            problem = str(error)
    post = request.POST
    context: dict[str, Any] = {
        "scope": scope, "query": query_row, "draft": row, "document": None, "problem": problem,
        "aspects": list_aspects(query_row), "chosen": post.getlist("aspects"),
        "title": post.get("title", row.title), "text": post.get("passage", row.text),
    }  # fmt: skip
    template = "aspects/draft.html"
    if "spread" in request.GET or "s" in post:
        template = "aspects/spread.html"
        context |= _spread_context(row.text, post)
    return render(request, template, context, status=422 if problem else 200)


@transaction.atomic
def _store_passages(scope: Scope, query: Query, row: PassageDraft, passages: list[NewPassage]) -> HttpResponse:
    documents.add_passages(query, scope.member.assessor, passages)
    PassageDraft.objects.filter(pk=row.pk).update(state=PassageDraft.State.USED)
    record(scope, "aspects.revised", query=query.external_id, did="passage", passages=len(passages))
    return show_workshop(scope, query, "passages-h")


@action("adjudicate")
@require_http_methods(["GET", "POST"])
def cut(request: HttpRequest, scope: Scope, query: int, document: int) -> HttpResponse:
    """Assign parts of a document to aspects."""
    query_row = query_of(scope, query)
    row = get_object_or_404(Document, pk=document, collection=scope.collection, is_current=True)
    problem = ""
    if request.method == "POST":
        try:
            return _cut_document(request, scope, query_row, row)
        except BadInput as error:
            problem = str(error)
    context = {"scope": scope, "query": query_row, "document": row, "problem": problem}
    context |= {"aspects": list_aspects(query_row), "title": row.title, **_spread_context(row.text, request.POST)}
    return render(request, "aspects/spread.html", context, status=422 if problem else 200)


@transaction.atomic
def _cut_document(request: HttpRequest, scope: Scope, query: Query, row: Document) -> HttpResponse:
    require_active(scope)
    passages = forms.cut_passages(request.POST, row.title, row.text, documents.cut_record(row))
    documents.cut(query, scope.member.assessor, row, passages)
    record(scope, "aspects.revised", query=query.external_id, did="cut", passages=len(passages))
    return redirect(reverse("aspects_workshop", args=[scope.collection.name, query.pk]) + "?focus=next-card")


@action("adjudicate")
@require_POST
def fetch_again(request: HttpRequest, scope: Scope, query: int, draft: int) -> HttpResponse:
    """Fetch a page again whose fetch failed."""
    query_row = query_of(scope, query)
    row = get_object_or_404(PassageDraft, pk=draft, query=query_row)
    try:
        drafts.retry_fetch(row)
    except BadInput as error:
        return render_workspace(request, scope, query_row, problem=str(error))
    return _show_incoming(request, scope, query_row)


@action("adjudicate")
@require_POST
def dismiss(request: HttpRequest, scope: Scope, query: int, draft: int) -> HttpResponse:
    """Dismiss a passage draft."""
    query_row = query_of(scope, query)
    drafts.dismiss(get_object_or_404(PassageDraft, pk=draft, query=query_row))
    return _show_incoming(request, scope, query_row)


def _show_incoming(request: HttpRequest, scope: Scope, query: Query) -> HttpResponse:
    if request.headers.get("HX-Request"):
        return render_workspace(request, scope, query, focus="incoming-h")
    return show_workshop(scope, query, "incoming-h")


def _spread_context(text: str, post: Any) -> dict[str, Any]:
    """Return the segments of a text with their selected aspects, and the hash of the text."""
    marks = post.getlist("s") if post else []
    segments = segment_text(text)
    rows = [
        {
            "number": number,
            "text": text[segment.start : segment.end],
            # By default a segment has the aspect of the one above it, and the first has none.
            "mark": marks[number - 1] if number <= len(marks) else ("^" if number > 1 else ""),
        }
        for number, segment in enumerate(segments, 1)
    ]
    return {"rows": rows, "text_sha256": forms.hash_text(text)}
