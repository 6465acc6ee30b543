"""`report NAME`: compare runs under two versions of the qrels, as figures and as tables for a paper."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.models import Qrels, Run
from benchmark.qrels import versions
from benchmark.report import reports, tabling
from benchmark.report.measures import RANKING
from benchmark.report.naming import label_in
from benchmark.report.verdict import explain_verdict, recall_shift
from benchmark.runs import builders
from benchmark.runs.hybrid import scores_told
from benchmark.systems.chosen import ready_runs
from corpus.collections.audit_log import shell_user
from corpus.commands import QuorumCommand, collection_named, write_tables
from corpus.errors import BadInput
from corpus.models import Collection


class Command(QuorumCommand):
    """Make a report unless it is there, and print it."""

    help = "Compare all measures of runs before and after hole filling, with tests, rankings and a conclusion."

    def arguments(self, parser: CommandParser) -> None:
        """Add what the report is about, and where its tables go."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("--runs", nargs="+", metavar="RUN", help="names of runs (default: all that are ready)")
        parser.add_argument(
            "--before", type=int, metavar="N", help="number of the qrels version before (default: the original)"
        )
        parser.add_argument(
            "--after", type=int, metavar="N", help="number of the qrels version after (default: the newest filled one)"
        )
        parser.add_argument("--k", type=int, default=reports.K, help="cutoff rank of the measures")
        parser.add_argument(
            "--aspects-k",
            type=int,
            metavar="K",
            help="cutoff rank of alpha-nDCG and A-Recall (default: k; the paper uses 25)",
        )
        parser.add_argument("--measure", choices=RANKING, default="ndcg", help="measure that orders the systems")
        parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write every table to, as CSV and LaTeX")

    def run(self, **options: Any) -> object:
        """Print the report, write its tables, and return the stored result."""
        collection, k = collection_named(options["name"]), options["k"]
        runs = runs_of(collection, options["runs"], max(k, options["aspects_k"] or k))
        before, after = choose_versions(collection, options["before"], options["after"])
        report = reports.ensure_report(collection, before, after, runs, k, shell_user(), aspects_k=options["aspects_k"])
        result = report.result or {}
        for line in format_lines(result, options["measure"]):
            self.say(line)
        if options["runs"] is None:
            shallow = [run.name for run in ready_runs(collection) if run not in runs]
            if shallow:
                self.stderr.write(f"left out, because they return fewer documents per query: {', '.join(shallow)}")
        notes = {run.name: told for run in sorted(runs, key=lambda run: run.name) if (told := scores_told(run))}
        for name, told in notes.items():
            self.say(f"  {name}: {told}")
        if options["out"] is not None:
            board = tabling.leaderboard_table(result, options["measure"])
            write_tables(options["out"], [board, *tabling.report_tables(result, options["measure"])])
        about = {"collection": collection.name, "report": report.number, "before": before.number, "after": after.number}
        return {**about, "result": result}


def runs_of(collection: Collection, names: list[str] | None, k: int) -> list[Run]:
    """Return the runs of these names, or all that are ready and deep enough. Raises BadInput."""
    if names is None:
        deep, every = ready_runs(collection, k), ready_runs(collection)
        if every and not deep:
            shown = ", ".join(f"{run.name} {run.depth}" for run in every[:10])
            deepest = max(run.depth for run in every)
            raise BadInput(
                f"No run of {collection.name} returns {k} documents per query ({shown}): give --k {deepest} or less"
            )
        return deep
    found = []
    for name in names:
        run = builders.find_run(collection, name)
        if run is None:
            raise BadInput(f"{collection.name} has no run {name}")
        found.append(run)
    return found


def choose_versions(collection: Collection, before: int | None, after: int | None) -> tuple[Qrels, Qrels]:
    """Return the two versions to compare; the same twice where nothing is filled yet."""
    # The original is made, or renewed, before `after` is looked up: its number may be the one that is meant.
    if before is None:
        first = versions.original_version(collection, shell_user())
    else:
        first = versions.version_numbered(collection, before)
    if after is not None:
        return first, versions.version_numbered(collection, after)
    return first, versions.latest_version(collection, Qrels.Kind.FILLED) or first


def format_lines(result: dict[str, Any], key: str) -> Iterator[str]:
    """Lines for people of a report by one measure."""
    k, first, common = result["k"], tabling.headline_result(result), result["common"]["queries"]
    queries = f"{len(result['queries']):,} queries, {common:,} of them common to all systems and both qrels"
    yield f"{queries}; {result['holes']:,} holes in the pool"
    yield f"{label_in(result, key)} over {f'the {common:,} common' if first is not result else 'all'} queries"
    head = f"{'system':<24} {'before':>8} {'after':>8} {'change':>8}  {'95%':>18} {'p (Holm)':>9}"
    yield f"  {head}  ranks  {f'Hole@{k}':>8}"
    for one in sorted(first["systems"], key=lambda one: -one["values"][key]["after"]):
        value = one["values"][key]
        span = f"{value['low']:+.4f} to {value['high']:+.4f}"
        ranks = f"{value['rank_before']}>{value['rank_after']}"
        missing = f"  {one['missing']} queries missing" if one["missing"] else ""
        yield (
            f"  {one['name']:<24} {value['before']:8.4f} {value['after']:8.4f} {value['change']:+8.4f}  {span:>18} "
            f"{value['p_holm']:9.4f}  {ranks:<5}  {one['values']['hole']['after']:8.4f}{missing}"
        )
    tau = first["order"][key]["tau"]
    yield f"  Kendall's tau of both orders: {'undefined' if tau is None else f'{tau:.4f}'}"
    if key == "recall" and (shift := recall_shift(result)):
        yield f"  {shift}"
    for sentence in explain_verdict(result["verdict"]):
        yield f"  {sentence}"
