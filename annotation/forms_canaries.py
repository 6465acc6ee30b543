"""Forms of canaries: asking now, and by themselves."""

from django import forms

from judges.canary_models import CanarySchedule

WHOM = (("free", "judges that cost nothing"), ("every", "every judge"))


class AskForm(forms.Form):
    """Whom to ask now."""

    whom = forms.ChoiceField(choices=WHOM)


class ScheduleForm(forms.Form):
    """How often workers ask, and whom. The panel is the default one of that time."""

    hours = forms.IntegerField(
        min_value=0, max_value=24 * 366, label="Every so many hours", help_text="0: only when somebody asks."
    )
    whom = forms.ChoiceField(choices=WHOM, label="Whom")

    @classmethod
    def of(cls, row: CanarySchedule | None) -> "ScheduleForm":
        """With what holds now."""
        hours, paid = (row.hours, row.paid) if row else (0, False)
        return cls(initial={"hours": hours, "whom": "every" if paid else "free"})
