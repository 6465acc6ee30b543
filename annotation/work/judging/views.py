"""Pages of judging: one pair at a time, all pairs of a query, a member's decisions, and what comes before a pair."""

from collections.abc import Sequence
from dataclasses import replace

from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from annotation.access.permissions import Scope, action
from annotation.models import Assignment, Membership
from annotation.work.judging import forms, page, submitting
from annotation.work.judging.document import allow_images
from annotation.work.judging.forms import parse_draft, parse_item, parse_text
from annotation.work.judging.submitting import Decision, QueryDecision
from annotation.work.quality_control import onboarding
from annotation.work.queue import assignment, undo
from annotation.work.queue.annotators import AnnotatorContext, closed, count_judged
from annotation.work.settings import guidelines
from corpus.errors import BadInput

SUBMIT = QueryDecision(parse=forms.parse_answer, store_and_claim=submitting.submit, store=assignment.submit_judgment)
SKIP = QueryDecision(parse=forms.parse_skip, store_and_claim=submitting.skip, store=assignment.skip)
FLAG = QueryDecision(parse=forms.parse_flag, store_and_claim=submitting.flag, store=assignment.flag)


def withdraw_decision(request: HttpRequest, scope: Scope, item: int) -> None:
    """Undo a decision, and save what the form sends as the draft of its pair. Raises DecisionRefused and Http404."""
    undo.undo_decision(scope.member, item)
    # The page of a refused decision also sends what was written with it.
    if typed := parse_draft(request.POST):
        Assignment.objects.filter(membership=scope.member, item=item, state=Assignment.State.OPEN).update(draft=typed)


# The page of one pair


