"""Change of a collection's panel. Existing votes and campaigns keep the panel with which they began."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.models import Collection
from judges.domain import copies
from judges.domain.ensemble import SIZES, usual_majority
from judges.models import JudgeVersion, Panel
from judges.panels.offline_panel import OFFLINE, OWN_PANEL, ensure_offline


def chosen_name(collection: Collection) -> str:
    """Return the name of a collection's own panel, which no judges file uses by accident."""
    return f"{collection.name}{OWN_PANEL}"


def offered_panels(collection: Collection) -> QuerySet[Panel]:
    """Return the panels that a collection's pages may name, the default of the site first.

    Panels of other collections are not among them: visitors may not know of these collections.
    """
    own = Q(name=chosen_name(collection)) | Q(is_default=True)
    return Panel.objects.filter(own | ~Q(name__endswith=OWN_PANEL)).order_by("-is_default", "name")


def newest_file_panel() -> Panel | None:
    """Return the panel of the newest judges file: the default, unless that is the built-in one."""
    panels = Panel.objects.exclude(name=OFFLINE).exclude(name__endswith=OWN_PANEL, is_default=False)
    return panels.order_by("-is_default", "-pk").first()


def preview_change(collection: Collection, judges: Sequence[str]) -> dict[str, Any]:
    """Return the effects of a change of the panel to these judges. Raises BadInput where they cannot form a panel."""
    _check_judges(judges)
    base = base_panel(collection)
    return {
        "name": chosen_name(collection),
        "joins": [name for name in judges if name not in base.ensemble],
        "leaves": [name for name in base.ensemble if name not in judges],
        "debate": base.debate,
        "base": base.name,  # The panel whose debaters and options are kept.
        "majority": _panel_majority(base, judges),
    }


def _panel_majority(base: Panel, judges: Sequence[str]) -> int:
    """Return the majority of the panel that is replaced; more than half where the size changes."""
    return base.majority if len(base.ensemble) == len(judges) else usual_majority(len(judges))


@transaction.atomic
def make_panel(
    *, collection: Collection, judges: Sequence[str], debate: Sequence[str] | None = None, default: bool = False
) -> Panel:
    """Make these judges the collection's panel and, with `default`, the panel of all new campaigns of the site.

    `debate`: the two debaters, or none; None: those of the replaced panel, which is at first the default.
    Adjudicator and early stop are kept too, and the majority if the number of voters is the same.
    """
    _check_judges(judges)
    panel = base_panel(collection, lock=True)
    if panel.name != chosen_name(collection):
        # All fields, so that options that panels get later are kept too.
        panel = Panel(**{field.name: getattr(panel, field.name) for field in Panel._meta.fields if field.name != "id"})
        panel.name, panel.is_default = chosen_name(collection), False
    panel.majority, panel.ensemble = _panel_majority(panel, judges), list(judges)
    if debate is not None:
        panel.debate = list(debate)
    if default and not panel.is_default:
        # First, because a constraint allows one default panel.
        Panel.objects.filter(is_default=True).update(is_default=False)
        panel.is_default = True
    panel.save()
    return panel


def base_panel(collection: Collection, *, lock: bool = False) -> Panel:
    """Return the collection's own panel, or else the default."""
    ensure_offline()
    rows = Panel.objects.select_for_update() if lock else Panel.objects.all()
    panel = rows.filter(name=chosen_name(collection)).first() or rows.filter(is_default=True).first()
    if panel is None:
        raise BadInput(_("There is no default panel: run configure_judges F"))
    return panel


def _check_judges(judges: Sequence[str]) -> None:
    if len(judges) not in SIZES or len(set(judges)) != len(judges):
        raise BadInput(
            _("A panel has 1, 3, 5, 7 or 9 different judges, not %(named)s") % {"named": ", ".join(judges) or _("none")}
        )
    versions = {row.name: row for row in JudgeVersion.objects.filter(name__in=judges, is_current=True)}
    if missing := [name for name in judges if name not in versions]:
        raise BadInput(
            _("No judge %(names)s is configured: load it with configure_judges") % {"names": ", ".join(missing)}
        )
    for positions in copies.copy_groups([versions[name] for name in judges]):
        raise BadInput(
            _("%(names)s are one model with the same parameters: keep only one of them")
            % {"names": ", ".join(judges[position] for position in positions)}
        )
