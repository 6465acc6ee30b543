"""The form that starts a campaign."""

from django import forms

from annotation.panels.applying import chosen_name, offered
from corpus.models import Collection
from judges import campaigns
from judges.campaigns import Configuration
from judges.models import Campaign, JudgeVersion, Panel
from judges.panels import ensure_offline

OPTIONS = {
    "--budget": "A budget",
    "--max-calls": "The number of calls",
    "--limit": "The number of pairs",
    "--again": "“start a new one”",
    "--debaters a,b": "another panel",
    "--judges a,b,c,d,e": "another panel",
}
"""Options of the command `judge` in its errors, as this page calls them."""

POLICIES = [(value, words) for value, words in Campaign.Policy.choices if value in campaigns.JUDGING]


def panels(collection: Collection) -> list[tuple[str, str]]:
    """Names of panels with who sits on them; the default first."""
    rows = offered(collection)
    return [(row.name, f"{row.name} ({len(row.debate)} debaters, {len(row.ensemble)} judges)") for row in rows]


class WriteForm(forms.Form):
    """Who writes contribution and evidence of relevant pairs, who measures them, and where it stops."""

    writer = forms.ChoiceField()
    measure = forms.ChoiceField(required=False, label="Measured by")
    limit = forms.IntegerField(min_value=1, required=False, label="Pairs at most")
    budget = forms.FloatField(min_value=0.000001, required=False, label="Budget (USD)")
    max_calls = forms.IntegerField(min_value=1, required=False, label="Calls at most")

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        rows = JudgeVersion.objects.filter(is_current=True).exclude(provider="offline").order_by("name")
        names = [(row.name, f"{row.name} ({row.model})") for row in rows]
        measurers = [*names, ("offline-measurer", "offline-measurer (counts words)")]
        self.fields["writer"].choices = [*names, ("offline-writer", "offline-writer (copies sentences)")]  # type: ignore[attr-defined]
        self.fields["measure"].choices = [("", "nobody: rules alone"), *measurers]  # type: ignore[attr-defined]


class StartForm(forms.Form):
    """Which panel judges by which policy, and where it stops."""

    panel = forms.ChoiceField()
    policy = forms.ChoiceField(choices=POLICIES, initial=Campaign.Policy.DEBATE_ENSEMBLE)
    rounds = forms.IntegerField(min_value=1, max_value=5, initial=2, help_text="Of debate, at most.")
    limit = forms.IntegerField(
        min_value=1, required=False, label="Pairs at most", help_text="In the whole campaign. Empty: all."
    )
    budget = forms.FloatField(
        min_value=0.000001, required=False, label="Budget (USD)", help_text="It stops there and can go on later."
    )
    max_calls = forms.IntegerField(min_value=1, required=False, label="Calls at most")
    again = forms.BooleanField(required=False, label="Judge pairs again that have an outcome (a new campaign)")
    failed_to_people = forms.BooleanField(required=False, label="Send pairs that fail to people")

    def __init__(self, *args: object, collection: Collection, **kwargs: object) -> None:
        if not Panel.objects.exists():
            ensure_offline()
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        names = panels(collection)
        self.fields["panel"].choices = names  # type: ignore[attr-defined]
        self.fields["panel"].initial = next((name for name, _ in names if name == chosen_name(collection)), None)

    def configuration(self) -> Configuration:
        """What was chosen, with the members in their present versions. Raises BadInput."""
        given = self.cleaned_data
        return campaigns.configuration(panel=given["panel"], policy=given["policy"], rounds=given["rounds"])

    @staticmethod
    def for_people(error: str) -> str:
        """A command's error with the words of this page."""
        for option, words in OPTIONS.items():
            error = error.replace(option, words)
        return error[:1].upper() + error[1:]
