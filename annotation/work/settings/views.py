"""Pages of settings, and the editor of instruction (for prompts) and guidelines (for people)."""

from typing import Any, cast

from django import forms
from django.conf import settings as site_settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from actions.options import ActionForm, show_refusal
from actions.pages import answer_action, form_of
from actions.services import Actor
from annotation.access.permissions import Scope, action
from annotation.work.settings import guidelines, services
from annotation.work.settings.services import change_settings
from corpus.collections.options import AMOUNTS, ArmWeights, SettingsOptions
from corpus.errors import BadInput
from corpus.models.texts import shown_only
from judges.costs.collection_budgets import collection_budget

WORK_OPTIONS = (
    "title", "rubric", "overlap", "order", "rounds", "lease_minutes", "min_judgment_ms", "relevant_from",
    "grade_names", "daily_target", "document_format", "long_documents", "lab",
)  # fmt: skip

LANGUAGES = site_settings.LANGUAGES
PRESET = ("preset",)


class TextForm(forms.Form):
    """The instruction or the guidelines, and the version that the writer edited."""

    text = forms.CharField(widget=forms.Textarea(attrs={"rows": 18}), max_length=50_000)
    base = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, label: str, required: bool = True, rows: int = 18, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["text"].label = label
        self.fields["text"].required = required
        self.fields["text"].widget.attrs["rows"] = rows


class ArmsForm(ActionForm):
    """The weights of the experiment arms, as a change of settings."""

    def clean(self) -> dict[str, Any]:
        """Combine the weights into the setting `arms`."""
        values = super().clean()
        if not self.errors:
            self.options = SettingsOptions(arms=cast(ArmWeights, self.options))
        return values


@action("admin")
@require_http_methods(["GET", "POST"])
def settings(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the page of settings; POST is_saving those of the judging."""
    return _change_settings(request, scope, "form", _form_of_work(request, scope), _("Settings saved."))


@action("admin")
@require_POST
def cost_settings(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Save the hourly rate and the budgets; an empty field removes a value."""
    return _change_settings(request, scope, "money", _form_of_amounts(request, scope), _("Saved. Applies from now on."))


@action("admin")
@require_POST
def arm_settings(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Save the weights of the arms; tasks that were ever assigned keep their arm."""
    message = _("Saved. Applies to pairs assigned from now on.")
    return _change_settings(request, scope, "arms", ArmsForm(ArmWeights, request.POST), message)


@action("admin")
@require_POST
def apply_preset(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Apply the settings of a published study; each can be changed afterwards."""
    form = form_of(change_settings, request, only=PRESET)
    return _change_settings(request, scope, "preset", form, _("Settings saved."))


def _form_of_work(request: HttpRequest | None, scope: Scope) -> ActionForm:
    initial = {name: getattr(scope.collection, name) for name in WORK_OPTIONS}
    initial["grade_names"] = "\n".join(scope.collection.grade_names)
    form = form_of(change_settings, request, only=WORK_OPTIONS, initial=initial)
    form.fields["rubric"].widget.attrs["form"] = "settings"  # Rendered outside the form, beside the definition.
    return form


def _form_of_amounts(request: HttpRequest | None, scope: Scope) -> ActionForm:
    initial = {name: getattr(scope.collection, name) for name in AMOUNTS}
    return form_of(change_settings, request, only=AMOUNTS, initial=initial)


def _change_settings(request: HttpRequest, scope: Scope, name: str, form: ActionForm, message: str) -> HttpResponse:
    """Save one of the page's forms, or show the page with its errors."""

    def show(form: ActionForm) -> HttpResponse:
        context = {
            "scope": scope,
            "form": _form_of_work(None, scope),
            "money": _form_of_amounts(None, scope),
            "arms": ArmsForm(ArmWeights, initial=scope.collection.arms),
            # Experiments belong to the Lab, but one that is running stays in sight.
            "has_arms": scope.collection.lab or scope.collection.arms != shown_only(),
            "caps": collection_budget(scope.collection),
            "guidelines": guidelines.current(scope.collection),
            "definition": guidelines.translate_lines(guidelines.relevance_definition(scope.collection.relevance)),
            "departs": not guidelines.follows_definition(scope.collection),
            name: form,
        }
        return render(request, "data/settings.html", context, status=422 if form.is_bound else 200)

    def done(changed: list[str]) -> str:
        messages.success(request, message if changed else _("Nothing was changed."))
        return reverse("settings", args=[scope.collection.name])

    return answer_action(request, scope, change_settings, form, show, done)


@action("admin")
@require_http_methods(["GET", "POST"])
def text_editor(request: HttpRequest, scope: Scope, kind: str) -> HttpResponse:
    """Edit the guidelines or the instruction, with a preview and earlier versions.

    `?version=3` begins with an earlier version, `?template=web.en` with a template: name and language.
    """
    editor = services.EDITORS[kind]
    version, text = editor.current(scope.collection)
    # `version` in the URL shows an earlier version; saving makes it the newest.
    shown_text, requested = text, request.GET.get("version", "")
    if requested.isdecimal():
        earlier = editor.versions(scope.collection).filter(version=int(requested))
        shown_text = earlier.values_list("text", flat=True).first() or text
    template, _dot, language = request.GET.get("template", "").partition(".")
    if kind == "guidelines" and template in guidelines.TEMPLATES and language in dict(LANGUAGES):
        shown_text = guidelines.template_text(scope.collection.relevance, template, language)
    form = TextForm(
        request.POST or None,
        label=_(editor.label),
        required=editor.required,
        rows=editor.rows,
        initial={"text": shown_text, "base": str(version)},
    )
    is_saving = request.method == "POST" and "preview" not in request.POST
    if is_saving and form.is_valid():
        try:
            base = form.cleaned_data["base"]
            number = editor.write(
                actor=Actor.of(scope),
                collection=scope.collection,
                text=form.cleaned_data["text"],
                base=int(base) if base.isdecimal() else None,
            )
            message = _("%(label)s saved, version %(number)s.")
            messages.success(request, message % {"label": _(editor.label), "number": number})
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
        "preview": form.data.get("text", "") if form.is_bound else shown_text,
        "previewed": request.method == "POST" and not is_saving,
        "definition": guidelines.translate_lines(guidelines.relevance_definition(scope.collection.relevance)),
        "departs": kind == "guidelines" and not guidelines.follows_definition(scope.collection),
        "templates": guidelines.TEMPLATES.items() if kind == "guidelines" else (),
        "languages": LANGUAGES,
    }
    return render(request, "data/text_editor.html", context, status=422 if is_saving else 200)
