"""Names of measures for people, in the reader's language. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

# Established names, the same in every language.
PLAIN = {
    "hole": "Hole@{k}",
    "unjudged": "Unjudged@{k}",
    "judged": "Judged@{k}",
    "hit": "Hit@{k}",
    "ndcg": "nDCG@{k}",
    "recall": "Recall@{k}",
    "alpha_ndcg": "alpha-nDCG@{k}",
    "a_recall": "A-Recall@{k}",
}
FORMS = {
    "_exp": gettext_lazy("%(measure)s (exponential gain)"),
    "_bridge": gettext_lazy("%(measure)s (BRIDGE code)"),
    "_one": gettext_lazy("%(measure)s (one aspect a document)"),
}
NAMED = 5  # Runs that a sentence names; the others are counted.
WEIGHTED = gettext_lazy("%(measure)s (weighted)")
# In the order of tables; `_one`: each document counts for one aspect, as in the paper.
ASPECTS = ("alpha_ndcg", "alpha_ndcg_one", "a_recall", "a_recall_one")


def measure_label(key: str, k: int, *, is_weighted: bool = False) -> str:
    """Return the name of a measure, such as "nDCG@10 (exponential gain)", which says where its means are weighted."""
    form = next((ending for ending in FORMS if key.endswith(ending)), "")
    name = PLAIN[key.removesuffix(form)].format(k=k)
    name = FORMS[form] % {"measure": name} if form else name
    return WEIGHTED % {"measure": name} if is_weighted else name


def label_in(result: Mapping[str, Any], key: str) -> str:
    """Return the name of a measure at its depth in a report, which says where its means are weighted."""
    aspects = result.get("aspects") if key in ASPECTS else None
    return measure_label(key, (aspects or {}).get("k") or result["k"], is_weighted=bool(result.get("weights")))


def describe_weights(result: Mapping[str, Any]) -> str:
    """Return by what the means of a report are weighted, in a sentence or two; "" for plain means."""
    weights = result.get("weights")
    if not weights:
        return ""
    sentence = _("Means are weighted by the query log's counts: as informative as %(count)s queries of equal weight.")
    words = sentence % {"count": f"{weights['effective']:,.1f}"}
    if not weights["without"]:
        return words
    uncounted = ngettext(
        "%(count)s query without a count counts once.",
        "%(count)s queries without a count count once.",
        weights["without"],
    ) % {"count": f"{weights['without']:,}"}
    return f"{words} {uncounted}"


def describe_outdated(systems: Iterable[Mapping[str, Any]]) -> str:
    """Return how many documents of each of a report's systems have a newer text, in a sentence or two; "" for none."""
    # Reports stored earlier have no such numbers.
    runs = [f"{system['name']} {system['outdated']:,}" for system in systems if system.get("outdated")]
    if not runs:
        return ""
    shown = ", ".join(runs[:NAMED])
    if (more := len(runs) - NAMED) > 0:
        message = ngettext("%(runs)s and %(more)s more run", "%(runs)s and %(more)s more runs", more)
        shown = message % {"runs": shown, "more": f"{more:,}"}
    message = _(
        "Ranked documents that have a newer text, whose judgments do not count for the run: %(runs)s. Make these runs "
        "again to compare them by the texts of now."
    )
    return message % {"runs": shown}
