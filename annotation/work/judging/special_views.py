"""Pages of gold pairs: the expert grades them, and an adjudicator reviews a random share."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from annotation.access.permissions import Scope, action
from annotation.models.quality_control import GoldAnswer
from annotation.work.judging import forms, page
from annotation.work.judging.forms import parse_text
from annotation.work.judging.views import render_pair_page
from annotation.work.quality_control import gold
from corpus.errors import BadInput, StateConflict

Who = GoldAnswer.Who


@action("judge", "GET", "POST")
def grade_gold(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the expert's next pair with a reason for and a reason against; POST stores their grade."""
    if not scope.member.is_expert:
        return render(request, "judging/no_expert.html", {"scope": scope, "section": "judge"})
    return _answer_gold(request, scope, Who.EXPERT)


@action("adjudicate", "GET", "POST")
def gold_review(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the senior's next pair of the random share, without the expert's grade; POST stores theirs."""
    return _answer_gold(request, scope, Who.SENIOR)


def _answer_gold(request: HttpRequest, scope: Scope, who: str) -> HttpResponse:
    address = reverse("grade_gold" if who == Who.EXPERT else "gold_review", args=[scope.collection.name])
    problem, status = "", 200
    if request.method == "POST":
        try:
            item = forms.parse_whole_number(request.POST, "item")
            gold.record_answer(
                membership=scope.member,
                gold_pair=item,
                who=who,
                grade=forms.parse_grade(request.POST, scope.collection),
                comment=parse_text(request.POST, "comment"),
                milliseconds=forms.parse_milliseconds(request.POST),
                shown_ms=forms.parse_shown(request.POST, forms.GOLD, scope.member, item),
            )
        except BadInput as error:
            problem, status = str(error), 422
        except StateConflict as error:
            problem, status = str(error), 409
        else:
            if not request.headers.get("HX-Request"):
                return HttpResponseRedirect(address, status=303)
    row = gold.next_for_expert(scope.member) if who == Who.EXPERT else gold.next_for_senior(scope.member)
    context: dict[str, object] = {
        "gold": row,
        "who": who,
        # Only experts have practice pairs.
        "practised": gold.others_on_practice(scope.member) if who == Who.EXPERT else None,
        "work": page.gold_task(scope.collection, row) if row else None,
        "shown": forms.stamp_shown(forms.GOLD, scope.member, row.pk) if row else "",
        "problem": problem,
        "typed": parse_text(request.POST, "comment") if status == 422 else "",
        "submit_url": address,
    }
    return render_pair_page(request, scope, "judging/_gold.html", context, status=status)
