"""Gold: the expert's desk and the senior's desk."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from annotation import guidelines
from annotation.judging import page, shown
from annotation.judging.debates import debate_of, text_of
from annotation.judging.forms import Invalid, grade, milliseconds, text, whole
from annotation.models.quality_control import GoldAnswer, GoldPair
from annotation.permissions import Scope, action
from annotation.quality_control import gold
from annotation.queue.assignment import TooSoon
from corpus.errors import BadInput

Who = GoldAnswer.Who


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
