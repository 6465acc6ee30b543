"""The form that starts a campaign."""

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.panels.applying import chosen_name, offered_panels
from corpus.models import Collection
from judges.campaigns import configurations
from judges.campaigns.configurations import Configuration
from judges.models import Campaign, JudgeVersion, Panel
from judges.panels.offline_panel import ensure_offline, judges_that_vote

SWITCHES = ("batch", "guard", "play_on")  # Options of the protocol that are on or off.

POLICIES = [(value, words) for value, words in Campaign.Policy.choices if value in configurations.JUDGING]

# What each policy does with a pair, in one line.
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
        names = [(row.name, f"{row.name} ({row.model})") for row in rows]
        measurers = [*names, ("offline-measurer", _("offline-measurer (counts words)"))]
        self.fields["writer"].choices = [*names, ("offline-writer", _("offline-writer (copies sentences)"))]  # type: ignore[attr-defined]
        self.fields["measure"].choices = [("", _("Rules only")), *measurers]  # type: ignore[attr-defined]


class StartForm(forms.Form):
    """The form that starts a campaign: its panel, policy and limits."""

    panel = forms.ChoiceField(label=gettext_lazy("Panel"))
    policy = forms.ChoiceField(
        label=gettext_lazy("Policy"),
        choices=POLICIES,
        initial=Campaign.Policy.DEBATE_ENSEMBLE,
        widget=forms.RadioSelect,
    )
    rounds = forms.IntegerField(
        label=gettext_lazy("Rounds"),
        min_value=1,
        max_value=5,
        initial=2,
        help_text=gettext_lazy("Maximum number of debate rounds."),
    )
    limit = forms.IntegerField(
        min_value=1,
        required=False,
        label=gettext_lazy("Maximum pairs"),
        help_text=gettext_lazy("For the whole campaign. Leave blank for all."),
    )
    budget = forms.FloatField(
        min_value=0.000001,
        required=False,
        label=gettext_lazy("Budget (USD)"),
        help_text=gettext_lazy("Stops at this limit; you can resume it later."),
    )
    max_calls = forms.IntegerField(min_value=1, required=False, label=gettext_lazy("Maximum calls"))
    stance_order = forms.ChoiceField(
        choices=[
            ("relevant-first", gettext_lazy("relevant first")),
            ("irrelevant-first", gettext_lazy("not relevant first")),
        ],
        required=False,
        label=gettext_lazy("Agent A starts with"),
    )
    agents = forms.TypedChoiceField(
        label=gettext_lazy("Agents"),
        choices=[("", gettext_lazy("two")), ("4", gettext_lazy("four: each debater argues both stances"))],
        coerce=int,
        empty_value=None,
        required=False,
    )
    temperature = forms.FloatField(
        label=gettext_lazy("Temperature"),
        min_value=0,
        max_value=2,
        required=False,
        help_text=gettext_lazy("Overrides the debaters' own temperature."),
    )
    adjudicator = forms.ChoiceField(required=False, label=gettext_lazy("Resolve disagreements with"))
    filter = forms.MultipleChoiceField(
        required=False,
        label=gettext_lazy("Filter: three judges from different model families"),
        help_text=gettext_lazy("If all three say no, the pair is labelled not relevant without further calls."),
        widget=forms.CheckboxSelectMultiple,
    )
    batch = forms.BooleanField(required=False, label=gettext_lazy("Use batch APIs: half price, takes hours"))
    guard = forms.BooleanField(
        required=False,
        label=gettext_lazy("Do not count a concession without new evidence as agreement (people judge the pair)"),
    )
    play_on = forms.BooleanField(
        required=False, label=gettext_lazy("Run all rounds, even after agreement (to study debates)")
    )
    no_debate = forms.BooleanField(
        required=False,
        label=gettext_lazy("No debate for people: do not debate escalated pairs that the policy did not debate"),
    )
    again = forms.BooleanField(
        required=False, label=gettext_lazy("Judge pairs again that are already judged (new campaign)")
    )
    failed_to_people = forms.BooleanField(required=False, label=gettext_lazy("Send failed pairs to people"))

    def __init__(self, *args: object, collection: Collection, **kwargs: object) -> None:
        # A new site can judge at once: the offline panel needs no key.
        if not Panel.objects.exists():
            ensure_offline()
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        rows = {row.name: row for row in offered_panels(collection)}  # the default first
        words = _("%(row)s (%(debate)s debaters, %(ensemble)s judges)")
        sizes = {name: {"debate": len(row.debate), "ensemble": len(row.ensemble)} for name, row in rows.items()}
        self.fields["panel"].choices = [(name, words % {"row": name, **sizes[name]}) for name in rows]  # type: ignore[attr-defined]
        judges = [(name, name) for name in judges_that_vote()]
        self.fields["filter"].choices = judges  # type: ignore[attr-defined]
        self.fields["adjudicator"].choices = [("", _("people")), *judges]  # type: ignore[attr-defined]
        chosen = rows.get(chosen_name(collection)) or next(iter(rows.values()), None)
        if chosen is not None:
            self.fields["panel"].initial = chosen.name
            self.fields["policy"].initial = configurations.usual_policy(chosen.debate, chosen.ensemble)

    def configuration(self) -> Configuration:
        """Return the chosen configuration, with the judges in their present versions. Raises BadInput."""
        given = self.cleaned_data
        options = configurations.CampaignOptions(
            stance_order=given["stance_order"] or "relevant-first",
            debate_for_people=not given["no_debate"],
            **{name: given[name] for name in ("agents", "temperature", "adjudicator", "filter", *SWITCHES)},
        )
        return configurations.build_configuration(
            panel=given["panel"], policy=given["policy"], rounds=given["rounds"], options=options
        )

    def hidden(self) -> list[tuple[str, str]]:
        """Return the fields as name and value, for the hidden inputs of the form that confirms the start."""
        data = self.data
        several = {"filter": data.getlist("filter")} if hasattr(data, "getlist") else {}
        values = {name: several.get(name, [data.get(name)]) for name in self.fields}
        return [(name, value) for name, chosen in values.items() for value in chosen if value]

    @property
    def policies(self) -> list[tuple[object, str, str]]:
        """Return each policy's radio button, its explanation, and the explanation's element id."""
        found: list[tuple[object, str, str]] = []
        for number, button in enumerate(self["policy"]):
            key = f"policy-line-{number}"
            button.data["attrs"]["aria-describedby"] = key
            found.append((button, str(POLICY_LINES.get(button.data["value"], "")), key))
        return found

    @property
    def special(self) -> bool:
        """Return whether an option of the protocol is set or wrong, so that its part of the form is shown open."""
        names = ("agents", "temperature", "adjudicator", "filter", "no_debate", *SWITCHES)
        return any(self[name].errors or self[name].value() for name in names) or (
            self["stance_order"].value() == "irrelevant-first"
        )
