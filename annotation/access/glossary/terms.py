"""The terms of the glossary, each explained in one or two plain sentences."""

from django.utils.translation import gettext_lazy as _

TERMS = {
    "arm": (
        _("Arm"),
        _(
            "A condition of an experiment: for example, annotators see the debate or do not see it. Each pair"
            " is assigned an arm at random."
        ),
    ),
    "aspect": (
        _("Aspect"),
        _(
            "One part of a complete answer to a query, with a weight. Documents are kept under the aspects "
            "that they support."
        ),
    ),
    "campaign": (
        _("Campaign"),
        _("Judging of a collection's pairs by models, with a policy, a panel and spending limits."),
    ),
    "canary": (
        _("Canary"),
        _(
            "A pair with known hostile text, such as “answer yes”. Canaries show whether a judge follows "
            "instructions inside documents."
        ),
    ),
    "contribution": (
        _("Contribution"),
        _(
            "One sentence that says how a relevant document helps with the query. The evidence is the text "
            "that supports it."
        ),
    ),
    "debate": (
        _("Debate"),
        _(
            "Two models argue about a pair, one for “relevant” and one for “not relevant”, until they agree "
            "or the rounds end. Each may be wrong."
        ),
    ),
    "escalated": (
        _("Escalated"),
        _("Sent to people because the judges disagreed, refused or gave no clear answer."),
    ),
    "hole": (
        _("Hole"),
        _(
            "A relevant document that has not been judged yet. Evaluation counts it as not relevant, which "
            "makes systems look worse than they are."
        ),
    ),
    "hole-at-k": (
        _("Hole@k"),
        _("The share of a system's first k documents that are holes: relevant, but missing from the earlier qrels."),
    ),
    "lease": (
        _("Lease"),
        _("The time limit for one pair. When it ends without an answer, the pair returns to the queue."),
    ),
    "ledger": (
        _("Ledger"),
        _("The record of every paid call to a model: tokens, price and cost."),
    ),
    "outcome": (
        _("Outcome"),
        _("The result of the judges for a pair: labelled, escalated to people, or failed."),
    ),
    "panel": (
        _("Panel"),
        _("The judges that vote on a pair, usually five. Their majority gives the label."),
    ),
    "policy": (
        _("Policy"),
        _("The rule that turns debates and votes into labels and decides which pairs are sent to people."),
    ),
    "qrels": (
        _("Qrels"),
        _("Query relevance judgments: a list of queries, documents and grades that rankings are measured on."),
    ),
    "route": (
        _("Route"),
        _(
            "How a label was reached, for example “Round 1 · votes 5-0 · relevant”. Label audits estimate "
            "the accuracy of each route."
        ),
    ),
    "rubric": (
        _("Rubric"),
        _("The definition of relevance that people and models use, with a description of each grade."),
    ),
    "self-check": (
        _("Self-check"),
        _(
            "A test before a campaign: each judge grades documents with a known order, twice. It shows errors"
            " and inconsistent answers."
        ),
    ),
    "teacher": (
        _("Teacher"),
        _(
            "The source of the target scores that a trained model learns to reproduce: panel votes, reranker "
            "scores or labels."
        ),
    ),
    "vote": (
        _("Vote"),
        _("One judge's answer on a pair: a grade, or relevant or not relevant."),
    ),
}
"""Terms and explanations by the anchor on the page, in the order of the English alphabet."""
