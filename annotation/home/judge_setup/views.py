"""The pages of models: adding, editing and deleting one, testing it, the judges file, and debaters and voters."""

import asyncio
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from actions.options import ActionForm, show_refusal
from actions.pages import answer_action
from actions.services import Actor
from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.home.judge_setup import services
from annotation.home.judge_setup.forms import MAIN, JudgesFileForm, MembersForm, model_form
from annotation.home.judge_setup.loading import load_judges_text
from annotation.home.judge_setup.options import ModelOptions
from annotation.home.judge_setup.selectors import (
    describe_uses,
    find_judge,
    initial_options,
    list_deleted,
    list_models,
)
from annotation.quality.panels.applying import base_panel, make_panel, newest_file_panel
from charts.translation import gettext_noop
from corpus.errors import BadInput
from corpus.models import Collection
from jobs.connections import without_connection
from judges.costs.accounting import format_cost
from judges.costs.judge_records import judge_of
from judges.models import JudgeVersion
from judges.models.keys import StoredKey
from judges.panels.configuration import has_key
from judges.panels.file_text import write_judges_text
from judges.probes.checks import probe_role, run_checks
from judges.probes.stored import store_results
from judges.stored_keys import STORED

TEST_SECONDS = 45  # How long the page waits for a model.
CHANGEABLE = tuple(name for name in ModelOptions.names("page") if name != "name")
# By their names in the address, with the sentence that confirms each.
CONTROLS = {
    "delete": (services.delete_model, gettext_noop("Deleted: %(judge)s. Its answers are kept.")),
    "restore": (
        services.restore_model,
        gettext_noop("Restored: %(judge)s. A key that was stored has to be entered again."),
    ),
    "delete-key": (services.delete_key, gettext_noop("The stored key of %(judge)s was deleted.")),
}


