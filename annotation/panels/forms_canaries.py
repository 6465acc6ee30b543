"""Forms of canaries: asking now, and by themselves."""

from django import forms
from django.utils.translation import gettext_lazy

from judges.models.canaries import CanarySchedule

WHOM = (("free", gettext_lazy("judges that cost nothing")), ("every", gettext_lazy("every judge")))


class AskForm(forms.Form):
    """Whom to ask now."""

    whom = forms.ChoiceField(choices=WHOM)


class ScheduleForm(forms.Form):
    """How often workers ask, and whom. The panel is the default one of that time."""

    hours = forms.IntegerField(
        min_value=0,
        max_value=24 * 366,
        label=gettext_lazy("Every so many hours"),
        help_text=gettext_lazy("0: only when somebody asks."),
    )
    whom = forms.ChoiceField(choices=WHOM, label=gettext_lazy("Whom"))

    @classmethod
    def of(cls, row: CanarySchedule | None) -> "ScheduleForm":
        """With what holds now."""
        hours, paid = (row.hours, row.paid) if row else (0, False)
        return cls(initial={"hours": hours, "whom": "every" if paid else "free"})
