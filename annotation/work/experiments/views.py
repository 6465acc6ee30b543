"""Pages of the experiment arms: their measures, and paired studies."""

import json
from datetime import date
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from actions.options import show_refusal, text_of
from annotation.access.permissions import Scope, action
from annotation.models import Study
from annotation.work.experiments import report
from annotation.work.experiments.page import build_page
from annotation.work.experiments.studies import MOST, end_study, list_candidates, make_study
from corpus.chart_downloads import download
from corpus.collections.arm_allocation import ARMS
from corpus.collections.options import ArmWeights
from corpus.errors import BadInput
from corpus.models import Collection
from corpus.numbered import numbered_or_404


class DebateEffectForm(forms.Form):
    """The form that starts a debate effect study: its pairs, people and overlap."""

    pairs = forms.IntegerField(
        min_value=1,
        max_value=MOST,
        initial=50,
        label=gettext_lazy("Pairs"),
        help_text=gettext_lazy("Drawn at random from the escalated pairs."),
    )
    overlap = forms.IntegerField(
        min_value=1,
        max_value=25,
        initial=3,
        label=gettext_lazy("People per group and pair"),
        help_text=gettext_lazy("Usually three: an odd number always gives a majority."),
    )
    people = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Participants"),
        help_text=gettext_lazy("They are assigned to two groups at random."),
    )
    gold = forms.BooleanField(
        required=False,
        initial=True,
        label=gettext_lazy("Only pairs with a reference grade, so that correct votes can be counted"),
    )

    def __init__(self, data: Any = None, *, collection: Collection) -> None:
        super().__init__(data)
        names = list_candidates(collection).order_by("user__username").values_list("pk", "user__username")
        self.fields["people"].choices = [(str(pk), name) for pk, name in names]  # type: ignore[attr-defined]


@action("admin", "GET")
def debate_effect(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the measures of the arms, changed votes, saved seconds and paired studies."""
    return _render_debate_effect(request, scope, DebateEffectForm(collection=scope.collection))


@action("admin", "GET")
def debate_effect_json(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Download the report as JSON, with every study."""
    text = json.dumps(_build_document(request, scope), indent=1, ensure_ascii=False)
    return HttpResponse(text, content_type="application/json", headers=_download_headers(scope, "json"))


@action("admin", "GET")
def debate_effect_csv(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Download the report as CSV, with a line for each statistic."""
    text = "".join(report.csv_lines(_build_document(request, scope)))
    return HttpResponse(text, content_type="text/csv; charset=utf-8", headers=_download_headers(scope, "csv"))


@action("admin", "POST")
def new_study(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Start a study: draw its pairs and groups, and reserve the pairs."""
    form = DebateEffectForm(request.POST, collection=scope.collection)
    if not form.is_valid():
        return _render_debate_effect(request, scope, form, status=422)
    options = form.cleaned_data
    try:
        make_study(
            by=scope,
            collection=scope.collection,
            people=[int(person) for person in options["people"]],
            pairs=options["pairs"],
            overlap=options["overlap"],
            gold=options["gold"],
            seed=scope.collection.seed,
        )
    except BadInput as error:
        show_refusal(form, error)
        return _render_debate_effect(request, scope, form, status=422)
    messages.success(request, _("Study started. Participants receive its pairs first."))
    return redirect("debate_effect", scope.collection.name)


@action("admin", "POST")
def stop_study(request: HttpRequest, scope: Scope, study: int) -> HttpResponse:
    """End a study: withdraw its open items."""
    end_study(scope, numbered_or_404(Study.objects, scope.collection, study, _("Study not found.")))
    messages.success(request, _("Study ended. Judgments are kept."))
    return redirect("debate_effect", scope.collection.name)


def _render_debate_effect(
    request: HttpRequest, scope: Scope, form: DebateEffectForm, status: int = 200
) -> HttpResponse:
    since = _parse_since(request)
    source = f"{scope.collection.name}, {date.today().isoformat()}"
    effect = report.measure_debate_effect(scope.collection, since)
    page, charts = build_page(effect, report.list_studies(scope.collection), source)
    if file := download(request, charts):
        return file
    context = {"scope": scope, "page": page, "form": form, "since": since}
    context["weights"] = [(text_of(ArmWeights, arm).title, scope.collection.arms.get(arm, 0)) for arm in ARMS]
    return render(request, "experiments/debate_effect.html", context, status=status)


def _build_document(request: HttpRequest, scope: Scope) -> dict[str, object]:
    effect = report.measure_debate_effect(scope.collection, _parse_since(request))
    return report.build_json_document(effect, report.list_studies(scope.collection, most=1000))


def _parse_since(request: HttpRequest) -> date | None:
    """Parse the date from which votes count; None where it is missing or no date."""
    try:
        return parse_date(request.GET.get("since", ""))
    except ValueError:
        return None


def _download_headers(scope: Scope, ending: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{scope.collection.name}-arms.{ending}"'}
