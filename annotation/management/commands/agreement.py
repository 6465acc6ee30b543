"""`agreement NAME`: agreement of a collection's assessors."""

from typing import Any

from django.core.management.base import CommandParser
from numpy.linalg import LinAlgError

from annotation.agreement import aggregates
from annotation.agreement.cached_results import MeasuringFailed, describe_error
from annotation.agreement.grade_matrix import choose_assessors, known_assessors
from annotation.agreement.measures import Statistic
from annotation.agreement.report import (
    AgreementReport,
    agreement_report,
    build_json_document,
    mixed_prompts,
    mixed_votes,
    shared_errors,
)
from corpus.commands import QuorumCommand, collection_named


class Command(QuorumCommand):
    help = "Measure how far judges, people and imports agree (kappa, alpha, percent)."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "--assessors",
            default="",
            help="names of assessors, separated by commas; reference grades and policies count as assessors",
        )
        parser.add_argument("--people", action="store_true", help="compare people (imported ones too)")
        parser.add_argument("--judges", action="store_true", help="compare judges (imported ones too)")
        parser.add_argument(
            "--binarize", type=int, metavar="G", help="treat grades of at least G as 1 and all others as 0"
        )
        parser.add_argument(
            "--bootstrap",
            type=int,
            default=0,
            metavar="N",
            help="number of bootstrap resamples for 95%% intervals (default: 0, no intervals)",
        )

    def run(self, **options: Any) -> object:
        collection = collection_named(options["name"])
        names = [name.strip() for name in options["assessors"].split(",") if name.strip()]
        assessors = choose_assessors(
            known_assessors(collection), names=names, people=options["people"], judges=options["judges"]
        )
        try:
            report = agreement_report(
                collection, assessors, binarize=options["binarize"], bootstrap=options["bootstrap"]
            )
            estimate = aggregates.fit_dawid_skene(report)
        # Thousands of assessors may need more memory than there is: that is an error message, not a traceback.
        except (MemoryError, ArithmeticError, LinAlgError) as error:
            raise MeasuringFailed(
                f"Agreement cannot be measured: {describe_error(error)}; name fewer assessors with --assessors, "
                "or use a machine with more memory"
            ) from error
        if not self.as_json:
            self.show(report)
            if estimate.solution is None:
                line = f"none ({estimate.reason})"
            elif estimate.solution.collapsed:
                line = f"collapsed, not to be used ({estimate.solution.collapsed})"
            else:
                line = (
                    f"log-likelihood {estimate.solution.log_likelihood:.4f}, differs from the majority on "
                    f"{estimate.differing} of {estimate.items} pairs, decides {estimate.ties} ties"
                )
            self.say(f"Dawid-Skene: {line}")
        notes = (mixed_prompts(collection), mixed_votes(report, collection), shared_errors(report))
        for note in filter(None, notes):
            self.say(note)
        return build_json_document(report, aggregates.dawid_skene_document(estimate))

    def show(self, report: AgreementReport) -> None:
        """Print the report: a line for each assessor, pair of assessors, and overall measure."""
        measures = report.measures
        self.say(f"{len(report.assessors)} assessors, {measures.items} pairs (population: all)")
        for assessor in report.assessors:
            self.say(f"  {assessor.name} ({assessor.kind}): {assessor.n} pairs, {assessor.relevant} relevant")
        if measures.apart:
            self.say(f"  {measures.apart} couples of assessors have no pair in common and are not listed")
        for pair in measures.pairwise:
            names = f"{report.name(pair.a)} - {report.name(pair.b)}"
            copy = " (same model)" if report.is_copy(pair.a, pair.b) else ""
            self.say(f"  {names}: kappa {_text(pair.kappa)}, percent {_text(pair.percent)}, n {pair.n}{copy}")
        for label, value in (
            (f"Fleiss' kappa (pairs with {measures.fleiss_votes} grades)", measures.fleiss),
            ("alpha, nominal", measures.alpha_nominal),
            ("alpha, ordinal", measures.alpha_ordinal),
            ("alpha, interval", measures.alpha_interval),
        ):
            self.say(f"{label}: {_text(value)}, n {value.n}")


def _text(statistic: Statistic) -> str:
    if statistic.value is None:
        return f"undefined ({statistic.reason})"
    bounds = "" if statistic.low is None else f" [{statistic.low:.3f}, {statistic.high:.3f}]"
    return f"{statistic.value:.3f}{bounds}"
