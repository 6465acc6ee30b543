"""Options of a synthesis, by its product."""

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from actions.options import option
from benchmark.models import Synthesis
from benchmark.synthesis.seeds import QUERIES
from judges.model_jobs.options import DrawnOptions, PaidOptions


class BundleOptions(DrawnOptions):
    """Options of bundles: queries with relevant and other passages, written from seed queries."""

    product: ClassVar = Synthesis.Product.BUNDLES

    judge: str = option(_("Model"), _("Answers every step: persona, type, answer, aspects, plans."))
    writer: str = option(_("Model that writes the passages"), default="")
    dev: float = option(
        _("Share of bundles for a dev split"),
        _(
            "Leave blank to keep synthetic queries out of dev. A dev split of synthetic queries measures a model on "
            "texts that a model wrote."
        ),
        default=0.0,
        ge=0,
        le=0.5,
    )
    seeds: str = option(_("Seeds"), _("“queries”: those of the collection; else a file of queries."), default=QUERIES)
    personas: str | None = option(_("Personas"), _("File of examples, one a line."), default=None)

    leaves_out: ClassVar = {
        "page": {"seeds": "the queries of the collection are the seeds", "personas": "a file on the machine"}
    }

    def for_job(self) -> dict[str, Any]:
        return {**self.model_dump(), "kind": self.product.value, "source": self.seeds}


class QueryOptions(PaidOptions):
    """Options of queries without passages, to which documents of the collection are judged."""

    product: ClassVar[Synthesis.Product]

    judge: str = option(_("Model"))
    pairs: int = option(
        _("Documents per query"),
        _("BM25 finds them for the words of the new query. They become pairs to judge."),
        default=20,
        ge=1,
        le=1000,
    )
    seed: int = option(_("Random seed"), default=0)

    def for_job(self) -> dict[str, Any]:
        return {**self.model_dump(), "kind": self.product.value, "source": getattr(self, "data", "documents")}


class KeywordOptions(QueryOptions):
    """Options of keyword forms of a training set's queries."""

    product: ClassVar = Synthesis.Product.KEYWORDS

    data: str = option(_("Training set"), _("Queries of its dev and test splits stay as they are."))
    share: float = option(
        _("Share of its training queries"),
        _("Drawn at random. Prism uses 0.3."),
        default=0.3,
        ge=0.001,
        le=1,
    )


class AskOptions(QueryOptions):
    """Options of queries that documents answer."""

    product: ClassVar = Synthesis.Product.ASK

    limit: int = option(_("Documents"), _("Drawn at random."), initial=20, ge=1)
