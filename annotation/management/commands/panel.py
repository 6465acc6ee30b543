"""`panel NAME [--candidates a,b,...] [--size 5]`: recommend judges for a panel, from stored votes and labels.

`panel NAME --self-check [--panel P | --candidates a,b,...]`: test judges before a large campaign.
"""

from typing import Any

from django.core.management.base import CommandParser

from annotation.quality.panels import self_checks
from annotation.quality.panels.report import (
    MEASURES,
    PanelSelection,
    build_json_document,
    choose_panel,
    summarise_choice,
)
from annotation.quality.panels.subsets import SIZE
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput, Incomplete
from corpus.models import Collection
from judges.costs.judge_records import records_of
from judges.probes.self_check import forecast


class Command(QuorumCommand):
    """Recommend a panel from stored data; only --self-check makes calls."""

    help = "Recommend a panel: candidates above a quality floor, in the combination with the most independent errors."

    def arguments(self, parser: CommandParser) -> None:
        """Add the options of the recommendation and of the self-check."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "--candidates",
            default="",
            metavar="a,b,...",
            help="names of judges and imported assessors, separated by commas (default: all)",
        )
        parser.add_argument(
            "--size", type=int, default=SIZE, help="number of judges on the panel: 3, 5 (default), 7 or 9"
        )
        parser.add_argument(
            "--floor",
            type=float,
            metavar="X",
            help="minimum quality of a candidate (default: derived from all candidates)",
        )
        parser.add_argument(
            "--bootstrap",
            type=int,
            default=0,
            metavar="N",
            help="number of bootstrap resamples for 95%% intervals (default: 0, no intervals)",
        )
        parser.add_argument(
            "--self-check", action="store_true", help="ask the judges questions with known answers; makes paid calls"
        )
        parser.add_argument(
            "--panel", metavar="P", help="with --self-check: panel whose judges are asked (default: the default panel)"
        )

    def run(self, **options: Any) -> object:
        """Recommend a panel and print it, or with --self-check test judges."""
        names = [name.strip() for name in options["candidates"].split(",") if name.strip()]
        if len(set(names)) != len(names):
            raise BadInput("--candidates names a judge twice")
        if options["bootstrap"] < 0:
            raise BadInput(f"--bootstrap {options['bootstrap']}: the number of resamples cannot be negative")
        if options["floor"] is not None and not -1 <= options["floor"] <= 1:
            raise BadInput(f"--floor {options['floor']}: balanced accuracy and kappa are numbers up to 1")
        collection = collection_named(options["name"])
        if options["self_check"]:
            return self.check_judges(collection, options["panel"], names)
        if options["panel"]:
            raise BadInput("--panel is for --self-check; name candidates with --candidates a,b,...")
        recommendation = choose_panel(
            collection, names, floor=options["floor"], bootstrap=options["bootstrap"], size=options["size"]
        )
        if not self.as_json:
            self.show(recommendation)
        return build_json_document(recommendation)

    def check_judges(self, collection: Collection, panel: str | None, names: list[str]) -> object:
        """Test the judges of a panel, or the named ones; exit with 3 where one of them does not pass."""
        panel_row, judges = (None, self_checks.current_versions(names)) if names else self_checks.panel_judges(panel)
        if panel_row is not None and not judges:
            raise BadInput(f"Nobody of panel {panel_row.name} can be asked: offline debaters argue and do not vote")
        probes = self_checks.collection_probes(collection)
        own_probes = sum(probe.own for probe in probes)
        total = self_checks.REPEATS * len(judges) * sum(len(probe.documents) for probe in probes)  # Without retries.
        cost = forecast(records_of(judges), probes, self_checks.REPEATS)
        built_in = len(probes) - own_probes
        probe_counts = f"{built_in} built-in probes, {own_probes} of the collection"
        self.say(f"{len(judges)} judges, {probe_counts}: {cost.line()}")

        def done(count: int) -> None:
            # On stderr, since stdout may carry the JSON document.
            if not count % 50:
                self.stderr.write(f"{count:,} of {total:,} answers")

        rows = self_checks.self_check(collection, judges, probes, done=done)
        for row in rows:
            state = "passes" if row.passes else "FAILS"
            findings = row.findings
            words = "; ".join([*findings["problems"], *([findings["error"]] if findings["error"] else [])])
            if not words:
                clear = findings["clear"]
                couples = clear["right"] + clear["tied"] + clear["reversed"]
                words = f"{clear['right']} of {couples} couples in the known order, the same answer twice on "
                words += f"{findings['repeated']} of {findings['repeats']} documents"
            self.say(f"  {row.judge.name}: {state}. {words}")
        document = {"collection": collection.name, "judges": self_checks.build_json_document(rows)}
        if failed := [row.judge.name for row in rows if not row.passes]:
            raise Incomplete(f"{len(failed)} of {len(rows)} judges do not pass: {', '.join(failed)}", document)
        return document

    def show(self, recommendation: PanelSelection) -> None:
        """Print the summary, a line for each candidate and each pair, and the best panels."""
        measures, panels = recommendation.measures, recommendation.panels
        for line in summarise_choice(recommendation):
            self.say(line)
        names = recommendation.names(range(len(measures.qualities)))
        width = max(map(len, names))
        self.say(f"Candidates ({MEASURES[measures.floor.measure]}, mean kappa with the others, USD a pair):")
        for index, name in enumerate(names):
            candidate, quality = recommendation.material.candidates[index], measures.qualities[index]
            state = "passes" if quality.passes else "FAILS "
            note = f"  ({candidate.note})" if candidate.note else ""
            value, mean = recommendation.quality(index).value, measures.mean_kappas[index]
            self.say(f"  {name:{width}}  {state}  {_number(value)}  {_number(mean)}  {_usd(candidate.cost)}{note}")
        for check in recommendation.checks.values():
            self.say(f"  Self-check of {check.judge}: {check.summary}")
        for pair in measures.agreements:
            self.say(f"  {names[pair.a]} - {names[pair.b]}: kappa {_number(pair.kappa.value)}, n {pair.n}")
        for title, proposals in (("mean", panels.by_mean_kappa), ("largest", panels.by_largest_kappa)):
            for proposal in proposals[:3]:
                values = f"mean {proposal.subset.mean_kappa:.3f}, largest {proposal.subset.largest_kappa:.3f}"
                self.say(f"By {title} kappa: {', '.join(recommendation.names(proposal.members))} ({values})")
        best = panels.proposed
        if best and recommendation.usable(best):
            judges = ", ".join(f'"{recommendation.material.candidates[member].judge}"' for member in best.members)
            self.say(f"For the judges file: ensemble = [{judges}]")


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _usd(value: float | None) -> str:
    return "price unknown" if value is None else f"${value:.6f}"
