"""Gold: the admin's page of samples, the expert's desk, the senior's desk."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotation.audit_log.recording import record
from annotation.data import guidelines
from annotation.judging import page, shown
from annotation.judging.debates import debate_of, text_of
from annotation.judging.forms import Invalid, grade, milliseconds, text, whole
from annotation.models import Membership
from annotation.models.quality_control import GoldAnswer, GoldPair, GoldSet
from annotation.permissions import Scope, action
from annotation.quality_control import gold, gold_reasons, near_pairs
from annotation.quality_control.forms import GoldForm
from annotation.queue.assignment import TooSoon
from corpus.errors import BadInput

Who = GoldAnswer.Who
USUAL = 50
"""Pairs of a sample, unless the form says otherwise."""


@action("admin")
@require_http_methods(["GET", "POST"])
def gold_sets(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The samples and how far they are; POST draws one."""
    form = GoldForm(request.POST or None, initial={"size": USUAL, "seed": scope.collection.seed, "spot": 0.2})
    problem = ""
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            made = gold.draw(collection=scope.collection, by=scope.user, **given)
        except BadInput as error:
            problem = str(error)
        else:
            n = made.pairs.filter(practice=False).count()
            messages.success(request, _("%(n)s pairs were drawn, and practice before them.") % {"n": n})
            return redirect("gold", scope.collection.name)
    members = Membership.objects.filter(collection=scope.collection, is_active=True).select_related("user")
    context = {
        "scope": scope,
        "section": "members",
        "form": form,
        "problem": problem,
        "sets": gold.progress(scope.collection),
        "members": members.order_by("-is_expert", "user__username"),
        "drawn": USUAL + gold.PRACTICE,
        "arguments": gold_reasons.of_sample(scope.collection, USUAL + gold.PRACTICE),
    }
    return render(request, "care/gold.html", context, status=422 if form.is_bound else 200)


@action("admin")
@require_POST
def gold_end(request: HttpRequest, scope: Scope, gold_set: int) -> HttpResponse:
    """No more pairs of a sample are handed out."""
    row = get_object_or_404(GoldSet.objects.select_related("collection"), pk=gold_set, collection=scope.collection)
    gold.end(gold_set=row, by=scope.user)
    messages.success(request, _("The sample is ended. What experts said stays."))
    return redirect("gold", scope.collection.name)


@action("judge")
@require_http_methods(["GET", "POST"])
def gold_desk(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The expert's next pair, with a reason for and one against."""
    if not scope.member.is_expert:
        return render(request, "care/no_expert.html", {"scope": scope, "section": "judge"})
    return _desk(request, scope, Who.EXPERT)


@action("adjudicate")
@require_http_methods(["GET", "POST"])
def gold_review(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The senior's next pair of the random share; what the expert said is not shown."""
    return _desk(request, scope, Who.SENIOR)


def _desk(request: HttpRequest, scope: Scope, who: str) -> HttpResponse:
    problem, status = "", 200
    if request.method == "POST":
        try:
            item = whole(request.POST, "item")
            gold.answer(
                membership=scope.member,
                gold_pair=item,
                who=who,
                grade=grade(request.POST, scope.collection),
                comment=text(request.POST, "comment"),
                milliseconds=milliseconds(request.POST),
                shown_ms=shown.shown_ms(request.POST.get("shown", ""), shown.GOLD, scope.member, item),
            )
        except (Invalid, TooSoon) as error:
            problem, status = str(error), 422
        except BadInput as error:
            problem, status = str(error), 409
        else:
            if not request.headers.get("HX-Request"):
                return HttpResponseRedirect(reverse(_address(who), args=[scope.collection.name]), status=303)
    return _page(request, scope, who, problem, status)


def _address(who: str) -> str:
    return "gold_desk" if who == Who.EXPERT else "gold_review"


def _page(request: HttpRequest, scope: Scope, who: str, problem: str, status: int) -> HttpResponse:
    found = gold.next_for_expert(scope.member) if who == Who.EXPERT else gold.next_for_senior(scope.member)
    practised = gold.others_on_practice(scope.member) if who == Who.EXPERT else None
    context: dict[str, object] = {
        "scope": scope,
        "collection": scope.collection,
        "section": "gold",
        "gold": found,
        "who": who,
        "practised": practised,
        "work": _work(scope, found) if found else None,
        "shown": shown.stamp(shown.GOLD, scope.member, found.pk) if found else "",
        "problem": problem,
        "typed": text(request.POST, "comment") if status == 422 else "",
        "submit_url": reverse(_address(who), args=[scope.collection.name]),
        "grades": page.grades(scope.collection),
    }
    fragment = "care/_gold.html"
    if request.headers.get("HX-Request"):
        return render(request, fragment, context, status=status)
    context |= {"fragment": fragment, "guidelines": guidelines.current(scope.collection)}
    return render(request, "judging/page.html", context, status=status)


def _work(scope: Scope, row: GoldPair) -> page.TaskView:
    """The pair as the fragments of the judging page show it."""
    pair = row.pair
    return page.TaskView(
        item=row.pk,
        token="",
        seconds=0,
        why="",
        query=text_of(pair.query.text),
        answers=tuple(text_of(answer) for answer in pair.query.answers),
        need=text_of(pair.query.instruction or scope.collection.instruction),
        title=text_of(pair.document.title),
        document=text_of(pair.document.text),
        source=pair.document.external_id,
        debate=debate_of(row.turns),
    )


@action("admin")
@require_GET
def gold_answers(request: HttpRequest, scope: Scope, gold_set: int) -> HttpResponse:
    """Every pair of a sample with what was said about it."""
    row = get_object_or_404(GoldSet, pk=gold_set, collection=scope.collection)
    pairs = row.pairs.select_related("pair__query", "pair__document").prefetch_related("answers__membership__user")
    context = {"scope": scope, "section": "members", "gold_set": row, "pairs": pairs.order_by("place")}
    return render(request, "care/gold_answers.html", context)


@action("admin")
@require_GET
def near_duplicates(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Near-duplicate pairs with different labels, side by side."""
    context = {"scope": scope, "section": "members", "near": near_pairs.near_pairs(scope.collection)}
    return render(request, "care/near.html", context)


@action("admin")
@require_POST
def compare_near_duplicates(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Compare a large collection's labels anew; a worker does it where one lives."""
    with transaction.atomic():
        done = near_pairs.refresh(scope.collection)
        record(scope, "statistics.asked")
    messages.info(request, _("The labels were compared.") if done else _("A worker compares the labels."))
    return redirect("near_pairs", scope.collection.name)
