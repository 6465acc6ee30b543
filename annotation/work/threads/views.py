"""Answers to comments and flags: the form beside them, and the page on which their authors read them."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.dateparse import parse_datetime

from actions.services import Actor
from annotation.access.permissions import Scope, action
from annotation.work.threads import selectors, services
from annotation.work.threads.options import ReplyOptions
from corpus.errors import BadInput


@action("answer", "POST")
def answer_thread(request: HttpRequest, scope: Scope, item: int, number: int) -> HttpResponse:
    """Answer a comment or flag; HTMX gets its thread, a plain form goes back to its `page`."""
    thread, problem = selectors.find_thread(scope.collection, item, number), ""
    try:
        values = {"text": request.POST.get("text", ""), "outcome": request.POST.get("outcome") or None}
        services.answer_thread(Actor.of(scope), thread, ReplyOptions.read(values))
    except BadInput as error:
        problem = str(error)
    if problem or request.headers.get("HX-Request"):
        thread.refresh_from_db()
        context = {"scope": scope, "thread": thread, "reply_problem": problem, "reply_text": values["text"]}
        fragment = "threads/_thread.html" if request.headers.get("HX-Request") else "threads/refused.html"
        return render(request, fragment, context, status=422 if problem else 200)
    if scope.may_admin and request.POST.get("page") == "pair":
        return redirect("pair", scope.collection.name, thread.pair_id)
    return redirect(f"{reverse('adjudicate', args=[scope.collection.name])}?show={item}")


@action("judge", "GET", "HEAD")
def replies(request: HttpRequest, scope: Scope) -> HttpResponse:
    """List the member's own comments and flags with their answers, fifty on a page; reading marks nothing."""
    number = request.GET.get("page", "")
    page = selectors.replies_page(scope.member, max(1, int(number)) if number.isdecimal() and len(number) < 6 else 1)
    return render(request, "threads/replies.html", {"scope": scope, "section": "judge", "page": page})


@action("judge", "POST")
def replies_seen(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Mark the answers up to `until`, the newest that the page listed, as read."""
    try:
        until = parse_datetime(request.POST.get("until", ""))
    except ValueError:
        until = None
    if until and until.tzinfo:
        services.mark_seen(scope.member, until)
    return redirect("replies", scope.collection.name)
