"""Judging: the open pair with the next in the same answer, a query's pairs on one page, one's own decisions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from annotation import guidelines
from annotation.judging import forms, page, submitting
from annotation.judging.forms import Invalid, parse_draft, parse_item, parse_text
from annotation.models import Assignment, Membership
from annotation.permissions import Scope, action
from annotation.quality_control import onboarding
from annotation.queue import assignment, undo
from annotation.queue.annotators import AnnotatorContext, closed
from corpus.errors import BadInput

# How the form of each decision is read, what it does with the next pair claimed, and what on the page of a query.
DECISIONS: dict[str, tuple[Callable[..., tuple[Any, ...]], Callable[..., Any], Callable[..., Any]]] = {
    "submit": (forms.parse_answer, submitting.submit, assignment.submit_judgment),
    "skip": (forms.parse_skip, submitting.skip, assignment.skip),
    "flag": (forms.parse_flag, submitting.flag, assignment.flag),
}


class SubmitReply(NamedTuple):
    """What became of a decision: 200, or the status of a refusal and why."""

    status: int
    problem: str = ""
    decided: bool = False  # Another decision of the same person is stored.


def run_decision(
    request: HttpRequest, scope: Scope, parse: Callable[..., tuple[Any, ...]], work: Callable[..., Any]
) -> SubmitReply:
    """Run the decision of a form in a transaction. Raises Http404."""
    desk = AnnotatorContext.of(scope.member)
    try:
        sent = parse(request.POST, scope.member)
        assignment.in_transaction(lambda db: work(db, desk, *sent))
    except (Invalid, assignment.TooSoon) as wrong:
        return SubmitReply(422, str(wrong))
    except assignment.Unknown:
        raise Http404(_("This pair was never assigned to you.")) from None
    except assignment.DecisionRefused as lost:
        return SubmitReply(409, str(lost), isinstance(lost, assignment.DecidedAlready))
    return SubmitReply(200)


def withdraw_decision(request: HttpRequest, scope: Scope, item: int) -> None:
    """Undo a decision. Raises DecisionRefused and Http404."""
    try:
        undo.undo_decision(scope.member, item)
    except assignment.Unknown:
        raise Http404(_("You have no decision to undo.")) from None
    # The page of a refused decision sends what was written with it: it waits on the pair again.
    if typed := parse_draft(request.POST):
        Assignment.objects.filter(membership=scope.member, item=item, state=Assignment.State.OPEN).update(draft=typed)


# The page of one pair


@action("judge", "GET", "HEAD")
def judge(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the member's open lease; reading never claims. `?start` asks for a pair."""
    return render_task(request, scope)


