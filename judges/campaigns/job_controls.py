"""Limits of a job that asks models, and its cancelling and resuming, for the forms and buttons of its pages."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corpus.access import AccessScope
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput
from jobs.models import LeasedJob

Job = TypeVar("Job", bound=LeasedJob)
STOPS = gettext_lazy("The run stops at this limit. You can resume it later.")


class LimitsForm(forms.Form):
    """Form for the limits of what a job that asks models may spend in all."""

    budget = forms.FloatField(min_value=0.000001, required=False, label=gettext_lazy("Budget (USD)"))
    max_calls = forms.IntegerField(min_value=1, required=False, label=gettext_lazy("Call limit"))


def control_job(
    request: HttpRequest,
    scope: AccessScope,
    job: Job,
    act: str,
    /,
    *,
    acts: Mapping[str, Callable[[Job], bool]],
    set_limits: Callable[..., object],
    audit: str,
    **details: Any,
) -> None:
    """Carry out an act of `acts` and tell the audit log; going on takes new limits. Raises Http404 for another act.

    `audit`: the word of the audit log; `details`: what it keeps beside the act.
    """
    if act not in acts:
        raise Http404(_("Unknown action."))
    form = LimitsForm(request.POST)
    try:
        with transaction.atomic():
            if act == "go-on" and form.is_valid():
                set_limits(job, **form.cleaned_data)
            done = acts[act](job)
            if done:
                record_act(scope, audit, **details, what=act)
    except BadInput as error:
        messages.error(request, _("No changes made: %(error)s.") % {"error": error})
    else:
        if not done:
            messages.error(request, _("No changes made: the job's state no longer allows this action."))
