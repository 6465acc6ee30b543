"""The page of models: loading the judges file, testing a model, choosing debaters and voters."""

import asyncio
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from actions.options import show_refusal
from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.home.judge_setup.forms import JudgesFileForm, MembersForm
from annotation.home.judge_setup.loading import load_judges_text
from annotation.home.judge_setup.selectors import list_models
from annotation.quality.panels.applying import base_panel, make_panel, newest_file_panel
from corpus.errors import BadInput
from jobs.connections import without_connection
from judges.costs.accounting import format_cost
from judges.costs.judge_records import judge_of
from judges.models import JudgeVersion
from judges.panels.configuration import has_key
from judges.panels.file_text import write_judges_text
from judges.probes.checks import probe_role, run_checks
from judges.probes.stored import store_results

TEST_SECONDS = 45  # How long the page waits for a model.


@action("admin")
@require_GET
def models(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the configured models, the panel, and to owners the judges file."""
    return _render_models(request, scope)


@action("own")
@require_POST
def load_file(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Load a judges file, whole or not at all; "add" appends the form's model to the file."""
    # All collections of the site share the judges, so only owners may change them.
    form = JudgesFileForm(request.POST, request.FILES)
    if not form.is_valid():
        return _render_models(request, scope, file_form=form, status=422)
    text = form.cleaned_data["text"]
    try:
        text, name = form.file_text()
        complete_text = form.append_to(text) if "add" in request.POST else text
        with transaction.atomic():
            file, changes = load_judges_text(complete_text, name)
            changed = [judge["name"] for judge in changes["judges"] if judge["change"] != "unchanged"]
            record(scope, "judges.configured", panel=file.panel.name if file.panel else "", judges=changed)
    except BadInput as error:
        # An uploaded text is shown, so that it can be corrected; a model to append stays only in its fields.
        form = form.with_text(text)
        show_refusal(form, error)
        return _render_models(request, scope, file_form=form, status=422)
    message = ngettext(
        "Loaded: %(count)s model is new or changed.", "Loaded: %(count)s models are new or changed.", len(changed)
    )
    messages.success(request, message % {"count": len(changed)})
    return redirect("models", scope.collection.name)


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
        if result.problem and not result.calls and judge.api_key_env and not has_key(judge.api_key_env):
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
    members: MembersForm | None = None,
    status: int = 200,
) -> HttpResponse:
    panel = base_panel(scope.collection)
    context: dict[str, Any] = {"scope": scope, "panel": panel, "models": list_models(panel)}
    context["members"] = members or MembersForm(panel=panel)
    if scope.user.is_owner:
        context["file_form"] = file_form or JudgesFileForm(initial={"text": write_judges_text(newest_file_panel())})
    return render(request, "judge_setup/models.html", context, status=status)
