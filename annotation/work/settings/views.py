"""Settings, and texts: the instruction (in prompts) and the guidelines (for people)."""

from typing import Any, cast

from django import forms
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
from judges.costs.collection_budgets import collection_budget

OF_WORK = (
    "title", "rubric", "overlap", "order", "rounds", "lease_minutes", "min_judgment_ms", "relevant_from",
    "daily_target", "markdown", "long_documents",
)  # fmt: skip


PRESET = ("preset",)


class TextForm(forms.Form):
    """The instruction or the guidelines, and which version the writer started from."""

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
        """Gather the weights into the one setting that they are."""
        values = super().clean()
        if not self.errors:
            self.options = SettingsOptions(arms=cast(ArmWeights, self.options))
        return values


@action("admin")
@require_http_methods(["GET", "POST"])
def settings(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show and save how work is handed out; the page links to the services."""
    return _change_settings(request, scope, "form", _form_of_work(request, scope), _("Settings saved."))


@action("admin")
@require_POST
def cost_settings(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Save the hourly rate and the budgets; an empty field removes a value."""
    return _change_settings(request, scope, "money", _form_of_amounts(request, scope), _("Saved. Applies from now on."))


@action("admin")
@require_POST
def arm_settings(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Save the weights of the arms; items that somebody has, or had, keep their arm."""
    said = _("Saved. Applies to pairs assigned from now on.")
    return _change_settings(request, scope, "arms", ArmsForm(ArmWeights, request.POST), said)


@action("admin")
@require_POST
def apply_preset(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Set what a paper's study used; the form below the button shows it, and every value can be changed again."""
    form = form_of(change_settings, request, only=PRESET)
    return _change_settings(request, scope, "preset", form, _("Settings saved."))


def _form_of_work(request: HttpRequest | None, scope: Scope) -> ActionForm:
    initial = {name: getattr(scope.collection, name) for name in OF_WORK}
    form = form_of(change_settings, request, only=OF_WORK, initial=initial)
    form.fields["rubric"].widget.attrs["form"] = "settings"  # it stands beside the definition, outside the form
    return form


def _form_of_amounts(request: HttpRequest | None, scope: Scope) -> ActionForm:
    initial = {name: getattr(scope.collection, name) for name in AMOUNTS}
    return form_of(change_settings, request, only=AMOUNTS, initial=initial)


def _change_settings(request: HttpRequest, scope: Scope, name: str, form: ActionForm, said: str) -> HttpResponse:
    """Save one of the page's forms, or show the page with it."""

    def show(form: ActionForm) -> HttpResponse:
        context = {
            "scope": scope,
            "form": _form_of_work(None, scope),
            "money": _form_of_amounts(None, scope),
            "arms": ArmsForm(ArmWeights, initial=scope.collection.arms),
            "caps": collection_budget(scope.collection),
            "guidelines": guidelines.current(scope.collection),
            "definition": guidelines.translate_lines(guidelines.relevance_definition(scope.collection.relevance)),
            "departs": not guidelines.follows_definition(scope.collection),
            name: form,
        }
        return render(request, "data/settings.html", context, status=422 if form.is_bound else 200)

    def done(changed: list[str]) -> str:
        messages.success(request, said if changed else _("Nothing was changed."))
        return reverse("settings", args=[scope.collection.name])

    return answer_action(request, scope, change_settings, form, show, done)


@action("admin")
@require_http_methods(["GET", "POST"])
def text_editor(request: HttpRequest, scope: Scope, kind: str) -> HttpResponse:
    """Edit guidelines, or what prompts call relevant: editor, preview, earlier versions."""
    editor = services.EDITORS[kind]
    version, text = editor.current(scope.collection)
    # An earlier version, when one was asked for: saving it makes it the newest.
    shown, asked = text, request.GET.get("version", "")
    if asked.isdecimal():
        earlier = editor.versions(scope.collection).filter(version=int(asked))
        shown = earlier.values_list("text", flat=True).first() or text
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
            base, typed = form.cleaned_data["base"], form.cleaned_data["text"]
            about: dict[str, Any] = {"actor": Actor.of(scope), "collection": scope.collection}
            number = editor.write(**about, text=typed, base=int(base) if base.isdecimal() else None)
            said = _("%(label)s saved, version %(number)s.")
            messages.success(request, said % {"label": _(editor.label), "number": number})
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
