"""The form of a webhook."""

from django import forms
from django.utils.translation import gettext_lazy

from api.models import Webhook
from api.webhooks.addresses import LONGEST


class WebhookForm(forms.Form):
    """Form of a webhook: the address of its receiver, a description and its events."""

    url = forms.CharField(
        max_length=LONGEST,
        label=gettext_lazy("Address of the receiver"),
        help_text=gettext_lazy("It begins with https://. Redirects are not followed."),
        widget=forms.TextInput(attrs={"inputmode": "url", "autocomplete": "off", "spellcheck": "false"}),
    )
    description = forms.CharField(
        max_length=200,
        required=False,
        label=gettext_lazy("Description"),
        help_text=gettext_lazy("What it is for; shown in this list."),
    )
    events = forms.MultipleChoiceField(
        choices=Webhook.Event.choices, label=gettext_lazy("Events"), widget=forms.CheckboxSelectMultiple
    )
