"""Options of the agent jobs: searching, grading, writing reference answers."""

from typing import ClassVar, Literal

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from actions.options import Names, option
from benchmark.agents.grades import EVEN, UP
from benchmark.agents.protocol import ADAPTIVE, FIXED
from judges.model_jobs.options import PaidOptions

Protocol = Literal["fixed", "adaptive"]
PROTOCOLS = {
    FIXED: _("fixed: an answer after each of three rounds"),
    ADAPTIVE: _("adaptive: the agent decides when it has found enough"),
}
HALVES = {UP: _("up: 4.5 is 5"), EVEN: _("to the even number, as Python rounds: 4.5 is 4")}


class SearchOptions(PaidOptions):
    """Options of a search: agents, retrievers and the protocol."""

    retrievers: Names = option(
        _("Retrievers"), _("BM25, and runs whose system can search for any text: BM25 and dense."), at_least=1
    )
    agents: Names = option(_("Agents"), _("A mean over agents needs at least two."), at_least=1)
    protocol: Protocol = option(_("Rounds"), choices=PROTOCOLS, default="fixed")
    rounds: int | None = option(
        _("Number of rounds"), _("Of an adaptive agent the limit. Empty: 3, or 100."), default=None, ge=1, le=100
    )
    tokenizer: str | None = option(
        _("Tokenizer"),
        _("Documents are cut at 2,048 tokens. A folder among the base models of this site (QUORUM_BASE_MODELS)."),
        default=None,
    )

    leaves_out: ClassVar = {"page": {"rounds": "a table compares agents of the protocol's own number"}}


class GradeOptions(PaidOptions):
    """Options of a grading: whose answers are graded, and by which judge."""

    protocol: Protocol | None = option(_("Rounds"), choices=PROTOCOLS, default=None, initial=FIXED)
    judge: str = option(
        pgettext_lazy("answers", "Judge"),
        _("Grades each answer without knowing which agent and retriever it is from."),
    )
    halves: Literal["up", "even"] = option(_("Halves of the completeness"), choices=HALVES, default="up")

    leaves_out: ClassVar = {
        "command": {name: "the same as of the search" for name in ("protocol", "budget", "max_calls")}
    }


class ReferenceOptions(PaidOptions):
    """Options of reference answers: the model that writes them."""

    judge: str = option(_("Writer"), _("Writes one answer per query, from the passages of its aspects alone."))