@action("judge", "POST")
def judge_next(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Claim a task: renew the open lease, or take a new one."""
    desk = AnnotatorContext.of(scope.member)
    assignment.in_transaction(lambda db: submitting.claim(db, desk))
    return respond_with_next(request, scope)


@action("judge", "POST")
def judge_decide(request: HttpRequest, scope: Scope, act: str) -> HttpResponse:
    """Judge, skip or flag the open pair, and claim the next."""
    parse, work, _of_card = DECISIONS[act]
    return decide(request, scope, parse, work)


def decide(
    request: HttpRequest, scope: Scope, parse: Callable[..., tuple[Any, ...]], work: Callable[..., Any]
) -> HttpResponse:
    """Run a decision and answer with the next pair; 422 for a bad form, 409 with the text kept for a lost lease."""
    outcome = run_decision(request, scope, parse, work)
    if outcome.status == 200:
        return respond_with_next(request, scope)
    if outcome.status == 422:
        return render_task(request, scope, status=422, problem=outcome.problem)
    # All that was written on the lost pair, so that its author can copy it.
    written = [request.POST.get(name, "").strip() for name in ("contribution", "evidence")]
    kept = parse_text(request.POST, "comment") or parse_text(request.POST, "note") or "\n\n".join(filter(None, written))
    item = parse_item(request.POST, scope.member)
    context: dict[str, object] = {"reason": outcome.problem, "kept": kept}
    if outcome.decided and undo.may_undo(scope.member, item):
        context |= {"changes": item, "typed": parse_draft(request.POST)}
    return _render_fragment(request, scope, "judging/_lost.html", context, status=409)


@action("judge", "POST")
def judge_draft(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Keep what is typed or marked on a pair: {"kept": whether the lease is known}."""
    desk, data = AnnotatorContext.of(scope.member), request.POST
    try:
        item = parse_item(data, scope.member)
    except Invalid as wrong:
        return HttpResponse(str(wrong), status=422, content_type="text/plain; charset=utf-8")
    kept = assignment.in_transaction(
        lambda db: assignment.save_draft(db, desk, item, data.get("token", ""), parse_draft(data))
    )
    return JsonResponse({"kept": kept})


@action("judge", "POST")
def judge_undo(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Undo the decision on an item: its lease is open again."""
    try:
        withdraw_decision(request, scope, parse_item(request.POST, scope.member))
    except (assignment.DecisionRefused, Invalid) as refused:
        return render_task(request, scope, status=409, problem=str(refused))
    return respond_with_next(request, scope, taken_back=True)


def respond_with_next(request: HttpRequest, scope: Scope, *, taken_back: bool = False) -> HttpResponse:
    """Show the pair that comes next: at once for HTMX, else at the page's address."""
    if request.headers.get("HX-Request"):
        return render_task(request, scope, taken_back=taken_back)
    return HttpResponseRedirect(reverse("judge", args=[scope.collection.name]), status=303)


def render_task(
    request: HttpRequest, scope: Scope, *, status: int = 200, problem: str = "", taken_back: bool = False
) -> HttpResponse:
    """Show the open pair, or the page for having none."""
    work, desktop = page.read_open_task(scope.member)
    # An open pair comes first: whoever holds one may finish it, whatever is asked of them next.
    if work is None and (stop := onboarding.find_stop(scope.member)):
        return _render_fragment(request, scope, "judging/_stop.html", {"stop": stop, "problem": problem}, status=status)
    context: dict[str, object] = {
        "work": work,
        "desktop": desktop,
        "problem": problem,
        "taken_back": taken_back,
        "starts": request.method == "GET" and "start" in request.GET,
        "announced": onboarding.has_new_guidelines(scope.member),
        # A refused form is shown again with what it held. A refused undo (409) is about another
        # pair and sends nothing of this one, whose draft stands.
        "typed": work.typed if work and status != 422 else {name: request.POST.get(name, "") for name in page.TYPED},
    }
    fragment = "judging/_work.html" if work else "judging/_rest.html"
    if work and work.draft:
        context["texts"] = context["typed"] if status == 422 or any(work.typed.values()) else work.draft
        context["ratings"] = page.RATINGS.items()
        fragment = "judging/_edit.html"
    return _render_fragment(request, scope, fragment, context, status=status)


def _render_fragment(
    request: HttpRequest, scope: Scope, fragment: str, context: dict[str, object], *, status: int
) -> HttpResponse:
    names = ("next", "submit", "evidence", "skip", "flag", "undo", "history", "draft", "query")
    context |= {"section": "judge", **_form_context(scope, names)}
    return render_pair_page(request, scope, fragment, context, status=status)


def _form_context(scope: Scope, names: Sequence[str]) -> dict[str, object]:
    """Return the addresses to which a pair's forms are sent, and the reasons for a skip."""
    urls = {f"{which}_url": reverse(f"judge_{which}", args=[scope.collection.name]) for which in names}
    return {"skip_reasons": Assignment.SkipReason.choices, **urls}


def render_pair_page(
    request: HttpRequest, scope: Scope, fragment: str, context: dict[str, object], *, status: int
) -> HttpResponse:
    """Render the pair's fragment alone for HTMX, else inside the whole page."""
    collection = scope.collection
    context |= {"scope": scope, "collection": collection, "fragment": fragment}
    context["grades"] = page.grade_choices(collection)
    if request.headers.get("HX-Request"):
        return render(request, fragment, context, status=status)
    context["guidelines"] = guidelines.current(collection)
    return render(request, "judging/page.html", context, status=status)


# All waiting pairs of a query on one page: the query pinned, one key for each document


@action("judge", "GET", "HEAD")
def judge_query(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The pairs that the member holds; reading never claims."""
    works = page.read_open_tasks(scope.member)
    # Texts to edit and the qualification test need more room than a card has. What stands before
    # the next task (consent, the test, a pause) has its page there, too: no button does nothing.
    if works[0].only_alone if works else onboarding.find_stop(scope.member):
        return redirect("judge", scope.collection.name)
    context = _card_context(scope) | {
        "works": works,
        "work": works[0] if works else None,
        "desktop": page.read_desktop(scope.member),
        "guidelines": guidelines.current(scope.collection),
        "section": "judge",
    }
    return render(request, "judging/query.html", context)


@action("judge", "POST")
def judge_query_next(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Claim the pairs of the next query; those that are held already are renewed."""
    desk = AnnotatorContext.of(scope.member)
    assignment.in_transaction(lambda db: submitting.claim_query(db, desk))
    return HttpResponseRedirect(reverse("judge_query", args=[scope.collection.name]), status=303)


@action("judge", "POST")
def judge_query_decide(request: HttpRequest, scope: Scope, act: str) -> HttpResponse:
    """Run the decision on one pair; the answer is its card: decided, or in the reveal arm with its debate."""
    item = _item_of_card(request, scope)
    parse, _claims, work = DECISIONS[act]
    outcome = run_decision(request, scope, parse, work)
    changes = outcome.decided and undo.may_undo(scope.member, item)
    return _render_card(request, scope, item, problem=outcome.problem, status=outcome.status, changes=changes)


@action("judge", "POST")
def judge_query_undo(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Undo the decision on a pair: its card is open again."""
    item = _item_of_card(request, scope)
    try:
        withdraw_decision(request, scope, item)
    except assignment.DecisionRefused as refused:
        return _render_card(request, scope, item, problem=str(refused), status=409)
    return _render_card(request, scope, item)


def _item_of_card(request: HttpRequest, scope: Scope) -> int:
    try:
        return parse_item(request.POST, scope.member)
    except Invalid as wrong:
        # Without an item there is no card into which the answer could go.
        raise BadRequest(str(wrong)) from None


def _render_card(
    request: HttpRequest, scope: Scope, item: int, *, problem: str = "", status: int = 200, changes: bool = False
) -> HttpResponse:
    """Render one pair's card for HTMX; without it lead to the whole page."""
    if not request.headers.get("HX-Request"):
        return HttpResponseRedirect(reverse("judge_query", args=[scope.collection.name]), status=303)
    works = page.read_open_tasks(scope.member, item=item)
    # A pair that was decided stays on the page, with its undo.
    work = works[0] if works else page.own_work(scope.member, item)
    typed = parse_draft(request.POST) if status == 409 else {}
    if work and (status == 422 or (works and typed)):
        work = replace(work, typed={name: request.POST.get(name, "") for name in page.TYPED})
    context = _card_context(scope) | {"work": work, "open": bool(works), "problem": problem}
    context |= {"changes": changes, "typed": typed, "kept": "" if works else "\n\n".join(typed.values())}
    return render(request, "judging/_card.html", context, status=status)


def _card_context(scope: Scope) -> dict[str, object]:
    names = ("query_next", "query_submit", "query_skip", "query_flag", "query_undo", "draft", "history")
    context = {"scope": scope, "collection": scope.collection, "grades": page.grade_choices(scope.collection)}
    return context | _form_context(scope, names)


# My judgments


@action("judge", "GET", "HEAD")
def judge_history(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The member's own decisions, fifty a page; `?before=` is the last one of the page before."""
    decisions, more = page.list_decisions(scope.member, before=request.GET.get("before", ""))
    context = {"scope": scope, "section": "judge", "decisions": decisions, "more": more, "closed": closed(scope.member)}
    return render(request, "judging/history.html", context)


@action("judge", "GET", "HEAD")
def judge_history_item(request: HttpRequest, scope: Scope, item: int) -> HttpResponse:
    """Show a pair that the member decided, with the grade; `n` and `p` go to neighbours."""
    item = Assignment.item_of(scope.member, item)
    decision = page.decided_assignments(scope.member).filter(item=item).first()
    work = page.own_work(scope.member, item)
    if decision is None or work is None:
        raise Http404(_("You have no decision on this pair."))
    newer, older = page.neighbour_items(decision)
    context = {"scope": scope, "section": "judge", "collection": scope.collection, "closed": closed(scope.member)}
    context |= {"work": work, "decision": decision, "newer": newer, "older": older}
    return render(request, "judging/history_item.html", context)


# What stands before the next pair: consent, returned batches, changed guidelines


@action("judge", "POST")
def judge_consent(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Agree to the current consent text; the answer is the next pair."""
    try:
        onboarding.accept_consent(membership=scope.member, version=forms.parse_whole_number(request.POST, "version"))
    except (BadInput, Invalid) as error:
        return render_task(request, scope, status=409, problem=str(error))
    scope.member.refresh_from_db(fields=["consent"])
    return respond_with_next(request, scope)


@action("judge", "GET", "POST")
def judge_returned(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the member's returned batches; POST says that they were read."""
    if request.method == "POST":
        Membership.objects.filter(pk=scope.member.pk).update(returned=0)
        return redirect("judge", scope.collection.name)
    context = {"scope": scope, "section": "judge", "batches": onboarding.returned_batches(membership=scope.member)}
    return render(request, "judging/returned.html", context)


@action("judge", "GET", "POST")
def judge_guidelines(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show what is new in the guidelines; POST says that it was read."""
    if request.method == "POST":
        try:
            version = forms.parse_whole_number(request.POST, "version")
        except Invalid as error:
            return HttpResponse(str(error), status=422, content_type="text/plain; charset=utf-8")
        # Never one that was not written, or less than before.
        version = min(version, scope.collection.guideline_version)
        Membership.objects.filter(pk=scope.member.pk, guideline_read__lt=version).update(guideline_read=version)
        return redirect("judge", scope.collection.name)
    number, lines = onboarding.guideline_changes(scope.member)
    context = {"scope": scope, "section": "judge", "number": number, "lines": lines}
    context["news"] = onboarding.has_new_guidelines(scope.member)
    return render(request, "judging/guidelines_changed.html", context)
