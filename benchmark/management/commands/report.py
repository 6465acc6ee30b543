"""`report NAME`: compare runs under two versions of the qrels, as figures and as tables for a paper."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.measures.arrays import RANKING
from benchmark.models import Report, Run
from benchmark.report import reports, services, tabling
from benchmark.report.naming import describe_outdated, describe_weights, label_in
from benchmark.report.systems.chosen import ready_runs
from benchmark.report.verdict import explain_verdict, recall_shift
from benchmark.runs.hybrid import describe_scores
from corpus.commands import ActionCommand, write_tables


class Command(ActionCommand):
    """Make a report unless it is there, and print it."""

    action = staticmethod(services.ask_report)
    help = "Compare all measures of runs before and after hole filling, with tests, rankings and a conclusion."

    def arguments(self, parser: CommandParser) -> None:
        """Add what the report is about, and where its tables go."""
        super().arguments(parser)
        parser.add_argument("--measure", choices=RANKING, default="ndcg", help="measure that orders the systems")
        parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write every table to, as CSV and LaTeX")

    def run(self, **arguments: Any) -> object:
        """Print the report, write its tables, and return the stored result."""
        self.given = arguments
        return super().run(**arguments)

    def report(self, result: Report) -> object:
        """Make the report in this process unless a worker does, and say what it holds."""
        report, measure, out = reports.finish_report(result), self.given["measure"], self.given["out"]
        figures, collection = report.result or {}, report.collection
        for line in format_lines(figures, measure):
            self.say(line)
        runs = list(Run.objects.filter(pk__in=report.options["runs"]).order_by("name"))
        if not self.given["runs"] and (shallow := [run.name for run in ready_runs(collection) if run not in runs]):
            self.stderr.write(f"left out, because they return fewer documents per query: {', '.join(shallow)}")
        for run in runs:
            if description := describe_scores(run):
                self.say(f"  {run.name}: {description}")
        if out is not None:
            write_tables(out, [tabling.leaderboard_table(figures, measure), *tabling.report_tables(figures, measure)])
        numbers = {"before": report.before.number, "after": report.after.number}
        return {"collection": collection.name, "report": report.number, **numbers, "result": figures}


def format_lines(result: dict[str, Any], key: str) -> Iterator[str]:
    """Lines for people of a report by one measure."""
    k, first, common = result["k"], tabling.headline_result(result), result["common"]["queries"]
    queries = f"{len(result['queries']):,} queries, {common:,} of them common to all systems and both qrels"
    yield f"{queries}; {result['holes']:,} holes in the pool"
    if words := describe_weights(result):
        yield words
    if words := describe_outdated(result["systems"]):
        yield words
    yield f"{label_in(result, key)} over {f'the {common:,} common' if first is not result else 'all'} queries"
    head = f"{'system':<24} {'before':>8} {'after':>8} {'change':>8}  {'95%':>18} {'p (Holm)':>9}"
    yield f"  {head}  ranks  {f'Hole@{k}':>8}"
    for system in sorted(first["systems"], key=lambda system: -system["values"][key]["after"]):
        value = system["values"][key]
        span = f"{value['low']:+.4f} to {value['high']:+.4f}"
        ranks = f"{value['rank_before']}>{value['rank_after']}"
        missing = f"  {system['missing']} queries missing" if system["missing"] else ""
        yield (
            f"  {system['name']:<24} {value['before']:8.4f} {value['after']:8.4f} {value['change']:+8.4f}  {span:>18} "
            f"{value['p_holm']:9.4f}  {ranks:<5}  {system['values']['hole']['after']:8.4f}{missing}"
        )
    tau = first["order"][key]["tau"]
    yield f"  Kendall's tau of both orders: {'undefined' if tau is None else f'{tau:.4f}'}"
    if key == "recall" and (shift := recall_shift(result)):
        yield f"  {shift}"
    for sentence in explain_verdict(result["verdict"]):
        yield f"  {sentence}"
