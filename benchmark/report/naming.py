"""Names of measures for people, in the reader's language. Pure."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy

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
# In the order of tables; `_one`: each document counts for one aspect, as in the paper.
ASPECTS = ("alpha_ndcg", "alpha_ndcg_one", "a_recall", "a_recall_one")


def measure_label(key: str, k: int) -> str:
    """Return the name of a measure, such as "nDCG@10 (exponential gain)"."""
    form = next((ending for ending in FORMS if key.endswith(ending)), "")
    name = PLAIN[key.removesuffix(form)].format(k=k)
    return FORMS[form] % {"measure": name} if form else name


def label_in(result: Mapping[str, Any], key: str) -> str:
    """Return the name of a measure at its depth in a report."""
    aspects = result.get("aspects") if key in ASPECTS else None
    return measure_label(key, (aspects or {}).get("k") or result["k"])
