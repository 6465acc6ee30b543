"""`evaluate --qrels F --run F --measures "nDCG@10 R@100"`: measure a run, with means, values and paired tests."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.measures.aspects import DEFAULT, evaluate_aspects, is_aspect_measure
from benchmark.measures.following import became_irrelevant, p_mrr
from benchmark.measures.rankings import (
    MeasureResult,
    Run,
    compare_runs,
    evaluate_run,
    is_count,
    parse_measures,
    split_measures,
)
from benchmark.runs.files import read_qrels, read_run
from corpus.aspects.files import read_aspects
from corpus.commands import QuorumCommand
from corpus.errors import BadInput, BadOption
from corpus.formats.files import FileSource
from corpus.importing.columns import COLUMN_HELP, parse_columns
from corpus.importing.tables import describe_unused


class Command(QuorumCommand):
    """Measure a run, and compare it with others on the same queries."""

    columns: Mapping[str, str] = {}  # The fields of columns in tables whose headers are not recognised.
    help = "Evaluate a TREC run with ir_measures. Ties break as in trec_eval; queries missing from the run count 0."

    def arguments(self, parser: CommandParser) -> None:
        """Add the files, the measures, and the runs to compare with."""
        parser.add_argument("--qrels", type=Path, required=True, metavar="F", help="TREC or BEIR qrels")
        parser.add_argument("--run", type=Path, required=True, metavar="F", dest="ranking", help="TREC run")
        parser.add_argument("--column", action="append", default=[], metavar="HEADER=FIELD", help=COLUMN_HELP)
        parser.add_argument(
            "--measures",
            required=True,
            help='names of measures as in ir_measures, for example "nDCG@10 R@100" or "nDCG@10,R@100"',
        )
        parser.add_argument(
            "--against",
            type=Path,
            action="append",
            default=[],
            metavar="F",
            help="another TREC run to compare with (repeatable)",
        )
        parser.add_argument("--per-query", action="store_true", help="also print the values of every query")
        parser.add_argument(
            "--aspects", type=Path, metavar="F", help="aspects file; adds alpha-nDCG@k and A-Recall@k (default: @10)"
        )
        parser.add_argument(
            "--changed-run",
            type=Path,
            metavar="F",
            help="run of the same system under changed instructions; adds p-MRR",
        )
        parser.add_argument(
            "--changed-qrels", type=Path, metavar="F", help="with --changed-run: qrels for the changed instructions"
        )
        parser.add_argument(
            "--relevant-from",
            type=int,
            default=1,
            metavar="G",
            help="lowest grade that counts as relevant for p-MRR (default: 1)",
        )

    def run(self, **options: Any) -> object:
        """Read all files first, so that bad input is reported at once, then measure the run."""
        names = split_measures(options["measures"])
        by_aspect = [name for name in names if is_aspect_measure(name)]
        plain = [name for name in names if not is_aspect_measure(name)]
        if by_aspect and not options["aspects"]:
            raise BadOption("aspects", f"{by_aspect[0]} needs a file of aspects.")
        if plain or not by_aspect:
            parse_measures(plain)
        if bool(options["changed_run"]) != bool(options["changed_qrels"]):
            raise BadInput("p-MRR needs both: name --changed-run F and --changed-qrels F")
        aspects = read_aspects(options["aspects"]) if options["aspects"] else []
        self.columns = parse_columns(options["column"])
        qrels, run = read_qrels(options["qrels"], self.columns), read_run(options["ranking"], self.columns)
        for path, parts in ((options["qrels"], ["qrels"]), (options["ranking"], ["runs"])):
            if unused := describe_unused(FileSource(path, fields=self.columns), parts):
                self.stderr.write(unused)
        result = (
            evaluate_run(qrels, run, plain)
            if plain
            else MeasureResult(len(qrels), sorted(set(qrels) - set(run)), {}, {})
        )
        document: dict[str, Any] = {
            "run": str(options["ranking"]),
            "queries": result.queries,
            "missing_queries": len(result.missing),
            "measures": result.means,
        }
        if options["per_query"]:
            document["per_query"] = result.per_query
        if aspects:
            # Measures of aspects are over the queries of the aspects file.
            aspect_result = evaluate_aspects(aspects, run, by_aspect or DEFAULT)
            document["measures"] = {**document["measures"], **aspect_result.means}
            document["aspects"] = {"queries": aspect_result.queries, "missing_queries": len(aspect_result.missing)}
            if options["per_query"]:
                document["per_query"] = {**document["per_query"], **aspect_result.per_query}
        if options["changed_run"]:
            document["following"] = self.following(options, qrels, run)
        if options["against"]:
            document["against"] = [self.against(path, qrels, result) for path in options["against"]]
        self.tell(document)
        return document

    def following(self, options: dict[str, Any], qrels: dict[str, dict[str, int]], run: Run) -> dict[str, Any]:
        """Return p-MRR between this run with its qrels and the changed ones."""
        changed_qrels = read_qrels(options["changed_qrels"], self.columns)
        irrelevant = became_irrelevant(qrels, changed_qrels, options["relevant_from"])
        result = p_mrr(run, read_run(options["changed_run"], self.columns), irrelevant)
        per_query = {"per_query": result["per_query"]} if options["per_query"] else {}
        return {
            "run": str(options["changed_run"]),
            "queries": result["queries"],
            "documents": result["documents"],
            "missing_queries": len(result["missing"]),
            "p-MRR": result["value"],
            **per_query,
        }

    def against(self, path: Path, qrels: dict[str, dict[str, int]], result: MeasureResult) -> dict[str, Any]:
        """Return the tested differences between the run and another one."""
        other = evaluate_run(qrels, read_run(path, self.columns), list(result.means))
        # Counts are sums over the queries, so that a test of the mean difference would be meaningless.
        averaged = [name for name, measure in parse_measures(list(result.means)).items() if not is_count(measure)]
        tests = [asdict(compare_runs(name, result.per_query[name], other.per_query[name])) for name in averaged]
        return {"run": str(path), "missing_queries": len(other.missing), "measures": other.means, "paired": tests}

    def tell(self, document: dict[str, Any]) -> None:
        """Print the document as text."""
        missing = f", {document['missing_queries']} missing in the run count 0" if document["missing_queries"] else ""
        self.say(f"{document['run']}: {document['queries']} queries{missing}")
        if aspects := document.get("aspects"):
            queries, missing_queries = aspects["queries"], aspects["missing_queries"]
            self.say(f"  aspects of {queries} queries, {missing_queries} missing in the run count 0")
        for name, value in document["measures"].items():
            self.say(f"  {name:<18} {value:.4f}")
        if per_query := document.get("per_query"):
            # A column for each measure, "-" for a missing value.
            queries = list(dict.fromkeys(query for values in per_query.values() for query in values))
            first = max(map(len, ["query", *queries]))
            widths = {name: max(len(name), 6) for name in per_query}
            self.say(" ".join([f"  {'query':<{first}}", *(f"{name:>{width}}" for name, width in widths.items())]))
            for query in queries:
                values = [f"{per_query[name][query]:.4f}" if query in per_query[name] else "-" for name in per_query]
                cells = [f"{value:>{width}}" for value, width in zip(values, widths.values(), strict=True)]
                self.say(" ".join([f"  {query:<{first}}", *cells]))
        if following := document.get("following"):
            documents = f"{following['documents']} documents of {following['queries']} queries became irrelevant"
            self.say(f"  {'p-MRR':<18} {following['p-MRR']:+.4f}  ({documents})")
        for other in document.get("against", []):
            self.say(f"against {other['run']}")
            for test in other["paired"]:
                interval = f"{test['low']:+.4f} to {test['high']:+.4f}"
                self.say(f"  {test['measure']:<18} {test['difference']:+.4f}  (95% {interval})  p {test['p']:.4f}")
