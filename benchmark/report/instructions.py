"""p-MRR of two stored runs: the same system under the original and under changed instructions (FollowIR)."""

from benchmark import qrels
from benchmark.measures.following import Following, became_irrelevant, p_mrr
from benchmark.models import Qrels, Run
from benchmark.runs import rankings


def measure_following(original: Run, changed: Run, before: Qrels, after: Qrels) -> Following:
    """`after` are the qrels of the changed instructions. Raises BadInput where no document became irrelevant."""
    gone = became_irrelevant(qrels.load_named(before), qrels.load_named(after), original.collection.relevant_from)
    return p_mrr(rankings.as_run(original), rankings.as_run(changed), gone)
