"""The form of a web search: who searches, for which queries, and what it may cost."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from annotation.web_search.searching import ROLE
from judges.campaigns.job_controls import STOPS, LimitsForm
from judges.retrieval.model_requests import judges_for


class WebSearchForm(LimitsForm):
    """The form that starts a web search: its service, number of queries, source of texts, and limits."""

    judge = forms.ChoiceField(label=gettext_lazy("Search service"))
    limit = forms.IntegerField(
        min_value=1,
        required=False,
        initial=20,
        label=gettext_lazy("Number of queries"),
        help_text=gettext_lazy("Drawn at random. Leave blank for all queries."),
    )
    seed = forms.IntegerField(required=False, initial=0, label=gettext_lazy("Random seed"))
    fetch = forms.BooleanField(
        required=False,
        label=pgettext_lazy(
            "web search", "Fetch each page from its own site where robots.txt allows it, instead of the service's text"
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.order_fields(("judge", "limit", "seed", "fetch"))
        self.fields["budget"].help_text = STOPS
        self.fields["judge"].choices = [(name, name) for name in judges_for(ROLE)]  # type: ignore[attr-defined]

    def shown_values(self) -> list[tuple[str, Any]]:
        """Return the filled-in values by label, for the page on which the cost is confirmed."""
        given: list[tuple[str, Any]] = [
            (str(field.label), self.cleaned_data.get(field.name)) for field in self if field.name != "fetch"
        ]
        if self.cleaned_data["fetch"]:
            given.append((_("Texts"), _("from each page's own site")))
        return [(label, value) for label, value in given if value not in (None, "")]
