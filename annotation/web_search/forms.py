"""The form of a web search: who searches, for which queries, and what it may cost."""

from django import forms
from django.utils.translation import gettext_lazy, pgettext_lazy

from annotation.web_search.searching import ROLE
from judges.model_jobs.forms import ModelJobForm


class WebSearchForm(ModelJobForm):
    """The form that starts a web search: its service, number of queries, source of texts, and limits."""

    roles = {"judge": ROLE}

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
