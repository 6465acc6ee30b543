"""The verdict on the pool's saturation, by a rule over the ends of both curves. Pure."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy, ngettext_lazy

FEWEST = 5  # With fewer systems the curves are too short for a verdict.
# The largest growth rate and marginal contribution of the last system in a saturated pool.
SATURATED = (0.01, 0.005)
NEARLY = (0.05, 0.02)


RULE = gettext_lazy(
    "The pool counts as saturated if, averaged over the orders, the last system adds "
    "at most %(growth)s more holes and pool membership changes its Hit, nDCG and "
    "Recall by at most %(marginal)s; as nearly saturated at %(more)s and %(further)s."
)
DOUBT = gettext_lazy(
    "This result applies to systems similar to these %(systems)d. Similar systems "
    "find the same documents; a different kind of system may still find new holes. "
    "Documents that no system in the pool returned are not covered."
)
RECALL = gettext_lazy(
    "Recall@%(k)s is a share of the known relevant documents: %(before)s before and "
    "%(after)s after. A system that returned few of the new ones loses Recall "
    "although its ranking is the same, because its earlier value was too high."
)
SENTENCES = {
    "few": ngettext_lazy(
        "Not known: %(systems)d system is too few to see a curve level off.",
        "Not known: %(systems)d systems are too few to see a curve level off.",
        "systems",
    ),
    "none": gettext_lazy("No result: the pool of these systems contains no holes."),
    "unknown": gettext_lazy("Not known: the curves have no final value."),
    "saturated": gettext_lazy(
        "Saturated: the last system added %(growth)s more holes and changed its measures by %(marginal)s."
    ),
    "nearly": gettext_lazy(
        "Nearly saturated: the last system added %(growth)s more holes and changed its measures by %(marginal)s."
    ),
    "open": gettext_lazy(
        "Not saturated: the last system added %(growth)s more holes and changed its measures by %(marginal)s."
    ),
}


def saturation_verdict(
    systems: int, holes: int, growth: float | None, marginal: Mapping[str, float | None]
) -> dict[str, Any]:
    """Judge saturation by the ends of both curves: means over the orders at the last step, None without a value."""
    # The largest counts: a pool is saturated only if no measure changes any more.
    largest = max((value for value in marginal.values() if value is not None), default=None)
    # ADR 0035: the paper says only that both curves approach 0. The thresholds are ours, and shown with the verdict.
    key = "few" if systems < FEWEST else "open" if holes else "none"
    if key == "open" and growth is not None and largest is not None:
        limits = {"saturated": SATURATED, "nearly": NEARLY}
        key = next(
            (
                name
                for name, (growth_limit, marginal_limit) in limits.items()
                if growth <= growth_limit and largest <= marginal_limit
            ),
            key,
        )
    return {"key": key, "systems": systems, "holes": holes, "growth": growth, "marginal": largest}


def explain_verdict(verdict: Mapping[str, Any]) -> list[str]:
    """Return the verdict, its rule, and its limits: a sentence or two each."""
    key, growth, marginal = verdict["key"], verdict["growth"] or 0, verdict["marginal"] or 0
    if key not in ("few", "none") and None in (verdict["growth"], verdict["marginal"]):
        key = "unknown"
    values = {"systems": verdict["systems"], "growth": f"{100 * growth:.1f}%", "marginal": f"{marginal:.4f}"}
    bounds = {"growth": f"{SATURATED[0]:.0%}", "marginal": SATURATED[1]}
    bounds |= {"more": f"{NEARLY[0]:.0%}", "further": NEARLY[1]}
    return [SENTENCES[key] % values, RULE % bounds, DOUBT % values]


def recall_shift(result: Mapping[str, Any]) -> str:
    """Explain why Recall falls when holes are filled; "" where no relevant pair was found."""
    before, after = (int(result["relevant"][name]) for name in ("before", "after"))
    if after <= before:
        return ""
    return RECALL % {"k": result["k"], "before": f"{before:,}", "after": f"{after:,}"}
