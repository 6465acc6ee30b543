"""`rag SUITE|COLLECTION`: answers from what runs return, judged, and how well retrieval predicts them (RAGAlign)."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import CommandParser

from benchmark.answers import results, suites
from benchmark.answers.evaluations import ANSWERS, answered_queries
from benchmark.answers.options import AnswerOptions
from benchmark.models import AnswerEvaluation, Suite
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
    help = "Answer queries from what runs return, judge the answers, and measure RAGAlign. A second call goes on."

    def arguments(self, parser: CommandParser) -> None:
        """Add the options of an evaluation, and the versions that it is read by."""
        super().arguments(parser)
        self.add_wait(parser)
        parser.add_argument("--before", type=int, metavar="N", help="qrels version before (default: the original)")
        parser.add_argument(
            "--after", type=int, metavar="N", help="qrels version after (default: the newest filled one)"
        )

    def run(self, **options: Any) -> object:
        """Ask about money, begin or go on, with --wait stay until the end, and print the table."""
        suite, members = _find_members(options["name"])
        if suite is not None and (options["before"] is not None or options["after"] is not None):
            raise BadInput("--before and --after name versions of one collection's qrels: leave them out for a suite")
        shares = _share_limits(members, self.wanted(options))
        for number in filter(None, (options["before"], options["after"])):
            versions.version_numbered(members[0], number)  # said before anything begins
        jobs = [one.for_job() for one in shares]
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
        return self.end_evaluations(suite, rows, options)

    def end_evaluations(self, suite: Suite | None, rows: Sequence[AnswerEvaluation], options: Options) -> object:
        """Print what there is; raise Incomplete (exit 3) when an evaluation that was waited for is not whole."""
        found = [_describe_evaluation(row, options) for row in rows]
        for one in found:
            for line in _format_result(one):
                self.say(line)
        document: object = found[0]
        if suite is not None:
            lines = suites.suite_lines([suites.load_member(row) for row in rows])
            for told in _format_suite(lines):
                self.say(told)
            document = {"suite": suite.name, "k": options["k"], "members": found, "lines": lines}
        failed = next((row for row in rows if row.state != JobState.READY), None)
        if failed is not None and options["wait"]:
            why = failed.error or f"it was {failed.state}"
            raise Incomplete(f"Answers of {failed.collection.name}: {why}; the same command goes on", document)
        return document


def _find_members(name: str) -> tuple[Suite | None, list[Collection]]:
    """Return the collection of this name, or the suite with its members. Raises BadInput."""
    collection = Collection.objects.filter(name=name).first()
    if collection is not None:
        return None, [collection]
    suite = Suite.objects.filter(name=name).first()
    if suite is None:
        known = [*Collection.objects.order_by("name")[:10], *Suite.objects.order_by("name")[:10]]
        listed = f"; there are: {', '.join(str(one) for one in known)}" if known else ""
        raise BadInput(f'There is no collection or suite "{name}"{listed}')
    return suite, collections_of(suite)


def _share_limits(members: Sequence[Collection], options: AnswerOptions) -> list[AnswerOptions]:
    """Return each member's options, with its share of the limits by its number of answers."""
    sizes = [len(answered_queries(one)) for one in members]
    budget, calls = options.budget, options.max_calls
    return [
        options.model_copy(
            update={
                "budget": None if budget is None else budget * share,
                "max_calls": None if calls is None else max(1, int(calls * share)),
            }
        )
        for share in (size / max(1, sum(sizes)) for size in sizes)
    ]


def _describe_evaluation(row: AnswerEvaluation, options: Options) -> Options:
    """Return the document of one evaluation: its state, its figures, and its cost."""
    chosen = results.choose_versions(row.collection, options["before"], options["after"])
    cost = results.cost_of(row)
    paid = cost.pop("paid")
    spent = {**cost, "cost": paid.usd if paid else 0.0}
    state = {"state": row.state, "done": row.done, "total": row.total, "error": row.error}
    return {**results.load_result(row, chosen), **state, **spent}


def _format_result(found: Options) -> list[str]:
    """Return lines for people on one evaluation."""
    partial = "" if found["complete"] else f" (partial: {found['waiting']:,} queries wait for answers)"
    versions = f"qrels {found['before']}" + (f" and {found['after']}" if found["after"] else ", nothing filled yet")
    lines = [
        f"{found['collection']}: RAGAlign@{found['k']} over {found['queries']:,} queries, {versions}{partial}",
        f"  {'system':<24} {'generator':<20} {'before':>8} {'after':>8} {'change':>8}  {'p (Holm)':>8}  {'correct':>8}",
    ]
    for cell in found["cells"]:
        lines.append(_format_cell(cell["system"], cell))
    lines += [_format_cell("mean", one) for one in found["means"]]
    if found["moved"] is not None:
        lines.append(f"  {found['moved']} of {len(found['systems'])} systems have another rank by Hit@{found['k']}")
    left = [("no_answers", "queries without reference answers"), ("no_verdict", "queries without a verdict")]
    told = ", ".join(f"{found[key]:,} {words}" for key, words in left if found[key])
    return lines + ([f"  left out: {told}"] if told else [])


def _format_cell(name: str, cell: Mapping[str, Any]) -> str:
    align = cell["align"]
    values = [f"{align[key]:8.4f}" if align.get(key) is not None else f"{'':>8}" for key in ("before", "after")]
    change = f"{align['change']:+8.4f}" if align.get("change") is not None else f"{'':>8}"
    p = f"{align['p_holm']:8.4f}" if align.get("p_holm") is not None else f"{'':>8}"
    return f"  {name:<24} {cell['generator']:<20} {values[0]} {values[1]} {change}  {p}  {cell['generation']:8.4f}"


def _format_suite(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    found = []
    for line in lines:
        mean: Mapping[str, Any] = line["mean"] or {}
        told = [f"{mean[key]:.4f}" if mean.get(key) is not None else "blank" for key in ("before", "after")]
        name = line["system"] or "mean over systems"
        found.append(f"suite, {name}, {line['generator']}: original {told[0]}, filled {told[1]} (unweighted mean)")
        if graded := line["graded"]["mean"]:
            told = [f"{graded[key]:.4f}" if graded[key] is not None else "blank" for key in ("before", "after")]
            found.append(f"  graded: original {told[0]}, filled {told[1]}")
    return found
