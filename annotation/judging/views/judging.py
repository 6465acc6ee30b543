"""The judging page: the open pair, the decision on it, and the next pair in the same answer."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe
from psycopg import Connection

from annotation import guidelines
from annotation.judging import page as judging
from annotation.judging import submitting
from annotation.judging.forms import Invalid, parse_answer, parse_draft, parse_flag, parse_item, parse_skip, parse_text
from annotation.models import Assignment
from annotation.permissions import Scope, action
from annotation.quality_control import onboarding
from annotation.queue import assignment, undo
from annotation.queue.annotators import AnnotatorContext

Decision = Callable[[Connection[Any], AnnotatorContext], object]  # What a form decides, in the transaction.


@action("judge")
@require_safe
def judge(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the member's open lease; reading never claims. With `?start` the page asks for a pair by itself."""
    return render_task(request, scope)


@action("judge")
@require_POST
def judge_next(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Claim a task: renew the open lease, or take a new one."""
    desk = AnnotatorContext.of(scope.member)
    assignment.in_transaction(lambda db: submitting.claim(db, desk))
    return respond_with_next(request, scope)


@action("judge")
@require_POST
def judge_submit(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Settle one judgment and claim the next pair."""
    return decide(
        request, scope, lambda db, desk: submitting.submit(db, desk, parse_answer(request.POST, scope.member))
    )


@action("judge")
@require_POST
def judge_skip(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Skip the pair with a reason, and claim the next."""
    return decide(request, scope, lambda db, desk: submitting.skip(db, desk, *parse_skip(request.POST)))


@action("judge")
@require_POST
def judge_flag(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Flag the pair for the adjudicators with a note, and claim the next."""
    return decide(request, scope, lambda db, desk: submitting.flag(db, desk, *parse_flag(request.POST)))


@action("judge")
@require_POST
def judge_draft(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Keep what is typed or marked on a pair: {"kept": whether the lease, running or lost, is known}."""
    desk, data = AnnotatorContext.of(scope.member), request.POST
    try:
        item = parse_item(data, scope.member)
    except Invalid as wrong:
        return HttpResponse(str(wrong), status=422, content_type="text/plain; charset=utf-8")
    kept = assignment.in_transaction(
        lambda db: assignment.save_draft(db, desk, item, data.get("token", ""), parse_draft(data))
    )
    return JsonResponse({"kept": kept})


@action("judge")
@require_POST
def judge_undo(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Undo the decision on an item: its lease is open again."""
    try:
        item = parse_item(request.POST, scope.member)
        undo.undo_decision(scope.member, item)
    except assignment.Unknown:
        raise Http404(_("You have no decision to undo.")) from None
    except (assignment.DecisionRefused, Invalid) as refused:
        return render_task(request, scope, status=409, problem=str(refused))
    # The page of a refused decision sends what was written with it: it waits on the pair again.
    undo.keep_typed(scope.member, item, parse_draft(request.POST))
    return respond_with_next(request, scope, taken_back=True)


def decide(request: HttpRequest, scope: Scope, work: Decision) -> HttpResponse:
    """Run a decision and answer with the next pair; 422 for a bad form, 409 with the text kept for a lost lease."""
    outcome = run_decision(scope, work)
    if outcome.status == 409:
        return _render_refusal(request, scope, outcome)
    if outcome.status == 422:
        return render_task(request, scope, status=outcome.status, problem=outcome.problem)
    return respond_with_next(request, scope)


class SubmitReply(NamedTuple):
    """What became of a decision: 200, or the status of a refusal and why."""

    status: int
    problem: str = ""
    decided: bool = False  # Another decision of the same person is stored.


def run_decision(scope: Scope, work: Decision) -> SubmitReply:
    """Run a decision in its transaction. Raises Http404."""
    desk = AnnotatorContext.of(scope.member)
    try:
        assignment.in_transaction(lambda db: work(db, desk))
    except (Invalid, assignment.TooSoon) as wrong:
        return SubmitReply(422, str(wrong))
    except assignment.Unknown:
        raise Http404(_("This pair was never assigned to you.")) from None
    except assignment.DecisionRefused as lost:
        return SubmitReply(409, str(lost), isinstance(lost, assignment.DecidedAlready))
    return SubmitReply(200)


def respond_with_next(request: HttpRequest, scope: Scope, *, taken_back: bool = False) -> HttpResponse:
    if request.headers.get("HX-Request"):
        return render_task(request, scope, taken_back=taken_back)
    return HttpResponseRedirect(reverse("judge", args=[scope.collection.name]), status=303)


def _render_refusal(request: HttpRequest, scope: Scope, outcome: SubmitReply) -> HttpResponse:
    """Show why a decision was refused, the text that was kept, and how to go on: to the pair again, or the next one."""
    # All that was written on the lost pair, so that its author can copy it.
    written = [request.POST.get(name, "").strip() for name in ("contribution", "evidence")]
    kept = parse_text(request.POST, "comment") or parse_text(request.POST, "note") or "\n\n".join(filter(None, written))
    item = parse_item(request.POST, scope.member)
    context: dict[str, object] = {"reason": outcome.problem, "kept": kept}
    if outcome.decided and undo.may_undo(scope.member, item):
        context |= {"changes": item, "typed": parse_draft(request.POST)}
    return _render_fragment(request, scope, "judging/_lost.html", context, status=409)


def render_task(
    request: HttpRequest, scope: Scope, *, status: int = 200, problem: str = "", taken_back: bool = False
) -> HttpResponse:
    """Show the open pair, or the page for having none."""
    work, desktop = judging.read_open_task(scope.member)
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
        # A refused form is shown again with what it held. A refused undo (409) is about another pair and sends nothing
        # of this one, whose draft stands.
        "typed": work.typed if work and status != 422 else {name: request.POST.get(name, "") for name in judging.TYPED},
    }
    if work and work.draft:
        context["texts"] = context["typed"] if status == 422 or any(work.typed.values()) else work.draft
        context["ratings"] = judging.RATINGS.items()
        return _render_fragment(request, scope, "judging/_edit.html", context, status=status)
    fragment = "judging/_work.html" if work else "judging/_rest.html"
    return _render_fragment(request, scope, fragment, context, status=status)


def _render_fragment(
    request: HttpRequest, scope: Scope, fragment: str, context: dict[str, object], *, status: int
) -> HttpResponse:
    names = ("next", "submit", "evidence", "skip", "flag", "undo", "history", "draft", "query")
    context |= {"section": "judge", **form_context(scope, names)}
    return render_pair_page(request, scope, fragment, context, status=status)


def form_context(scope: Scope, names: Sequence[str]) -> dict[str, object]:
    """Return the addresses to which a pair's forms are sent, and the reasons for a skip."""
    urls = {f"{which}_url": reverse(f"judge_{which}", args=[scope.collection.name]) for which in names}
    return {"skip_reasons": Assignment.SkipReason.choices, **urls}


def render_pair_page(
    request: HttpRequest, scope: Scope, fragment: str, context: dict[str, object], *, status: int
) -> HttpResponse:
    """Render the pair's fragment alone for HTMX, else inside the whole page."""
    collection = scope.collection
    context |= {"scope": scope, "collection": collection, "fragment": fragment}
    context["grades"] = judging.grade_choices(collection)
    if request.headers.get("HX-Request"):
        return render(request, fragment, context, status=status)
    context["guidelines"] = guidelines.current(collection)
    return render(request, "judging/page.html", context, status=status)
