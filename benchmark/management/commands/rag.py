"""`rag SUITE|COLLECTION`: answer queries from the documents of runs, judge the answers, and measure RAGAlign."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import CommandParser

from benchmark.answers import results, suites
from benchmark.answers.evaluations import ANSWERS, answered_queries
from benchmark.models import Suite
from benchmark.qrels import versions
from benchmark.suites.groups import collections_of
from corpus.errors import BadInput, Incomplete
from corpus.models import Collection
from jobs import workers
from jobs.models import JobState
from judges.management.job_command import JobCommand

Options = dict[str, Any]


class Command(JobCommand):
    name = "rag"
    kind = ANSWERS
    help = "Answer queries from what runs return, judge the answers, and measure RAGAlign. A second call continues."

    def arguments(self, parser: CommandParser) -> None:
        """Add the options of an evaluation, and the versions of the qrels for its figures."""
        super().arguments(parser)
        self.add_wait(parser)
        parser.add_argument("--before", type=int, metavar="N", help="qrels version before (default: the original)")
        parser.add_argument(
            "--after", type=int, metavar="N", help="qrels version after (default: the newest filled one)"
        )

    def run(self, **options: Any) -> object:
        """Evaluate the answers of a collection, or of each member of a suite.

        1. Find the members, and share the limits among them by their numbers of answers.
        2. Estimate the cost and ask for agreement.
        3. Start or resume the evaluations, and with --wait stay until their end.
        4. Print the figures; raise Incomplete (exit 3) if an awaited evaluation is not complete.
        """
        suite, members = _find_members(options["name"])
        if suite is not None and (options["before"] is not None or options["after"] is not None):
            raise BadInput("--before and --after name versions of one collection's qrels: leave them out for a suite")
        answer_options = self.wanted(options)
        sizes = [len(answered_queries(collection)) for collection in members]
        shares = []
        for size in sizes:
            share = size / max(1, sum(sizes))
            limits = {
                "budget": None if answer_options.budget is None else answer_options.budget * share,
                "max_calls": None
                if answer_options.max_calls is None
                else max(1, int(answer_options.max_calls * share)),
            }
            shares.append(answer_options.model_copy(update=limits))
        # An unknown version is reported before anything starts.
        for number in filter(None, (options["before"], options["after"])):
            versions.version_numbered(members[0], number)
        jobs = [member_options.for_job() for member_options in shares]
        estimate = ANSWERS.estimate_all(members, jobs)
        if options["estimate"]:
            self.say(estimate.line())
            return {"name": options["name"], "estimate": estimate.line()}
        if not all(map(ANSWERS.is_done, members, jobs)):
            self.agree(estimate, options)
        rows = [self.begin(*pair) for pair in zip(members, shares, strict=True)]
        if options["wait"]:
            for row in rows:
                self.wait_for(row, f"answers of {row.collection.name}")
        elif any(not row.is_over for row in rows) and not workers.live_workers():
            self.note("no worker serves this instance: start `serve`, or wait here with --wait")
        documents = []
        for row in rows:
            pair = results.choose_versions(row.collection, options["before"], options["after"])
            cost = results.cost_of(row)
            paid = cost.pop("paid")
            state = {"state": row.state, "done": row.done, "total": row.total, "error": row.error}
            figures = results.load_result(row, pair)
            documents.append({**figures, **state, **cost, "cost": paid.usd if paid else 0.0})
        for evaluation in documents:
            for line in _format_result(evaluation):
                self.say(line)
        document: object = documents[0]
        if suite is not None:
            lines = suites.suite_lines([suites.load_member(row) for row in rows])
            for suite_line in _format_suite(lines):
                self.say(suite_line)
            document = {"suite": suite.name, "k": options["k"], "members": documents, "lines": lines}
        incomplete = next((row for row in rows if row.state != JobState.READY), None)
        if incomplete is not None and options["wait"]:
            reason = incomplete.error or f"it was {incomplete.state}"
            raise Incomplete(
                f"Answers of {incomplete.collection.name}: {reason}; run the same command to continue", document
            )
        return document


def _find_members(name: str) -> tuple[Suite | None, list[Collection]]:
    """Return the collection of this name, or the suite with its members. Raises BadInput."""
    collection = Collection.objects.filter(name=name).first()
    if collection is not None:
        return None, [collection]
    suite = Suite.objects.filter(name=name).first()
    if suite is None:
        existing = [*Collection.objects.order_by("name")[:10], *Suite.objects.order_by("name")[:10]]
        listed = f"; there are: {', '.join(str(row) for row in existing)}" if existing else ""
        raise BadInput(f'There is no collection or suite "{name}"{listed}')
    return suite, collections_of(suite)


def _format_result(result: Options) -> list[str]:
    """Return the figures of one evaluation as lines of text."""
    partial = "" if result["complete"] else f" (partial: {result['waiting']:,} queries wait for answers)"
    versions = f"qrels {result['before']}" + (f" and {result['after']}" if result["after"] else ", nothing filled yet")
    lines = [
        f"{result['collection']}: RAGAlign@{result['k']} over {result['queries']:,} queries, {versions}{partial}",
        f"  {'system':<24} {'generator':<20} {'before':>8} {'after':>8} {'change':>8}  {'p (Holm)':>8}  {'correct':>8}",
    ]
    for cell in result["cells"]:
        lines.append(_format_cell(cell["system"], cell))
    lines += [_format_cell("mean", mean_row) for mean_row in result["means"]]
    if result["moved"] is not None:
        lines.append(f"  {result['moved']} of {len(result['systems'])} systems have another rank by Hit@{result['k']}")
    left_out = [("no_answers", "queries without reference answers"), ("no_verdict", "queries without a verdict")]
    reasons = ", ".join(f"{result[key]:,} {words}" for key, words in left_out if result[key])
    return lines + ([f"  left out: {reasons}"] if reasons else [])


def _format_cell(name: str, cell: Mapping[str, Any]) -> str:
    align = cell["align"]
    values = [f"{align[key]:8.4f}" if align.get(key) is not None else f"{'':>8}" for key in ("before", "after")]
    change = f"{align['change']:+8.4f}" if align.get("change") is not None else f"{'':>8}"
    p = f"{align['p_holm']:8.4f}" if align.get("p_holm") is not None else f"{'':>8}"
    return f"  {name:<24} {cell['generator']:<20} {values[0]} {values[1]} {change}  {p}  {cell['generation']:8.4f}"


def _format_suite(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    formatted = []
    for line in lines:
        mean: Mapping[str, Any] = line["mean"] or {}
        means = [f"{mean[key]:.4f}" if mean.get(key) is not None else "blank" for key in ("before", "after")]
        name = line["system"] or "mean over systems"
        formatted.append(
            f"suite, {name}, {line['generator']}: original {means[0]}, filled {means[1]} (unweighted mean)"
        )
        if graded := line["graded"]["mean"]:
            means = [f"{graded[key]:.4f}" if graded[key] is not None else "blank" for key in ("before", "after")]
            formatted.append(f"  graded: original {means[0]}, filled {means[1]}")
    return formatted
