"""Settings of a collection, and its texts: the instruction (in prompts) and the guidelines (for people)."""

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from actions.options import show_refusal
from annotation import guidelines
from annotation.audit_log.recording import record
from annotation.data import texts
from annotation.data.forms import NAMES, ArmWeightsForm, CostSettingsForm, SettingsForm, TextForm
from annotation.permissions import Scope, action
from corpus.collections.configure import PRESETS, configure_collection
from corpus.errors import BadInput
from judges.costs.collection_budgets import collection_budget


@action("admin")
@require_http_methods(["GET", "POST"])
def settings(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show and save how work is handed out; the page links to the texts."""
    form = SettingsForm(request.POST or None, instance=scope.collection)
    if request.method == "POST" and form.is_valid():
        try:
            texts.save_settings(collection=form.save(commit=False), changed=form.changed_data, by=scope.user)
        except BadInput as error:  # somebody labelled or changed the scale meanwhile
            show_refusal(form, error)
        else:
            messages.success(request, _("Settings saved."))
            return redirect("settings", scope.collection.name)
    return _settings_page(request, scope, form, status=422 if form.is_bound else 200)


def _settings_page(
    request: HttpRequest,
    scope: Scope,
    form: SettingsForm | None = None,
    *,
    money: CostSettingsForm | None = None,
    arms: ArmWeightsForm | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the page with its forms, of which one may hold what could not be saved."""
    if form is not None and form.is_bound:
        scope.collection.refresh_from_db()
    context = {
        "scope": scope,
        "form": form or SettingsForm(instance=scope.collection),
        "money": money or CostSettingsForm.of(scope.collection),
        "arms": arms or ArmWeightsForm.of(scope.collection),
        "caps": collection_budget(scope.collection),
        "guidelines": guidelines.current(scope.collection),
        "definition": guidelines.translate_lines(guidelines.relevance_definition(scope.collection.relevance)),
        "departs": not guidelines.follows_definition(scope.collection),
    }
    return render(request, "data/settings.html", context, status=status)


@action("admin")
@require_POST
def cost_settings(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Save the hourly rate and the budgets; an empty field removes a value."""
    form = CostSettingsForm(request.POST)
    if not form.is_valid():
        return _settings_page(request, scope, money=form, status=422)
    wanted = {name: form.cleaned_data[name] for name in NAMES}
    with transaction.atomic():
        changed = configure_collection(scope.collection, wanted)
        record(scope, "settings.money", **wanted)
    messages.success(request, _("Saved. Applies from now on.") if changed else _("Nothing was changed."))
    return redirect("settings", scope.collection.name)


@action("admin")
@require_POST
def arm_settings(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Save the weights of the arms; items that somebody has, or had, keep their arm."""
    form = ArmWeightsForm(request.POST)
    if not form.is_valid():
        return _settings_page(request, scope, arms=form, status=422)
    with transaction.atomic():
        changed = configure_collection(scope.collection, {"arms": form.weights})
        if changed:
            record(scope, "settings.arms", arms=form.weights)
    messages.success(
        request, _("Saved. Applies to pairs assigned from now on.") if changed else _("Nothing was changed.")
    )
    return redirect("settings", scope.collection.name)


@action("admin")
@require_POST
def apply_preset(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Set what a paper's study used; the form below the button shows it, and every value can be changed again."""
    preset = PRESETS.get(request.POST.get("preset", ""))
    if preset is None:
        raise Http404
    with transaction.atomic():
        if changed := configure_collection(scope.collection, preset):
            record(scope, "settings.changed", **{key: preset[key] for key in changed})
    messages.success(request, _("Settings saved.") if changed else _("These settings were already in use."))
    return redirect("settings", scope.collection.name)


@action("admin")
@require_http_methods(["GET", "POST"])
def text_editor(request: HttpRequest, scope: Scope, kind: str) -> HttpResponse:
    """Edit what annotators are told, or what prompts say is relevant: editor, preview, earlier versions."""
    editor = texts.EDITORS[kind]
    version, text = editor.current(scope.collection)
    shown = _shown_version(request, editor, scope, text)
    form = TextForm(
        request.POST or None,
        label=_(editor.label),
        required=editor.required,
        rows=editor.rows,
        initial={"text": shown, "base": str(version)},
    )
    saves = request.method == "POST" and "preview" not in request.POST
    if saves and form.is_valid():
        try:
            _save_version(request, scope, editor, form)
            return redirect("settings", scope.collection.name)
        except BadInput as error:
            show_refusal(form, error)
    context = {
        "scope": scope,
        "editor": editor,
        "kind": kind,
        "form": form,
        "version": version,
        "versions": editor.versions(scope.collection)[:50],
        "preview": form.data.get("text", "") if form.is_bound else shown,
        "previewed": request.method == "POST" and not saves,
        "definition": guidelines.translate_lines(guidelines.relevance_definition(scope.collection.relevance)),
        "departs": kind == "guidelines" and not guidelines.follows_definition(scope.collection),
    }
    return render(request, "data/text_editor.html", context, status=422 if saves else 200)


def _shown_version(request: HttpRequest, editor: texts.Editor, scope: Scope, held: str) -> str:
    """An earlier version, when one was asked for: saving it makes it the newest."""
    asked = request.GET.get("version", "")
    if not asked.isdecimal():
        return held
    return editor.versions(scope.collection).filter(version=int(asked)).values_list("text", flat=True).first() or held


def _save_version(request: HttpRequest, scope: Scope, editor: texts.Editor, form: TextForm) -> None:
    base = form.cleaned_data["base"]
    number = editor.write(
        collection=scope.collection,
        text=form.cleaned_data["text"],
        author=scope.user,
        base=int(base) if base.isdecimal() else None,
    )
    messages.success(request, _("%(label)s saved, version %(number)s.") % {"label": _(editor.label), "number": number})