@action("admin")
@require_GET
def models(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the configured models, the panel, and to owners the judges file."""
    return _render_models(request, scope)


@action("own")
@require_POST
def load_file(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Load a judges file, whole or not at all."""
    # All collections of the site share the judges, so only owners may change them.
    form = JudgesFileForm(request.POST, request.FILES)
    if not form.is_valid():
        return _render_models(request, scope, file_form=form, status=422)
    text = form.cleaned_data["text"]
    try:
        text, name = form.file_text()
        with transaction.atomic():
            file, changes = load_judges_text(text, name)
            changed = [judge["name"] for judge in changes["judges"] if judge["change"] != "unchanged"]
            record(scope, "judges.configured", panel=file.panel.name if file.panel else "", judges=changed)
    except BadInput as error:
        # An uploaded text is shown, so that it can be corrected.
        form = form.with_text(text)
        show_refusal(form, error)
        return _render_models(request, scope, file_form=form, status=422)
    message = ngettext(
        "Loaded: %(count)s model is new or changed.", "Loaded: %(count)s models are new or changed.", len(changed)
    )
    messages.success(request, message % {"count": len(changed)})
    return redirect("models", scope.collection.name)


@action("own", "POST")
def add_model(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Add a model; where it is refused, show the page of models with what was typed, without the key."""
    form = model_form(services.add_model, request)

    def show(form: ActionForm) -> HttpResponse:
        return _render_models(request, scope, add_form=form, status=422)

    def done(judge: JudgeVersion) -> str:
        messages.success(request, _("Added: %(judge)s. Test it before you start a campaign.") % {"judge": judge.name})
        return reverse("models", args=[scope.collection.name])

    return answer_action(request, scope, services.add_model, form, show, done)


@action("own", "GET", "POST")
def model(request: HttpRequest, scope: Scope, version: int) -> HttpResponse:
    """Show and change the settings of a model."""
    judge = find_judge(version)
    form = model_form(services.change_model, request, initial=initial_options(judge), only=CHANGEABLE)
    key = StoredKey.objects.filter(name=judge.api_key_env).first()

    def show(form: ActionForm) -> HttpResponse:
        context = {"scope": scope, "judge": judge, "form": form, "stored_key": key, "main": MAIN}
        context["uses"] = describe_uses(judge.name)
        return render(request, "judge_setup/model.html", context, status=422 if form.is_bound else 200)

    def change(actor: Actor, collection: Collection, options: ModelOptions) -> JudgeVersion:
        return services.change_model(actor, services.ConfiguredModel(collection, judge), options)

    def done(changed: JudgeVersion) -> str:
        words = _("Saved: %(judge)s, version %(version)s.")
        if key is not None and changed.api_key_env != key.name:
            words = _("Saved: %(judge)s, version %(version)s. The stored key was deleted.")
        messages.success(request, words % {"judge": changed.name, "version": changed.version})
        return reverse("models", args=[scope.collection.name])

    return answer_action(request, scope, change, form, show, done)


@action("own", "POST")
def control_model(request: HttpRequest, scope: Scope, version: int, act: str) -> HttpResponse:
    """Delete a model, restore it, or delete its stored key."""
    if act not in CONTROLS:
        raise Http404(_("Unknown action."))
    service, sentence = CONTROLS[act]
    judge = find_judge(version)
    try:
        service(Actor.of(scope), services.ConfiguredModel(scope.collection, judge))
        messages.success(request, _(sentence) % {"judge": judge.name})
    except BadInput as error:
        messages.error(request, _("No changes made: %(error)s.") % {"error": f"{error}".removesuffix(".")})
    address = reverse("models", args=[scope.collection.name])
    return redirect(f"{address}?deleted={judge.pk}#deleted-h" if act == "delete" else address)


@action("admin")
@require_POST
def test_model(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Test a model with a question whose answer is known: at most two calls, which may cost money."""
    row = get_object_or_404(
        JudgeVersion.objects.exclude(provider="offline"), name=request.POST.get("judge", ""), is_current=True
    )
    judge = judge_of(row)
    try:
        with without_connection():
            checks = run_checks([(judge, probe_role(judge))], at_length=False)
            (result,) = asyncio.run(asyncio.wait_for(checks, TEST_SECONDS))
    except TimeoutError:
        late = _(
            "%(judge)s did not answer within %(seconds)s seconds. Test it with manage.py check_judges, which waits "
            "longer."
        )
        messages.error(request, late % {"judge": row.name, "seconds": TEST_SECONDS})
    except BadInput as error:
        messages.error(request, _("%(judge)s was not asked: %(error)s.") % {"judge": row.name, "error": error})
    else:
        with transaction.atomic():
            store_results([result])
            record(scope, "judge.tested", judge=row.name, passes=not result.problem, calls=result.calls)
        values = {
            "judge": judge.name,
            "variable": judge.api_key_env,
            "problem": result.problem,
            "seconds": f"{result.seconds:.1f}",
        }
        stored = judge.api_key_env.startswith(STORED)
        if result.problem and not result.calls and stored and not has_key(judge.api_key_env):
            messages.error(request, _("%(judge)s has no key. Enter it again under Edit.") % values)
        elif result.problem and not result.calls and judge.api_key_env and not has_key(judge.api_key_env):
            messages.error(request, _("%(judge)s has no key. Set %(variable)s on the server and restart it.") % values)
        elif result.problem:
            messages.error(request, _("%(judge)s does not work: %(problem)s.") % values)
        elif result.cost is None:
            messages.success(request, _("%(judge)s works (%(seconds)s s). Set a price to see costs.") % values)
        else:
            values["cost"] = format_cost(result.cost)
            messages.success(request, _("%(judge)s works (%(seconds)s s, %(cost)s).") % values)
    return redirect("models", scope.collection.name)


@action("admin")
@require_POST
def choose_members(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Make the selected debaters and judges this collection's panel."""
    form = MembersForm(request.POST, panel=base_panel(scope.collection))
    if not form.is_valid():
        return _render_models(request, scope, members=form, status=422)
    try:
        with transaction.atomic():
            panel = make_panel(collection=scope.collection, judges=form.cleaned_data["judge"], debate=form.debate)
            record(scope, "panel.used", panel=panel.name, judges=list(panel.ensemble), debate=list(panel.debate))
    except BadInput as error:
        form.add_error("judge", f"{error}")
        return _render_models(request, scope, members=form, status=422)
    messages.success(request, _("New campaigns of this collection use the panel %(panel)s.") % {"panel": panel.name})
    return redirect("models", scope.collection.name)


def _render_models(
    request: HttpRequest,
    scope: Scope,
    *,
    file_form: JudgesFileForm | None = None,
    add_form: ActionForm | None = None,
    members: MembersForm | None = None,
    status: int = 200,
) -> HttpResponse:
    panel = base_panel(scope.collection)
    context: dict[str, Any] = {"scope": scope, "panel": panel, "models": list_models(panel)}
    context["members"] = members or MembersForm(panel=panel)
    if scope.user.is_owner:
        context |= {"add_form": add_form or model_form(services.add_model), "main": MAIN, "deleted": list_deleted()}
        context["file_form"] = file_form or JudgesFileForm(initial={"text": write_judges_text(newest_file_panel())})
    return render(request, "judge_setup/models.html", context, status=status)
