"""Gold: the expert's page and the senior's page."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from annotation.judging import forms
from annotation.judging.gold_tasks import build_gold_task
from annotation.judging.views.judging import render_pair_page
from annotation.models.quality_control import GoldAnswer
from annotation.permissions import Scope, action
from annotation.quality_control import gold
from annotation.queue.assignment import TooSoon
from corpus.errors import BadInput

Who = GoldAnswer.Who


@action("judge")
@require_http_methods(["GET", "POST"])
def grade_gold(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The expert's next pair, with a reason for and one against."""
    if not scope.member.is_expert:
        return render(request, "judging/no_expert.html", {"scope": scope, "section": "judge"})
    return _answer_gold(request, scope, Who.EXPERT)


@action("adjudicate")
@require_http_methods(["GET", "POST"])
def gold_review(request: HttpRequest, scope: Scope) -> HttpResponse:
    """The senior's next pair of the random share; what the expert said is not shown."""
    return _answer_gold(request, scope, Who.SENIOR)


def _answer_gold(request: HttpRequest, scope: Scope, who: str) -> HttpResponse:
    problem, status = "", 200
    if request.method == "POST":
        try:
            item = forms.parse_whole_number(request.POST, "item")
            gold.record_answer(
                membership=scope.member,
                gold_pair=item,
                who=who,
                grade=forms.parse_grade(request.POST, scope.collection),
                comment=forms.parse_text(request.POST, "comment"),
                milliseconds=forms.parse_milliseconds(request.POST),
                shown_ms=forms.parse_shown(request.POST, forms.GOLD, scope.member, item),
            )
        except (forms.Invalid, TooSoon) as error:
            problem, status = str(error), 422
        except BadInput as error:
            problem, status = str(error), 409
        else:
            if not request.headers.get("HX-Request"):
                return HttpResponseRedirect(reverse(_url_name(who), args=[scope.collection.name]), status=303)
    return _render_gold_pair(request, scope, who, problem, status)


def _url_name(who: str) -> str:
    return "grade_gold" if who == Who.EXPERT else "gold_review"


def _render_gold_pair(request: HttpRequest, scope: Scope, who: str, problem: str, status: int) -> HttpResponse:
    found = gold.next_for_expert(scope.member) if who == Who.EXPERT else gold.next_for_senior(scope.member)
    # Only experts practise: a senior looks at what was graded.
    practised = gold.others_on_practice(scope.member) if who == Who.EXPERT else None
    context: dict[str, object] = {
        "gold": found,
        "who": who,
        "practised": practised,
        "work": build_gold_task(scope.collection, found) if found else None,
        "shown": forms.stamp_shown(forms.GOLD, scope.member, found.pk) if found else "",
        "problem": problem,
        "typed": forms.parse_text(request.POST, "comment") if status == 422 else "",
        "submit_url": reverse(_url_name(who), args=[scope.collection.name]),
    }
    return render_pair_page(request, scope, "judging/_gold.html", context, status=status)
