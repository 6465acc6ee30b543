"""Options of carrying out a planned act on pairs."""

from django.utils.translation import gettext_lazy as _

from actions.options import Options, option


class ActOptions(Options):
    """The option with which an act is carried out, where it has any, and the comment of judgments that it writes."""

    # Before `option`, which takes the function's name in this class.
    note: str = option(_("Note"), _("Comment of the judgments that setting a label writes."), default="", at_most=2000)
    option: str = option(_("Option"), _("Among those that the plan names."), default="", at_most=20)
