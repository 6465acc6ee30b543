"""The sentences of charts' summaries, which they fill with figures."""

from django.utils.translation import gettext_lazy

SENTENCES = {
    "nothing": gettext_lazy("Nothing to show yet."),
    "interval": gettext_lazy("%(value)s (%(low)s to %(high)s)"),
    "low": gettext_lazy("%(name)s, low"),
    "high": gettext_lazy("%(name)s, high"),
    "point": gettext_lazy("%(name)s is %(figure)s"),
    "line": gettext_lazy("%(name)s goes from %(first)s to %(last)s (lowest %(least)s, highest %(most)s)"),
    "single": gettext_lazy("%(name)s: %(x)s %(x_value)s, %(y)s %(y_value)s."),
    "points": gettext_lazy("%(figure)s points of %(x)s and %(y)s."),
    "grid": gettext_lazy("Highest at %(row)s, %(column)s (%(high)s); lowest at %(low_row)s, %(low_column)s (%(low)s)."),
    "widest": gettext_lazy(
        "%(measure)s could change most for %(name)s: now %(value)s, at least %(low)s, at most %(high)s."
    ),
    "rank": gettext_lazy("rank, %(when)s"),
    "unmoved": gettext_lazy("By %(measure)s, every system keeps its rank."),
    "moved": gettext_lazy("By %(measure)s, %(moved)s of %(all)s systems change rank: %(few)s."),
    "moved more": gettext_lazy("By %(measure)s, %(moved)s of %(all)s systems change rank: %(few)s; and %(more)s more."),
    "move": gettext_lazy("%(name)s %(before)s to %(after)s"),
}


def say(key: str, **figures: object) -> str:
    """Return a sentence with its figures, in the reader's language."""
    return str(SENTENCES[key]) % figures
