"""`agents SUITE|COLLECTION`: agents search with retrievers, a judge grades their answers, and the table of both."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from actions.options import split_names
from benchmark.agents import exchange, jobs, sampling
from benchmark.agents.board import AgentBoard, build_board
from benchmark.agents.grades import EVEN, UP
from benchmark.agents.grading import GRADINGS
from benchmark.agents.searching import SEARCHES
from benchmark.agents.suites import find_target, suite_board
from benchmark.models import AgentJob, Suite
from corpus.collections.audit_log import shell_user
from corpus.errors import BadInput, Incomplete
from corpus.models import Collection
from jobs import workers
from jobs.models import JobState
from judges.campaigns.estimates import Estimate
from judges.management.job_command import JobCommand
from judges.model_jobs.jobs import LIMITS


class Command(JobCommand):
    name = "agents"
    act = "agents.started"
    help = "Let agents search with retrievers, grade their answers, and show the table. The same command continues."

    def arguments(self, parser: CommandParser) -> None:
        """Add who searches with what, who grades, and the limits."""
        parser.add_argument("name", help="name of a suite or a collection")
        parser.add_argument(
            "--retrievers", type=split_names, default=(), help="bm25, or runs of kind bm25, dense or embedding"
        )
        parser.add_argument("--agents", type=split_names, default=(), help="judges that search and answer")
        parser.add_argument(
            "--protocol", choices=("fixed", "adaptive"), help="fixed: an answer after each round (default: fixed)"
        )
        parser.add_argument("--rounds", type=int, help="rounds, or the limit of an adaptive agent (default: 3, 100)")
        parser.add_argument("--tokenizer", help="tokenizer.json or model folder that documents are cut by")
        parser.add_argument("--judge", help="judge that grades the answers")
        parser.add_argument(
            "--halves", choices=(UP, EVEN), default=UP, help="with --judge: where halves of the completeness go"
        )
        parser.add_argument("--sample", type=int, help="queries of each collection, drawn once (default: 25)")
        parser.add_argument("--seed", type=int, help="seed of that draw (default: 0)")
        parser.add_argument("--budget", type=float, help="maximum cost for each collection in USD")
        parser.add_argument("--max-calls", type=int, help="maximum number of calls for each collection")
        parser.add_argument("--estimate", action="store_true", help="print the expected cost and create nothing")
        parser.add_argument("--yes", action="store_true", help="start paid work without asking for confirmation")
        parser.add_argument("--wait", action="store_true", help="wait for the work and show progress")
        parser.add_argument("--out", type=Path, metavar="FOLDER", help="write sample, traces and judgments there")
        parser.add_argument("--csv", type=Path, metavar="F", help="also write the table as CSV")
        parser.add_argument("--latex", type=Path, metavar="F", help="also write the table as LaTeX")

    def run(self, **options: Any) -> object:
        """Search where retrievers are named, grade where a judge is, then show the table."""
        if bool(options["retrievers"]) != bool(options["agents"]):
            raise BadInput("--retrievers and --agents go together: name both, or neither")
        target = find_target(options["name"])
        members = sampling.members_of(target)
        options["protocol"] = options["protocol"] or ("fixed" if options["retrievers"] else None)
        if options["estimate"]:
            return self.estimate(target, members, options)
        left = []
        if options["retrievers"]:
            left += self.search(target, members, options)
        if options["judge"]:
            left += self.grade(members, options)
        document = self.report(target, members, options)
        if options["wait"] and left:
            raise Incomplete("; ".join(f"{one.collection.name}: {one.error or one.state}" for one in left), document)
        return document

    def estimate(self, target: Suite | Collection, members: list[Collection], options: dict[str, Any]) -> object:
        """Print the estimated cost; return it as a document."""
        if options["retrievers"]:
            line = self.forecast_searches(target, members, options).line()
        elif options["judge"]:
            line = self.forecast_gradings(members, options).line()
        else:
            line = "nothing to do: name --retrievers and --agents, or a --judge"
        self.say(line)
        return {"name": target.name, "estimate": line}

    def forecast_searches(
        self, target: Suite | Collection, members: list[Collection], options: dict[str, Any]
    ) -> Estimate:
        """Return what the searches of all members cost. Raises BadInput for what is wrong with any of them."""
        drawn = sampling.preview_sample(target, per_member=options["sample"], seed=options["seed"])
        asked = [_searched(options) | {"queries": drawn[str(one.pk)]} for one in members]
        return SEARCHES.estimate_all(members, asked)

    def forecast_gradings(self, members: list[Collection], options: dict[str, Any]) -> Estimate:
        """Return what grading the newest answers of all members costs. Raises BadInput."""
        return GRADINGS.estimate_all(members, self.graded(members, options))

    def graded(self, members: list[Collection], options: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the options of a grading of each member's newest answers. Raises BadInput."""
        given = {name: options[name] for name in ("judge", "halves", *LIMITS)}
        return [{**given, "search": jobs.require_search(one, options["protocol"])} for one in members]

    def search(self, target: Suite | Collection, members: list[Collection], options: dict[str, Any]) -> list[AgentJob]:
        """Start or go on with the searches; return those that did not come to their end."""
        # All are checked before the sample is drawn for good and the first one begins.
        self.agree(self.forecast_searches(target, members, options), options)
        sample = sampling.ensure_sample(target, per_member=options["sample"], seed=options["seed"])
        asked = _searched(options) | {"sample": sample}
        return self.see_through([SEARCHES.start_or_join(one, asked, shell_user()) for one in members], options)

    def grade(self, members: list[Collection], options: dict[str, Any]) -> list[AgentJob]:
        """Grade the newest answers of each member; return the gradings that did not come to their end."""
        if not options["retrievers"]:  # else the money was asked about already
            self.agree(self.forecast_gradings(members, options), options)
        asked = self.graded(members, options)
        started = [GRADINGS.start_or_join(one, given, shell_user()) for one, given in zip(members, asked, strict=True)]
        return self.see_through(started, options)

    def see_through(self, started: list[AgentJob], options: dict[str, Any]) -> list[AgentJob]:
        """Wait for the jobs where that was asked for; return those that are not ready."""
        for job in started:
            if job.state == JobState.READY:
                self.note(f"{job.collection.name}: {job.get_kind_display()} is there already")
            elif options["wait"]:
                self.wait_for(job, f"{job.collection.name}, {job.get_kind_display()}")
            elif not workers.live_workers():
                self.note("no worker serves this instance: start `serve`, or wait here with --wait")
        return [job for job in started if job.state != JobState.READY]

    def report(self, target: Suite | Collection, members: list[Collection], options: dict[str, Any]) -> object:
        """Print the table of a collection, or of a suite with its unweighted mean."""
        searches = [jobs.require_search(one, options["protocol"]) for one in members]
        boards = [build_board(one) for one in searches]
        if options["out"]:
            for job in searches:
                folder = options["out"] / job.collection.name if isinstance(target, Suite) else options["out"]
                self.note(", ".join(map(str, exchange.write_files(job, folder))))
        table = suite_board(target, boards).table if isinstance(target, Suite) else boards[0].table
        for path, text in ((options["csv"], table.csv()), (options["latex"], table.latex())):
            if path:
                path.write_text(text, encoding="utf-8")
        for one in boards:
            self.show(one)
        documents = [one.document for one in boards]
        if isinstance(target, Suite):
            return {"suite": target.name, "members": documents, "mean": suite_board(target, boards).document}
        return documents[0]

    def show(self, board: AgentBoard) -> None:
        """Print one collection's table for people."""
        options = board.job.options
        told = (f"{options['protocol']} rounds", board.job.state, f"tokens: {options['tokenizer']}")
        self.say(f"{board.job.collection.name}: {', '.join(told)}")
        for line in board.lines:
            for who, values in [("mean", line["mean"]), *((cell.agent, cell.values) for cell in line["cells"])]:
                cells = [f"{label} {_format(values[key])}" for key, label in board.columns]
                self.say(f"  {line['retriever']:<20} {who:<20} {'  '.join(cells)}")


def _searched(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("retrievers", "agents", "protocol", "rounds", "tokenizer", *LIMITS)}


def _format(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
