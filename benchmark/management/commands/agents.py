"""`agents SUITE|COLLECTION`: have agents search, grade their answers, and show the table."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _

from actions.options import SENTENCES, add_arguments, read_arguments
from benchmark.agents import exchange, jobs, sampling
from benchmark.agents.board import AgentBoard, build_board
from benchmark.agents.grading import GRADINGS
from benchmark.agents.options import HALVES, PROTOCOLS, GradeOptions, SearchOptions
from benchmark.agents.searching import SEARCHES
from benchmark.agents.suites import suite_board
from benchmark.models import AgentJob, Suite
from corpus.errors import BadInput, BadOption, Incomplete
from corpus.models import Collection
from jobs import workers
from jobs.models import JobState
from judges.campaigns.estimates import Estimate
from judges.management.job_command import JobCommand


class Command(JobCommand):
    name = "agents"
    help = "Let agents search with retrievers, grade their answers, and show the table. The same command continues."

    def arguments(self, parser: CommandParser) -> None:
        """Add the options of searches, gradings, samples and files."""
        parser.add_argument("name", help="name of a suite or a collection")
        add_arguments(parser, SearchOptions)
        add_arguments(parser, GradeOptions)
        self.add_agreement(parser)
        self.add_wait(parser)
        parser.add_argument("--sample", type=int, help="queries of each collection, drawn once (default: 25)")
        parser.add_argument("--seed", type=int, help="seed of that draw (default: 0)")
        parser.add_argument("--out", type=Path, metavar="FOLDER", help="write sample, traces and judgments there")
        parser.add_argument("--csv", type=Path, metavar="F", help="also write the table as CSV")
        parser.add_argument("--latex", type=Path, metavar="F", help="also write the table as LaTeX")

    def run(self, **options: Any) -> object:
        """Search if retrievers are named, grade if a judge is named, then show the table."""
        if bool(options["retrievers"]) != bool(options["agents"]):
            raise BadInput("--retrievers and --agents go together: name both, or neither")
        # To show the table, neither record is read.
        for name, allowed in (("protocol", PROTOCOLS), ("halves", HALVES)):
            if options[name] not in (None, *allowed):
                raise BadOption(name, SENTENCES["literal_error"] % {"value": options[name]})
        name = options["name"]
        target: Suite | Collection | None = Suite.objects.filter(name=name).first()
        target = target or Collection.objects.filter(name=name).first()
        if target is None:
            raise BadInput(_("There is no suite and no collection %(name)s") % {"name": repr(name)})
        members = sampling.members_of(target)
        if options["retrievers"]:
            search = read_arguments(SearchOptions, options)
            options["protocol"] = search.protocol
            sample_queries = sampling.preview_sample(target, per_member=options["sample"], seed=options["seed"])
            search_jobs = [search.for_job() | {"queries": sample_queries[str(member.pk)]} for member in members]
            estimate: Estimate | None = SEARCHES.estimate_all(members, search_jobs)
        elif options["judge"]:
            estimate = GRADINGS.estimate_all(members, [self.grading(options).for_job()] * len(members))
        else:
            estimate = None
        if options["estimate"]:
            line = estimate.line() if estimate else "nothing to do: name --retrievers and --agents, or a --judge"
            self.say(line)
            return {"name": target.name, "estimate": line}
        # All jobs are checked before the sample is stored and the first one starts.
        self.agree(estimate, options)
        unfinished = []
        if options["retrievers"]:
            sample = sampling.ensure_sample(target, per_member=options["sample"], seed=options["seed"])
            unfinished += self.see_through(
                [SEARCHES.start(self.actor, collection, search, sample=sample) for collection in members], options
            )
        if options["judge"]:
            gradings = [GRADINGS.start(self.actor, collection, self.grading(options)) for collection in members]
            unfinished += self.see_through(gradings, options)
        document = self.report(target, members, options)
        if options["wait"] and unfinished:
            raise Incomplete(
                "; ".join(f"{job.collection.name}: {job.error or job.state}" for job in unfinished), document
            )
        return document

    def grading(self, options: dict[str, Any]) -> GradeOptions:
        """Return the options of the gradings. Raises BadOption."""
        search_options = {name: options[name] for name in GradeOptions.leaves_out["command"]}
        return read_arguments(GradeOptions, options, **search_options)

    def see_through(self, agent_jobs: list[AgentJob], options: dict[str, Any]) -> list[AgentJob]:
        """Wait for the jobs if asked to; return those that are not ready."""
        for job in agent_jobs:
            if job.state == JobState.READY:
                self.note(f"{job.collection.name}: {job.get_kind_display()} is there already")
            elif options["wait"]:
                self.wait_for(job, f"{job.collection.name}, {job.get_kind_display()}")
            elif not workers.live_workers():
                self.note("no worker serves this instance: start `serve`, or wait here with --wait")
        return [job for job in agent_jobs if job.state != JobState.READY]

    def report(self, target: Suite | Collection, members: list[Collection], options: dict[str, Any]) -> object:
        """Print the table of a collection, or of a suite with its unweighted mean."""
        searches = [jobs.require_search(collection, options["protocol"]) for collection in members]
        boards = [build_board(job) for job in searches]
        if options["out"]:
            for job in searches:
                folder = options["out"] / job.collection.name if isinstance(target, Suite) else options["out"]
                self.note(", ".join(map(str, exchange.write_files(job, folder))))
        table = suite_board(target, boards).table if isinstance(target, Suite) else boards[0].table
        for path, text in ((options["csv"], table.csv()), (options["latex"], table.latex())):
            if path:
                path.write_text(text, encoding="utf-8")
        for board in boards:
            self.show(board)
        documents = [board.document for board in boards]
        if isinstance(target, Suite):
            return {"suite": target.name, "members": documents, "mean": suite_board(target, boards).document}
        return documents[0]

    def show(self, board: AgentBoard) -> None:
        """Print the table of one collection."""
        options = board.job.options
        details = (f"{options['protocol']} rounds", board.job.state, f"tokens: {options['tokenizer']}")
        self.say(f"{board.job.collection.name}: {', '.join(details)}")
        for line in board.lines:
            for agent, values in [("mean", line["mean"]), *((cell.agent, cell.values) for cell in line["cells"])]:
                cells = [
                    f"{label} {'-' if values[key] is None else f'{values[key]:.4f}'}" for key, label in board.columns
                ]
                self.say(f"  {line['retriever']:<20} {agent:<20} {'  '.join(cells)}")
