"""Options of an evaluation of answers."""

from typing import Any, Literal

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from actions.options import Names, option
from benchmark.answers.contexts import DOCUMENT, EVIDENCE
from judges.model_jobs.options import PaidOptions

K = 10
CONTEXTS = {DOCUMENT: _("the documents"), EVIDENCE: _("the evidence written about the documents")}


class AnswerOptions(PaidOptions):
    """Options of an evaluation: the runs, the generators that answer from them, and the judge that compares."""

    systems: Names = option(_("Runs"), at_least=1)
    generator: Names = option(_("Generators"), at_least=1)
    judge: str = option(
        pgettext_lazy("answers", "Judge"), _("Compares each answer with the reference answers of the query.")
    )
    k: int = option(
        _("Depth k"),
        _("Documents of each run that the generator sees. Hit@k and nDCG@k use the same k."),
        default=K,
        ge=1,
        le=100,
    )
    contexts: Literal["document", "evidence"] = option(_("Contexts"), choices=CONTEXTS, default="document")

    def for_job(self) -> dict[str, Any]:
        values = super().for_job()
        return {**values, "generators": values.pop("generator")}
