"""Options of drawing more label audits of a campaign."""

from django.utils.translation import gettext_lazy as _

from actions.options import Options, option


class DrawOptions(Options):
    """Size of the whole sample, so that a repeated request draws nothing."""

    up_to: int = option(
        _("Sample size"), _("Drawn pairs in all, of the route or of the campaign."), ge=0, lt=1_000_000_000
    )
    route: str = option(
        _("Route"), _("The key of a route, as the audit names it: r1.m5.y. Empty: all routes."), default="", at_most=40
    )
