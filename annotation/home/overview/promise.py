"""The four figures with which the Overview opens (dashboard/_promise.html), from figures that the page has read."""

from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import clopper_pearson
from annotation.home.overview.overview import CollectionOverview
from annotation.quality.label_quality.loading import LabelQuality
from annotation.quality.label_quality.records import Costs
from annotation.templatetags.admin_text import usd
from annotation.templatetags.reports import few, percent_span, places, span, tenths
from corpus.models import Collection


@dataclass(frozen=True, slots=True)
class PromiseFigure:
    """A large figure: its value with its interval and population, or the action that measures it."""

    title: str
    value: str = ""  # Empty: not measured yet.
    interval: str = ""  # Empty for what is counted and not estimated.
    details: tuple[str, ...] = ()
    action: str = ""
    address: str = ""


def build_promise(
    overview: CollectionOverview, quality: LabelQuality, costs: Costs, collection: Collection
) -> list[PromiseFigure]:
    """Build the figures: people's share, accuracy, agreement between people, money."""
    return [
        _people_share(overview, costs, collection),
        _accuracy(quality, collection),
        _agreement(quality, collection),
        _cost_figure(overview, costs, collection),
    ]


def _people_share(overview: CollectionOverview, costs: Costs, collection: Collection) -> PromiseFigure:
    title, status = _("Pairs people were asked for"), overview.status
    ended = int(status["labelled"] + status["escalated"])
    if not ended:
        return PromiseFigure(title, action=_("Start a campaign"), address=reverse("campaigns", args=[collection.name]))
    # Audited pairs have a label of judges, and people are asked for them too.
    asked = min(ended, int(status["escalated"] + status["audits"]))
    low, high = clopper_pearson(asked, ended)
    counts = {"asked": f"{asked:,}", "ended": f"{ended:,}"}
    details = [_("%(asked)s of %(ended)s pairs, audits included") % counts]
    if costs.median_seconds is None:
        details.append(_("hours saved: not known before the first judgment"))
    else:
        minutes = costs.median_seconds / 60
        hours = (ended - asked) * collection.overlap * minutes / 60
        words = ngettext(
            "%(time)s saved beside judging all by hand, at %(pace)s a pair",
            "%(time)s saved beside judging all by hand, at %(pace)s a pair for each of %(people)s people",
            collection.overlap,
        )
        time = (
            _("%(value)s h") % {"value": f"{hours:,.0f}"}
            if hours >= 1
            else _("%(value)s min") % {"value": f"{hours * 60:,.0f}"}
        )
        pace = (
            _("%(value)s min") % {"value": f"{minutes:.1f}"}
            if minutes >= 1
            else _("%(value)s s") % {"value": f"{costs.median_seconds:.1f}"}
        )
        details.append(words % {"time": time, "pace": pace, "people": collection.overlap})
    share = Statistic(asked / ended, low, high, ended, None)
    return PromiseFigure(title, tenths(share.value), percent_span(share), tuple(details))


def _accuracy(quality: LabelQuality, collection: Collection) -> PromiseFigure:
    title, audits = _("Automatic labels that are correct"), quality.statistics.audits
    if audits is None or audits.overall.value is None:
        address = reverse("quality", args=[collection.name])
        if audits is None or not audits.drawn:
            return PromiseFigure(title, action=_("Draw a label audit"), address=address)
        completed = _("0 of %(drawn)s audits completed") % {"drawn": f"{audits.drawn:,}"}
        return PromiseFigure(title, details=(completed,), action=_("View the label audit"), address=address)
    counts = {"settled": f"{audits.settled:,}", "drawn": f"{audits.drawn:,}"}
    details = [_("%(settled)s of %(drawn)s audits completed") % counts]
    if audits.looks is not None:
        details.append(_("always-valid interval"))
    return PromiseFigure(
        title, tenths(audits.overall.value), percent_span(audits.looks or audits.overall), tuple(details)
    )


def _agreement(quality: LabelQuality, collection: Collection) -> PromiseFigure:
    title = _("Agreement between people")
    groups = [row for row in quality.statistics.kappas or () if (row.group, row.population) == ("people", "all")]
    if not groups or groups[0].kappa.value is None:
        return PromiseFigure(
            title,
            details=(_("Needs two people on the same pairs."),),
            action=_("Set people per pair"),
            address=reverse("settings", args=[collection.name]),
        )
    (group,) = groups[:1]
    counts = {"people": group.assessors, "pairs": f"{group.pairs:,}"}
    details = (_("Krippendorff's alpha"), _("%(people)s people, %(pairs)s pairs with two or more of them") % counts)
    if group.kappa.low is None:
        words = few(group.kappa) or _("interval not known")
        return PromiseFigure(title, places(group.kappa.value, 2), "", (*details, words))
    return PromiseFigure(title, places(group.kappa.value, 2), span(group.kappa), details)


def _cost_figure(overview: CollectionOverview, costs: Costs, collection: Collection) -> PromiseFigure:
    title = _("Money spent")
    total = costs.total if costs.total is not None else costs.machine
    value = "" if total is None else f"≥ {usd(total)}" if costs.calls_without_price else usd(total)
    details = [_("models %(money)s") % {"money": usd(costs.machine)}]
    if costs.people is not None:
        details.append(_("people %(money)s") % {"money": usd(costs.people)})
    elif costs.people_hours:
        details.append(_("people's hours are not priced"))
    # Limits are on what models cost.
    limit = overview.selected.budget if overview.selected else collection.budget
    if limit is None:
        details.append(_("no limit is set"))
        return PromiseFigure(
            title, value, "", tuple(details), _("Set a limit"), reverse("settings", args=[collection.name]) + "#money"
        )
    if costs.machine is not None:
        left = {"left": usd(max(0.0, limit - costs.machine)), "limit": usd(limit)}
        details.append(_("%(left)s left of %(limit)s") % left)
    return PromiseFigure(title, value, "", tuple(details))
