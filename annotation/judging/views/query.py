"""All waiting pairs of a query on one page: the query pinned, one key for each document."""

from dataclasses import replace

from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from annotation import guidelines
from annotation.judging import page, submitting
from annotation.judging.forms import Invalid, parse_answer, parse_draft, parse_flag, parse_item, parse_skip
from annotation.judging.views.judging import Decision, form_context, run_decision
from annotation.permissions import Scope, action
from annotation.quality_control import onboarding
from annotation.queue import assignment, undo
from annotation.queue.annotators import AnnotatorContext


@action("judge")
@require_safe
def judge_query(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The pairs that the member holds; reading never claims."""
    works = page.read_open_tasks(scope.member)
    # Texts to edit and the qualification test need more room than a card has.
    # What stands before the next task (consent, the test, a pause) has its page there, too: no button does nothing.
    if works[0].only_alone if works else onboarding.find_stop(scope.member):
        return HttpResponseRedirect(reverse("judge", args=[scope.collection.name]))
    context = _base_context(scope) | {
        "works": works,
        "work": works[0] if works else None,
        "desktop": page.read_desktop(scope.member),
        "guidelines": guidelines.current(scope.collection),
        "section": "judge",
    }
    return render(request, "judging/query.html", context)


@action("judge")
@require_POST
def judge_query_next(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Claim the pairs of the next query; those that are held already are renewed."""
    desk = AnnotatorContext.of(scope.member)
    assignment.in_transaction(lambda db: submitting.claim_query(db, desk))
    return HttpResponseRedirect(reverse("judge_query", args=[scope.collection.name]), status=303)


@action("judge")
@require_POST
def judge_query_submit(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Submit the judgment of one pair; the answer is its card: judged, or in the reveal arm with its debate."""
    return _decide(
        request, scope, lambda db, desk: assignment.submit_judgment(db, desk, parse_answer(request.POST, scope.member))
    )


@action("judge")
@require_POST
def judge_query_skip(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Skip one pair with a reason."""
    return _decide(request, scope, lambda db, desk: assignment.skip(db, desk, *parse_skip(request.POST)))


@action("judge")
@require_POST
def judge_query_flag(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Flag one pair for the adjudicators with a note."""
    return _decide(request, scope, lambda db, desk: assignment.flag(db, desk, *parse_flag(request.POST)))


def _decide(request: HttpRequest, scope: Scope, work: Decision) -> HttpResponse:
    """Run a decision and answer with the pair's card; 422 for a bad form, 409 for a lost lease."""
    item = _parse_item(request, scope)
    outcome = run_decision(scope, work)
    changes = outcome.decided and undo.may_undo(scope.member, item)
    return _render_card(request, scope, item, problem=outcome.problem, status=outcome.status, changes=changes)


@action("judge")
@require_POST
def judge_query_undo(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Undo the decision on a pair: its card is open again."""
    item = _parse_item(request, scope)
    try:
        undo.undo_decision(scope.member, item)
    except assignment.Unknown:
        raise Http404(_("You have no decision to undo.")) from None
    except assignment.DecisionRefused as refused:
        return _render_card(request, scope, item, problem=str(refused), status=409)
    undo.keep_typed(scope.member, item, parse_draft(request.POST))
    return _render_card(request, scope, item)


def _parse_item(request: HttpRequest, scope: Scope) -> int:
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
    context = _base_context(scope) | {"work": work, "open": bool(works), "problem": problem}
    context |= {"changes": changes, "typed": typed, "kept": "" if works else "\n\n".join(typed.values())}
    return render(request, "judging/_card.html", context, status=status)


def _base_context(scope: Scope) -> dict[str, object]:
    names = ("query_next", "query_submit", "query_skip", "query_flag", "query_undo", "draft", "history")
    context = {"scope": scope, "collection": scope.collection, "grades": page.grade_choices(scope.collection)}
    return context | form_context(scope, names)