@action("judge", "GET", "HEAD")
def judge(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the member's open pair; reading never claims. With `?start` the page claims one, if not the first."""
    return render_task(request, scope)


@action("judge", "POST")
def judge_next(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Renew the open lease, or claim the next pair."""
    annotator = AnnotatorContext.of(scope.member)
    assignment.in_transaction(lambda db: submitting.claim(db, annotator))
    return respond_with_next(request, scope)


@action("judge", "POST")
def judge_decide(request: HttpRequest, scope: Scope, decision: Decision) -> HttpResponse:
    """Judge, skip or flag the open pair, or write its texts, and claim the next pair.

    1. Parse the form.
    2. Store the decision and claim the next pair, in one transaction.
    3. 422 for a wrong field or a press that came too soon: the same pair, with what was typed.
    4. 409 for a decision that is not accepted any more: its text, so that its author can copy it.
    5. Else show the next pair.
    """
    annotator = AnnotatorContext.of(scope.member)
    try:
        answer = decision.parse(request.POST, scope.member)
        assignment.in_transaction(lambda db: decision.store_and_claim(db, annotator, *answer))
    except BadInput as error:
        return render_task(request, scope, status=422, problem=str(error))
    except assignment.DecisionRefused as error:
        texts = [request.POST.get(name, "").strip() for name in ("contribution", "evidence")]
        note = parse_text(request.POST, "comment") or parse_text(request.POST, "note")
        context: dict[str, object] = {"reason": str(error), "kept": note or "\n\n".join(filter(None, texts))}
        item = parse_item(request.POST, scope.member)
        if isinstance(error, assignment.DecidedAlready) and undo.may_undo(scope.member, item):
            context |= {"changes": item, "typed": parse_draft(request.POST)}
        return _render_fragment(request, scope, "judging/_lost.html", context, status=409)
    return respond_with_next(request, scope)


@action("judge", "POST")
def judge_draft(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Save what is typed or marked on a pair; answers {"kept": whether the lease exists}."""
    annotator, data = AnnotatorContext.of(scope.member), request.POST
    try:
        item = parse_item(data, scope.member)
    except BadInput as error:
        return HttpResponse(str(error), status=422, content_type="text/plain; charset=utf-8")
    is_saved = assignment.in_transaction(
        lambda db: assignment.save_draft(db, annotator, item, data.get("token", ""), parse_draft(data))
    )
    return JsonResponse({"kept": is_saved})


@action("judge", "POST")
def judge_undo(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Undo the decision on an item and show its pair, whose lease is open again."""
    try:
        withdraw_decision(request, scope, parse_item(request.POST, scope.member))
    except (assignment.DecisionRefused, BadInput) as error:
        return render_task(request, scope, status=409, problem=str(error))
    return respond_with_next(request, scope, taken_back=True)


def respond_with_next(request: HttpRequest, scope: Scope, *, taken_back: bool = False) -> HttpResponse:
    """Show the next pair to HTMX; redirect a plain form to the judging page."""
    if request.headers.get("HX-Request"):
        return render_task(request, scope, taken_back=taken_back)
    return HttpResponseRedirect(reverse("judge", args=[scope.collection.name]), status=303)


def render_task(
    request: HttpRequest, scope: Scope, *, status: int = 200, problem: str = "", taken_back: bool = False
) -> HttpResponse:
    """Render the open pair, or the page that says why there is none."""
    task, figures = page.read_open_task(scope.member)
    # Somebody with an open pair may finish it before anything else is asked of them.
    if task is None and (stop := onboarding.find_stop(scope.member)):
        return _render_fragment(request, scope, "judging/_stop.html", {"stop": stop, "problem": problem}, status=status)
    # The first pair comes after the guidelines; who took the test read them before it.
    is_newcomer = not scope.member.lent and scope.member.qualified_at is None
    context: dict[str, object] = {
        "work": task,
        "desktop": figures,
        "problem": problem,
        "taken_back": taken_back,
        "starts": request.method == "GET" and "start" in request.GET and not is_newcomer,
        "introduction": guidelines.current(scope.collection)[1] if is_newcomer and task is None else "",
        "announced": onboarding.has_new_guidelines(scope.member),
        "test": onboarding.read_result(scope.member) if task and task.in_test else None,
        # A refused form is shown again with its values. A refused undo (409) is about another pair,
        # so the draft of this one is shown.
        "typed": task.typed if task and status != 422 else {name: request.POST.get(name, "") for name in page.TYPED},
    }
    fragment = "judging/_work.html" if task else "judging/_rest.html"
    if task and task.draft:
        context["texts"] = context["typed"] if status == 422 or any(task.typed.values()) else task.draft
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
    return allow_images(render(request, "judging/page.html", context, status=status), collection.document_format)


# All waiting pairs of a query on one page: the query pinned, one key for each document


@action("judge", "GET", "HEAD")
def judge_query(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the member's open pairs of a query; reading never claims."""
    tasks = page.read_open_tasks(scope.member)
    # Texts to edit and the qualification test need more room than a card has. Consent, the test and
    # a pause, which come before the next task, also have their pages there.
    if tasks[0].needs_whole_page if tasks else onboarding.find_stop(scope.member):
        return redirect("judge", scope.collection.name)
    context = _card_context(scope) | {
        "works": tasks,
        "work": tasks[0] if tasks else None,
        "desktop": page.read_figures(scope.member),
        "guidelines": guidelines.current(scope.collection),
        "section": "judge",
    }
    return allow_images(render(request, "judging/query.html", context), scope.collection.document_format)


@action("judge", "POST")
def judge_query_next(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Renew the member's open leases, or claim the pairs of the next query."""
    annotator = AnnotatorContext.of(scope.member)
    assignment.in_transaction(lambda db: submitting.claim_query(db, annotator))
    return HttpResponseRedirect(reverse("judge_query", args=[scope.collection.name]), status=303)


@action("judge", "POST")
def judge_query_decide(request: HttpRequest, scope: Scope, decision: QueryDecision) -> HttpResponse:
    """Store the decision on one pair of a query and show its card: decided, or with its debate in the reveal arm."""
    item = _item_of_card(request, scope)
    annotator = AnnotatorContext.of(scope.member)
    try:
        answer = decision.parse(request.POST, scope.member)
        assignment.in_transaction(lambda db: decision.store(db, annotator, *answer))
    except BadInput as error:
        return _render_card(request, scope, item, problem=str(error), status=422)
    except assignment.DecisionRefused as error:
        changes = isinstance(error, assignment.DecidedAlready) and undo.may_undo(scope.member, item)
        return _render_card(request, scope, item, problem=str(error), status=409, changes=changes)
    return _render_card(request, scope, item)


@action("judge", "POST")
def judge_query_undo(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Undo the decision on a pair and show its card, which is open again."""
    item = _item_of_card(request, scope)
    try:
        withdraw_decision(request, scope, item)
    except assignment.DecisionRefused as error:
        return _render_card(request, scope, item, problem=str(error), status=409)
    return _render_card(request, scope, item)


def _item_of_card(request: HttpRequest, scope: Scope) -> int:
    try:
        return parse_item(request.POST, scope.member)
    except BadInput as error:
        # Without an item there is no card that could show the message.
        raise BadRequest(str(error)) from None


def _render_card(
    request: HttpRequest, scope: Scope, item: int, *, problem: str = "", status: int = 200, changes: bool = False
) -> HttpResponse:
    """Render the card of one pair for HTMX; redirect a plain form to the page of the query."""
    if not request.headers.get("HX-Request"):
        return HttpResponseRedirect(reverse("judge_query", args=[scope.collection.name]), status=303)
    tasks = page.read_open_tasks(scope.member, item=item)
    # A decided pair stays on the page, with a button to undo the decision.
    task = tasks[0] if tasks else page.own_task(scope.member, item)
    typed = parse_draft(request.POST) if status == 409 else {}
    if task and (status == 422 or (tasks and typed)):
        task = replace(task, typed={name: request.POST.get(name, "") for name in page.TYPED})
    context = _card_context(scope) | {"work": task, "open": bool(tasks), "problem": problem}
    context |= {"changes": changes, "typed": typed, "kept": "" if tasks else "\n\n".join(typed.values())}
    return render(request, "judging/_card.html", context, status=status)


def _card_context(scope: Scope) -> dict[str, object]:
    names = ("query_next", "query_submit", "query_skip", "query_flag", "query_undo", "draft", "history")
    context = {"scope": scope, "collection": scope.collection, "grades": page.grade_choices(scope.collection)}
    return context | _form_context(scope, names)


# My judgments


@action("judge", "GET", "HEAD")
def judge_history(request: HttpRequest, scope: Scope) -> HttpResponse:
    """List the member's own decisions, fifty on a page; `?before=` names the last one of the page before."""
    decisions, more = page.list_decisions(scope.member, before=request.GET.get("before", ""))
    context = {"scope": scope, "section": "judge", "decisions": decisions, "more": more, "closed": closed(scope.member)}
    context["counts"] = count_judged(scope.member.pk)
    return render(request, "judging/history.html", context)


@action("judge", "GET", "HEAD")
def judge_history_item(request: HttpRequest, scope: Scope, item: int) -> HttpResponse:
    """Show a pair that the member decided, with their decision; the keys `n` and `p` lead to its neighbours."""
    item = Assignment.item_of(scope.member, item)
    decision = page.decided_assignments(scope.member).filter(item=item).first()
    task = page.own_task(scope.member, item)
    if decision is None or task is None:
        raise Http404(_("You have no decision on this pair."))
    newer, older = page.neighbour_items(decision)
    context = {"scope": scope, "section": "judge", "collection": scope.collection, "closed": closed(scope.member)}
    context |= {"work": task, "decision": decision, "newer": newer, "older": older}
    return allow_images(render(request, "judging/history_item.html", context), scope.collection.document_format)


# What comes before the next pair: consent, returned batches, changed guidelines


@action("judge", "POST")
def judge_consent(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Record the member's consent to the current text, and show the next pair."""
    try:
        onboarding.accept_consent(membership=scope.member, version=forms.parse_whole_number(request.POST, "version"))
    except BadInput as error:
        return render_task(request, scope, status=409, problem=str(error))
    scope.member.refresh_from_db(fields=["consent"])
    return respond_with_next(request, scope)


@action("judge", "POST")
def judge_retake(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Ask the admins for another test, after a failed one."""
    try:
        onboarding.ask_retake(membership=scope.member)
    except BadInput as error:
        return render_task(request, scope, status=409, problem=str(error))
    scope.member.refresh_from_db(fields=["retake_asked_at"])
    return respond_with_next(request, scope)


@action("judge", "GET", "POST")
def judge_returned(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the member's returned batches; POST marks them as read."""
    if request.method == "POST":
        Membership.objects.filter(pk=scope.member.pk).update(returned=0)
        return redirect("judge", scope.collection.name)
    context = {"scope": scope, "section": "judge", "batches": onboarding.returned_batches(membership=scope.member)}
    return render(request, "judging/returned.html", context)


@action("judge", "GET", "POST")
def judge_guidelines(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the changes of the guidelines; POST marks them as read."""
    if request.method == "POST":
        try:
            version = forms.parse_whole_number(request.POST, "version")
        except BadInput as error:
            return HttpResponse(str(error), status=422, content_type="text/plain; charset=utf-8")
        # Never a version that does not exist, and never an older one than before.
        version = min(version, scope.collection.guideline_version)
        Membership.objects.filter(pk=scope.member.pk, guideline_read__lt=version).update(guideline_read=version)
        return redirect("judge", scope.collection.name)
    number, lines = onboarding.guideline_changes(scope.member)
    context = {"scope": scope, "section": "judge", "number": number, "lines": lines}
    context["news"] = onboarding.has_new_guidelines(scope.member)
    return render(request, "judging/guidelines_changed.html", context)
