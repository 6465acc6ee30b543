"""Names of measures for people, in the reader's language. Pure."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

# The field's own names, the same in every language.
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
# In the order of tables; `_one`: each document under one aspect, as in the paper.
ASPECTS = ("alpha_ndcg", "alpha_ndcg_one", "a_recall", "a_recall_one")


def measure_label(key: str, k: int) -> str:
    """Name a measure, such as nDCG@10 (exponential gain)."""
    form = next((ending for ending in FORMS if key.endswith(ending)), "")
    name = PLAIN[key.removesuffix(form)].format(k=k)
    return FORMS[form] % {"measure": name} if form else name


def label_in(result: Mapping[str, Any], key: str) -> str:
    """Name a measure at the depth that it has in a report."""
    own = result.get("aspects") if key in ASPECTS else None
    return measure_label(key, (own or {}).get("k") or result["k"])


def explain_measure(key: str) -> str:
    """Say in one sentence what a measure says."""
    return {
        "hole": _("Relevant documents in the first k that the earlier qrels do not know, over k."),
        "unjudged": _("The share of the returned documents that nobody judged."),
        "judged": _("The share of the returned documents that somebody judged."),
        "hit": _("The share of queries with a relevant document in the first k."),
        "ndcg": _("Gain is the grade, the ideal is cut at k: as trec_eval has it."),
        "ndcg_exp": _("Gain is 2 to the power of the grade, less 1; the ideal is cut at k."),
        "ndcg_bridge": _("Relevant or not; the ideal runs over all relevant documents: the public BRIDGE code."),
        "recall": _("The share of the known relevant documents that stand in the first k."),
        "alpha_ndcg": _("Gain of new aspects by their weight; half for an aspect that was seen before."),
        "alpha_ndcg_one": _("alpha-nDCG where each document counts for its heaviest aspect alone: the paper's."),
        "a_recall": _("The weight of the aspects that the first k cover."),
        "a_recall_one": _("A-Recall where each document counts for its heaviest aspect alone: the paper's."),
    }[key]
