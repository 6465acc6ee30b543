"""Options of carrying out a planned act on pairs."""

from django.utils.translation import gettext_lazy as _

from actions.options import Options, option


class ActOptions(Options):
    """The option with which an act is carried out, where it has any."""

    option: str = option(_("Option"), _("Among those that the plan names."), default="", at_most=20)
