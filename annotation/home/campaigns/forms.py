"""The forms that start a campaign."""

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from actions.options import ActionForm
from annotation.quality.panels.applying import chosen_name, offered_panels
from corpus.models import Collection
from judges.campaigns import configurations
from judges.campaigns.options import JUDGING, CampaignOptions
from judges.models import Campaign, JudgeVersion, Panel
from judges.panels.offline_panel import ensure_offline, judges_that_vote

# What each policy does with a pair, in a sentence or two.
POLICY_LINES = {
    Campaign.Policy.DEBATE: gettext_lazy(
        "Two models argue opposite sides. Pairs they agree on are labelled; people judge the rest."
    ),
    Campaign.Policy.ENSEMBLE: gettext_lazy(
        "Each judge on the panel votes once. The majority labels the pair; without a majority, people judge it."
    ),
    Campaign.Policy.DEBATE_ENSEMBLE: gettext_lazy(
        "Both. A pair is labelled where debate and panel agree; people judge the rest. "
        "Two independent checks, most calls."
    ),
    Campaign.Policy.SINGLE: gettext_lazy("One model labels every pair. Cheapest, least reliable."),
    Campaign.Policy.HUMAN: gettext_lazy("No models. Three people judge every pair."),
}


class WriteForm(forms.Form):
    """The form that starts evidence writing: who writes, who measures it, and its limits."""

    writer = forms.ChoiceField(label=gettext_lazy("Writer"))
    measure = forms.ChoiceField(required=False, label=gettext_lazy("Measured by"))
    limit = forms.IntegerField(min_value=1, required=False, label=gettext_lazy("Maximum pairs"))
    budget = forms.FloatField(min_value=0.000001, required=False, label=gettext_lazy("Budget (USD)"))
    max_calls = forms.IntegerField(min_value=1, required=False, label=gettext_lazy("Maximum calls"))

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        rows = JudgeVersion.objects.filter(is_current=True).exclude(provider="offline").order_by("name")
        names = [(row.name, row.name if row.name == row.model else f"{row.name} ({row.model})") for row in rows]
        measurers = [*names, ("offline-measurer", _("offline-measurer (counts words)"))]
        self.fields["writer"].choices = [*names, ("offline-writer", _("offline-writer (copies sentences)"))]  # type: ignore[attr-defined]
        self.fields["measure"].choices = [("", _("Rules only")), *measurers]  # type: ignore[attr-defined]


def _describe_panel(name: str, panel: Panel) -> str:
    """Return a panel's name with the numbers of its debaters, if any, and of its judges; the site's default is named.

    Whoever adds the first model to a site, in any collection, makes it the default of all.
    """
    judges = len(panel.ensemble)
    counts = {"row": name, "debate": len(panel.debate), "ensemble": judges}
    words = ngettext("%(row)s (%(ensemble)s judge)", "%(row)s (%(ensemble)s judges)", judges)
    if panel.debate:
        words = ngettext(
            "%(row)s (%(debate)s debaters, %(ensemble)s judge)",
            "%(row)s (%(debate)s debaters, %(ensemble)s judges)",
            judges,
        )
    title = words % counts
    return _("%(panel)s · default of this site") % {"panel": title} if panel.is_default else title


class StartForm(ActionForm):
    """The form that starts a campaign, with the available panels and a radio button for each policy."""

    def __init__(self, collection: Collection, *data: QueryDict) -> None:
        # The offline panel needs no key, so that a new site can judge at once.
        if not Panel.objects.exists():
            ensure_offline()
        panels = {panel.name: panel for panel in offered_panels(collection)}
        titles = [(name, _describe_panel(name, panel)) for name, panel in panels.items()]
        judges = [(name, name) for name in judges_that_vote()]
        panel = panels.get(chosen_name(collection)) or next(iter(panels.values()))
        super().__init__(
            CampaignOptions,
            *data,
            choices={"panel": titles, "filter": judges, "adjudicator": [("", _("people")), *judges]},
            initial={"panel": panel.name, "policy": configurations.usual_policy(panel.debate, panel.ensemble)},
        )
        self.fields["policy"] = forms.ChoiceField(
            choices=[(name, title) for name, title in Campaign.Policy.choices if name in JUDGING],
            required=False,
            label=self.fields["policy"].label,
            widget=forms.RadioSelect,
        )

    @property
    def policies(self) -> list[tuple[object, str, str]]:
        """Return each policy's radio button, its explanation, and the explanation's element id."""
        buttons: list[tuple[object, str, str]] = []
        for number, button in enumerate(self["policy"]):
            key = f"policy-line-{number}"
            button.data["attrs"]["aria-describedby"] = key
            buttons.append((button, str(POLICY_LINES[button.data["value"]]), key))
        return buttons

    @property
    def special(self) -> bool:
        """Return whether an option of the protocol is set or wrong, so that its part of the form is opened."""
        names = ("agents", "temperature", "adjudicator", "filter", "no_debate_for_people", "batch", "guard", "play_on")
        is_set = self["stance_order"].value() == "irrelevant-first"
        return is_set or any(self[name].errors or self[name].value() for name in names)
