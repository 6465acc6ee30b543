"""Whether the pool of the systems is saturated: a rule over the ends of both curves, in words. Pure."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

FEWEST = 5  # Systems below which the curves are too short to say anything.
# At most this growth rate and this marginal contribution at the last system: saturated.
SATURATED = (0.01, 0.005)
NEARLY = (0.05, 0.02)


def saturation_verdict(
    systems: int, holes: int, growth: float | None, marginal: Mapping[str, float | None]
) -> dict[str, Any]:
    """Judge the ends of both curves: means over the orders at the last step; None: no value."""
    # The largest counts: a pool is saturated only where no measure moves any more.
    ends = [value for value in marginal.values() if value is not None]
    largest = max(ends, default=None)
    if systems < FEWEST:
        key = "few"
    elif not holes:
        key = "none"
    else:
        key = _verdict_key(growth, largest)
    return {"key": key, "systems": systems, "holes": holes, "growth": growth, "marginal": largest}


def _verdict_key(growth: float | None, marginal: float | None) -> str:
    if growth is None or marginal is None:
        return "open"
    for key, (most_growth, most_marginal) in (("saturated", SATURATED), ("nearly", NEARLY)):
        if growth <= most_growth and marginal <= most_marginal:
            return key
    return "open"


def explain_verdict(found: Mapping[str, Any]) -> list[str]:
    """The verdict, the rule that it follows, and why to doubt it: a sentence or two each."""
    rule = _(
        "The rule: a pool is saturated where, on average over the orders, the last system adds at most %(growth)s more"
        " holes and being in the pool moves its Hit, nDCG and Recall by at most %(marginal)s; nearly so at %(more)s and"
        " %(further)s."
    ) % {
        "growth": f"{SATURATED[0]:.0%}",
        "marginal": SATURATED[1],
        "more": f"{NEARLY[0]:.0%}",
        "further": NEARLY[1],
    }
    doubt = _(
        "This holds for systems like these %(systems)d: systems that resemble each other find the same documents, and"
        " one of another kind may still find new holes. What nobody in the pool returned is not seen at all."
    ) % {"systems": found["systems"]}
    return [_verdict_sentence(found), rule, doubt]


def recall_shift(result: Mapping[str, Any]) -> str:
    """Why Recall falls when holes are filled; empty where no relevant pair came to be known."""
    before, after = (int(result["relevant"][name]) for name in ("before", "after"))
    if after <= before:
        return ""
    return _(
        "Recall@%(k)s is a share of the known relevant documents: %(before)s before and %(after)s after. A system that "
        "returned few of the new ones loses Recall, although its ranking is the same: its earlier value was too high."
    ) % {"k": result["k"], "before": f"{before:,}", "after": f"{after:,}"}


def _verdict_sentence(found: Mapping[str, Any]) -> str:
    key, systems = found["key"], found["systems"]
    if key == "few":
        return ngettext(
            "Not known: %(systems)d system is too few to see a curve level off.",
            "Not known: %(systems)d systems are too few to see a curve level off.",
            systems,
        ) % {"systems": systems}
    if key == "none":
        return _("Nothing to see: no hole was found in the pool of these systems.")
    if found["growth"] is None or found["marginal"] is None:
        return _("Not known: the curves have no value at their end.")
    ends = {"growth": f"{100 * found['growth']:.1f}%", "marginal": f"{found['marginal']:.4f}"}
    return {
        "saturated": _("Saturated: the last system added %(growth)s more holes and moved its figures by %(marginal)s."),
        "nearly": _(
            "Nearly saturated: the last system added %(growth)s more holes, its figures moved by %(marginal)s."
        ),
        "open": _("Not saturated: the last system added %(growth)s more holes and moved its figures by %(marginal)s."),
    }[key] % ends
