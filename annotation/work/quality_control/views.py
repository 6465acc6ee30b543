"""Admin pages of quality control: checks, the qualification test, consent, experts, gold samples."""

from collections.abc import Callable
from functools import wraps

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from actions.errors import BadOption
from actions.options import ActionForm, show_refusal
from actions.pages import answer_action, form_of
from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.models import Membership, Role
from annotation.models.quality_control import ArgumentsRequest, Batch, ConsentText, GoldSet
from annotation.work.quality_control import (
    attention_checks,
    consent,
    explanations,
    gold,
    gold_reasons,
    onboarding,
    qualification,
)
from annotation.work.quality_control.forms import ChecksForm, ConsentForm, ExplanationsForm, GoldForm, SizeForm
from annotation.work.settings.services import change_settings
from corpus.errors import BadInput
from corpus.labels import reference_grades
from corpus.numbered import numbered_or_404

RETAKE_PAGES = ("members", "collection")  # Pages that let somebody take the test again, beside the settings.
SETTINGS = ("checks", "repeats", "batch", "qualification", "pass_mark")


def _explain_refusal(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorate a view that may raise BadInput: the settings page then shows the reason."""

    @wraps(view)
    def wrapper(request: HttpRequest, scope: Scope, **kwargs: int) -> HttpResponse:
        try:
            return view(request, scope, **kwargs)
        except BadInput as error:
            return _render_quality_settings(request, scope, problem=str(error), status=422)

    return wrapper


@action("admin", "GET", "POST")
def quality_settings(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show and save the settings: checks, repeats, batches, the test, consent."""

    def show(form: ActionForm) -> HttpResponse:
        return _render_quality_settings(request, scope, form=form, status=422 if form.is_bound else 200)

    def done(changed: list[str]) -> str:
        messages.success(request, _("Settings saved."))
        return reverse("quality_control", args=[scope.collection.name])

    return answer_action(request, scope, change_settings, _settings_form(request, scope), show, done)


def _settings_form(request: HttpRequest | None, scope: Scope) -> ActionForm:
    initial = {name: getattr(scope.collection, name) for name in SETTINGS}
    return form_of(change_settings, request, only=SETTINGS, initial=initial)


@action("admin", "POST")
@_explain_refusal
def make_checks(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Make attention checks from gold pairs."""
    form = ChecksForm(request.POST, prefix="checks")
    if not form.is_valid():
        return _render_quality_settings(request, scope, sizes=form, status=422)
    options = form.cleaned_data
    n = attention_checks.make_checks(
        collection=scope.collection, count=options["size"], seed=options["seed"], by=scope.user, form=options["form"]
    )
    return _confirm(request, scope, ngettext("%(n)s check created.", "%(n)s checks created.", n) % {"n": n})


@action("admin", "POST")
def withdraw_checks(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Withdraw all attention checks."""
    n = attention_checks.withdraw_checks(collection=scope.collection, by=scope.user)
    text = ngettext("%(n)s check withdrawn.", "%(n)s checks withdrawn.", n)
    return _confirm(request, scope, text % {"n": n})


@action("admin", "POST")
@_explain_refusal
def write_arguments(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Request debates by models about gold pairs that only the offline agents have argued about."""
    with transaction.atomic():
        is_queued = gold_reasons.write_later(scope.collection, by=scope.user)
    if not is_queued:
        raise BadInput(_("No model is configured to write debates, or they are already being written."))
    return _confirm(request, scope, _("Debates are being written. Reload the page to see progress."))


@action("admin", "POST")
@_explain_refusal
def make_qualification(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Make a new qualification test."""
    form = SizeForm(request.POST, prefix="test")
    if not form.is_valid():
        return _render_quality_settings(request, scope, test=form, status=422)
    options = form.cleaned_data
    qualification.make_test(collection=scope.collection, size=options["size"], seed=options["seed"], by=scope.user)
    text = _("The test is ready. Annotators who have not passed one take it before they receive pairs.")
    return _confirm(request, scope, text)


@action("admin", "POST")
@_explain_refusal
def write_consent(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Store a new version of the consent text; with `stop`, disable consent."""
    if "stop" in request.POST:
        consent.disable_consent(collection=scope.collection, by=scope.user)
        return _confirm(request, scope, _("Consent is no longer requested. Recorded consents are kept."))
    form = ConsentForm(request.POST)
    if not form.is_valid():
        return _render_quality_settings(request, scope, text=form, status=422)
    number = consent.write(collection=scope.collection, text=form.cleaned_data["text"], by=scope.user)
    text = _("Version %(number)s is active. Everyone must agree before their next pair.")
    return _confirm(request, scope, text % {"number": number})


def _confirm(request: HttpRequest, scope: Scope, text: str, page: str = "quality_control") -> HttpResponse:
    messages.success(request, text)
    return redirect(page, scope.collection.name)


def _render_quality_settings(
    request: HttpRequest, scope: Scope, *, status: int = 200, **overrides: forms.BaseForm | str
) -> HttpResponse:
    """Render the settings page; `overrides` replaces its forms and its problem."""
    # The form begins with the newest text, even where consent is disabled.
    newest_text = ConsentText.current(scope.collection)
    ordinary, gold_pairs = attention_checks.read_features(scope.collection)
    free = qualification.free_gold_pairs(scope.collection, reference_grades(scope.collection))
    writing = ArgumentsRequest.objects.filter(collection=scope.collection).order_by("-pk").first()
    context = {
        "scope": scope,
        "form": _settings_form(None, scope),
        "sizes": ChecksForm(prefix="checks", initial={"size": 20, "seed": scope.collection.seed}),
        "test": SizeForm(prefix="test", initial={"size": 20, "seed": scope.collection.seed}),
        "text": ConsentForm(initial={"text": newest_text.text if newest_text else _(consent.DEFAULT)}),
        "problem": "",
        "consent": newest_text if scope.collection.consent_version else None,
        "pool": attention_checks.count_pool(scope.collection, ordinary, gold_pairs),
        "arguments": gold_reasons.forecast_arguments(scope.collection, ordinary, gold_pairs),
        "writing": writing,
        "writing_waits": gold_reasons.is_pending(writing),
        # A test needs at least one pair beyond practice.
        "test_room": free[: gold.PRACTICE_COUNT + 1].count() > gold.PRACTICE_COUNT,
        "tests": qualification.list_tests(scope.collection),
        "annotators": qualification.list_annotators_by_result(scope.collection),
        # All closed batches, those with missed checks, and those without any check.
        "batches": Batch.objects.filter(membership__collection=scope.collection).aggregate(
            closed=Count("pk"), missed=Count("pk", filter=Q(missed__gt=0)), unchecked=Count("pk", filter=Q(checks=0))
        ),
        "returned": onboarding.returned_batches(membership__collection=scope.collection, reversed_by=None),
        **overrides,
    }
    return render(request, "quality_control/quality_control.html", context, status=status)


@action("admin", "POST")
@_explain_refusal
def person_qualification(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """Let a member who failed take another test or, with `pass`, work without one."""
    row = scope.find_member(member)
    if "pass" in request.POST:
        qualification.waive_test(membership=row, by=scope.user)
        message = _("Test waived for %(name)s.")
    else:
        qualification.allow_retake(membership=row, by=scope.user)
        message = _("%(name)s can take the test again.")
    # Back to the page whose button it was.
    page = request.POST.get("page", "")
    return _confirm(
        request, scope, message % {"name": row.user.username}, page if page in RETAKE_PAGES else "quality_control"
    )


@action("admin", "POST")
def person_expert(request: HttpRequest, scope: Scope, member: int) -> HttpResponse:
    """Make a member an expert (`on` = 1), or end that."""
    row, is_expert = scope.find_member(member), request.POST.get("on") == "1"
    with transaction.atomic():
        Membership.objects.filter(pk=row.pk).update(is_expert=is_expert)
        # Others are measured by the experts' grades, so the audit log records who appointed them.
        record(scope, "member.expert", concerns=row.user, expert=is_expert)
    message = _("%(name)s can now grade gold pairs.") if is_expert else _("%(name)s no longer grades gold pairs.")
    return _confirm(request, scope, message % {"name": row.user.username}, "gold")


# Gold: the samples and their answers


USUAL = 50  # The default size of a sample.


@action("admin", "GET", "POST")
def gold_sets(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the gold samples with their progress; POST draws one."""
    form = GoldForm(request.POST or None, initial={"size": USUAL, "seed": scope.collection.seed, "spot": 0.2})
    problem = ""
    if request.method == "POST" and form.is_valid():
        options = form.cleaned_data
        try:
            gold_set = gold.draw(collection=scope.collection, by=scope.user, **options)
        except BadInput as error:
            problem = str(error)
        else:
            n = gold_set.pairs.filter(practice=False).count()
            return _confirm(request, scope, _("%(n)s pairs drawn, plus practice pairs.") % {"n": n}, "gold")
    return _render_gold(request, scope, form, ExplanationsForm(), problem, 422 if form.is_bound else 200)


@action("admin", "POST")
def upload_explanations(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Store the explanations of an uploaded CSV file."""
    form = ExplanationsForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            stored, unknown = explanations.upload_explanations(
                collection=scope.collection, file=form.cleaned_data["file"], by=scope.user
            )
        except BadInput as error:
            show_refusal(form, BadOption("file", str(error)))
        else:
            text = ngettext("%(n)s explanation changed.", "%(n)s explanations changed.", stored) % {"n": stored}
            if unknown:
                rows = ngettext("%(n)s row names no gold pair.", "%(n)s rows name no gold pair.", unknown)
                text = f"{text} {rows % {'n': unknown}}"
            return _confirm(request, scope, text, "gold")
    draw_form = GoldForm(initial={"size": USUAL, "seed": scope.collection.seed, "spot": 0.2})
    return _render_gold(request, scope, draw_form, form, "", 422)


@action("admin", "GET")
def gold_csv(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Download all gold with its explanations as CSV."""
    headers = {"Content-Disposition": f'attachment; filename="{scope.collection.name}-gold.csv"'}
    lines = explanations.csv_lines(scope.collection)
    return HttpResponse("".join(lines), content_type="text/csv; charset=utf-8", headers=headers)


def _render_gold(
    request: HttpRequest, scope: Scope, form: GoldForm, uploads: ExplanationsForm, problem: str, status: int
) -> HttpResponse:
    members = Membership.objects.filter(collection=scope.collection, is_active=True).exclude(role=Role.VIEWER)
    members = members.select_related("user")
    context = {
        "scope": scope,
        "form": form,
        "uploads": uploads,
        "problem": problem,
        "sets": gold.list_progress(scope.collection),
        "members": members.order_by("-is_expert", "user__username"),
        "drawn": USUAL + gold.PRACTICE_COUNT,
        "arguments": gold_reasons.forecast_sample(scope.collection, USUAL + gold.PRACTICE_COUNT),
    }
    return render(request, "quality_control/gold.html", context, status=status)


@action("admin", "POST")
def gold_end(request: HttpRequest, scope: Scope, gold_set: int) -> HttpResponse:
    """End a gold sample: its remaining pairs are not assigned any more."""
    rows = GoldSet.objects.select_related("collection")
    row = numbered_or_404(rows, scope.collection, gold_set, _("Gold sample not found."))
    gold.end(gold_set=row, by=scope.user)
    return _confirm(request, scope, _("The sample has ended. Expert grades are kept."), "gold")


@action("admin", "GET")
def gold_answers(request: HttpRequest, scope: Scope, gold_set: int) -> HttpResponse:
    """Show every pair of a sample with its answers."""
    row = numbered_or_404(GoldSet.objects, scope.collection, gold_set, _("Gold sample not found."))
    # A sample has hundreds of pairs, so all their answers are read together.
    pairs = row.pairs.select_related("pair__query", "pair__document").prefetch_related("answers__membership__user")
    context = {"scope": scope, "gold_set": row, "pairs": pairs.order_by("place")}
    return render(request, "quality_control/gold_answers.html", context)
