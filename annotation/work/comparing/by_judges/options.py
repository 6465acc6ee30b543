"""Options of comparisons by judges."""

from django.utils.translation import gettext_lazy as _

from actions.options import Names, option
from judges.model_jobs.options import PaidOptions


class ComparingOptions(PaidOptions):
    """The set of comparisons, and the judges that are asked about each of them in both orders."""

    set: int = option(_("Comparison set"), ge=1, lt=1 << 31)
    judges: Names = option(
        _("Judges"), _("Each judge is asked twice about a comparison, once in each order of the documents."), at_least=1
    )
