"""`holes NAME --runs F... --depth 10`: show how unjudged pairs could change the order of runs, and have them judged."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from actions.options import add_arguments, read_arguments
from benchmark.bounds import order
from benchmark.hole_filling import planning, services, stages
from benchmark.hole_filling.funnel import Funnel
from benchmark.hole_filling.options import FillingOptions
from benchmark.models import Filling, Qrels, Run
from benchmark.qrels import reading
from benchmark.runs import builders, rankings
from benchmark.runs.files import read_run
from benchmark.runs.importing import paths_by_name
from benchmark.runs.options import RunImportOptions
from benchmark.runs.services import import_runs
from corpus.collections.audit_log import shell_user
from corpus.commands import collection_named
from corpus.errors import BadInput, BadOption, Incomplete
from corpus.models import Collection, Query
from jobs.models import JobState
from judges.campaigns import lifecycle
from judges.campaigns.selectors import number_of
from judges.management.judging_command import JudgingCommand, add_wait_options, check_workers_option
from judges.models import Campaign


class Command(JudgingCommand):
    """Show the holes of a pool, or have them judged with --fill; the same command resumes."""

    name = "holes"
    act = ""
    help = "Pool runs, show how their unjudged pairs could change the measures, and have these holes judged."

    def arguments(self, parser: CommandParser) -> None:
        """Add the options of a filling, of waiting, and of the output file."""
        parser.add_argument("name", help="name of the collection")
        add_arguments(parser, FillingOptions)
        parser.add_argument("--fill", action="store_true", help="have the unjudged pairs judged")
        parser.add_argument("--people", action="store_true", help="have people judge every pair: --policy people")
        add_wait_options(parser)
        parser.add_argument(
            "--with-what-there-is",
            action="store_true",
            help="create the filled qrels version now, from the judgments so far",
        )
        parser.add_argument("--out", type=Path, metavar="F", help="output file for the filled version (TREC qrels)")

    def run(self, **arguments: Any) -> object:
        """Inspect the pool, and with --fill have it judged.

        1. Check the options, before anything is stored.
        2. Find the runs, importing files that are new.
        3. Print the counts and bounds of the pool.
        4. With --fill, start or resume the filling, wait for it, and print its funnel.
        """
        collection = collection_named(arguments["name"])
        options = read_arguments(FillingOptions, arguments, **({"policy": "people"} if arguments["people"] else {}))
        # The options are checked before anything is stored.
        only_filling = ("people", "wait", "with_what_there_is", "out", "retry_failed", "failed_to_people")
        if not arguments["fill"] and (unused := [name for name in only_filling if arguments[name]]):
            raise BadOption(unused[0], "this needs --fill")
        if arguments["out"] is not None and arguments["out"].exists():
            raise BadOption("out", f"{arguments['out']} exists already: name a new file")
        check_workers_option(arguments["workers"])
        if arguments["fill"]:
            configuration = planning.judging_configuration(options)
            if configuration is not None:
                # A budget that is too small is reported before a run is imported.
                lifecycle.check_budget(collection, configuration, options.budget, options.max_calls, None)
        # Looked up before files are imported: a mistyped number of a version imports nothing.
        before = planning.version_before(collection, options, shell_user()) if options.qrels else None
        runs = self.runs_of(collection, options.runs)
        options = options.model_copy(update={"runs": [run.name for run in runs]})
        before = before or planning.version_before(collection, options, shell_user())
        # Counts of the pool, the bounds of each run, unsettled orders, and the first pairs.
        depth, first = options.depth, options.first or 0
        counts = planning.preview_filling(collection, runs, depth, before)
        loaded = rankings.load([run.pk for run in runs], depth)
        bounds = order.compute_bounds(loaded, reading.load(before), collection.grades, depth)
        names = {run.pk: run.name for run in runs}
        systems = [{"name": names[system["run"]], **system} for system in bounds["systems"]]
        document = {
            "collection": collection.name,
            "qrels": before.number,
            "depth": depth,
            **counts,
            # By name: primary keys of runs mean nothing to a reader.
            "runs": [{key: value for key, value in system.items() if key != "run"} for system in systems],
            "unsettled": [[names[run], names[other_run]] for run, other_run in bounds["unsettled"]],
            **({"first": by_name(bounds["first"][:first])} if first else {}),
            "filling": None,
        }
        filling = self.begin(collection, runs, before, document, options, arguments) if arguments["fill"] else None
        for line in format_lines(document):
            self.say(line)
        return document if filling is None else self.follow_filling(filling, runs, document, arguments)

    def follow_filling(
        self, filling: Filling, runs: Sequence[Run], document: dict[str, Any], options: dict[str, Any]
    ) -> object:
        """Wait for the judges if asked to, print the funnel, and write the filled version."""
        campaign = Campaign.objects.filter(pk=filling.campaign).first() if filling.campaign else None
        if options["wait"] and campaign is not None and campaign.state == Campaign.State.RUNNING:
            with self.interruptible(filling.collection, campaign):
                self.wait(filling.collection, campaign, options["workers"])
        # The command takes the next step, which is otherwise a worker's.
        filling = stages.advance_filling(filling)
        if options["with_what_there_is"]:
            stages.finish_filling(filling, shell_user())
        filling.refresh_from_db()
        document["filling"] = {
            "id": filling.number,
            "state": filling.state,
            "campaign": number_of(filling.campaign),
            "runs": [run.name for run in runs],
            "before": filling.before.number,
            "after": filling.after.number if filling.after is not None else None,
            **Funnel.of(filling).document,
        }
        for line in funnel_lines(filling):
            self.say(line)
        if (path := options["out"]) is not None:
            if filling.after is None:
                raise BadInput(f"{path} was not written: there is no filled version yet, see --with-what-there-is")
            # Mode "x": a file that appeared meanwhile is not overwritten.
            with path.open("x", encoding="utf-8") as file:
                file.writelines(reading.write_trec(filling.after))
        funnel = Funnel.of(filling)
        if filling.after is None and options["wait"] and (funnel.failed or funnel.pending):
            raise Incomplete(
                f"{funnel.pending:,} pairs are pending and {funnel.failed:,} failed: run the same command to continue, "
                "--retry-failed has failed ones judged again, --with-what-there-is fills without them",
                document,
            )
        if filling.after is None and funnel.people_open:
            self.note(f"{funnel.people_open:,} pairs wait for people; the filled version is made when they are done")
        return document

    def begin(
        self,
        collection: Collection,
        runs: Sequence[Run],
        before: Qrels,
        document: dict[str, Any],
        options: FillingOptions,
        arguments: dict[str, Any],
    ) -> Filling | None:
        """Print the expected cost, and start or resume the filling; None if there is nothing to fill."""
        if not document["candidates"] or (options.first and not document["unsettled"]):
            self.note("nothing to fill: no pair of the pool that nobody judged could change what is asked")
            return None
        self.confirm_cost(collection, planning.estimate_cost(collection, runs, before, options), arguments)
        filling = services.start_filling(self.actor, collection, options)
        # A large filling waits for a worker; the command takes this step itself.
        if filling.state == Filling.State.PREPARING:
            services.prepare_filling(filling.pk)
            filling.refresh_from_db()
        return filling

    def runs_of(self, collection: Collection, names: Sequence[str]) -> list[Run]:
        """Return the runs by name; a file (F or NAME=F) is imported unless its run is equal. Raises BadInput."""
        # A run takes precedence over a file of the same name, which may be the one that it was imported from.
        named_runs = [builders.find_run(collection, text) for text in names]
        files = [text for text, run in zip(names, named_runs, strict=True) if run is None]
        paths = paths_by_name(files)
        for text, path in zip(files, paths.values(), strict=True):
            if not path.is_file():
                runs = Run.objects.filter(collection=collection, is_deleted=False).values_list("name", flat=True)
                run_names = ", ".join(runs) or "none yet"
                raise BadInput(f"{text}: neither a file nor a run of {collection.name}; its runs are: {run_names}")
        # A run that equals its file is reused, so that the command can be repeated.
        file_runs: dict[str, Run] = {}
        for name, path in paths.items():
            run = builders.find_run(collection, name)
            if run is not None and rankings.as_run(run) == read_run(path):
                file_runs[name] = run
        if new_files := {name: path for name, path in paths.items() if name not in file_runs}:
            imported = import_runs(self.actor, collection, RunImportOptions(), files=new_files)
            file_runs |= {run.name: run for run, _counts in imported}
        in_order = iter([file_runs[name] for name in paths])
        pool_runs = list(dict.fromkeys(run or next(in_order) for run in named_runs))
        for run in pool_runs:
            if run.state != JobState.READY:
                raise BadInput(f"Run {run.name} is {run.get_state_display()}: wait until it is ready")
        return pool_runs


def by_name(pairs: Sequence[order.Influence]) -> list[dict[str, Any]]:
    """Return the pairs by their external ids, with the influence of each."""
    queries = dict(Query.objects.filter(pk__in={pair[0] for pair in pairs}).values_list("pk", "external_id"))
    documents = rankings.names_of(pair[1] for pair in pairs)
    return [
        {"query": queries[query], "document": documents[document], "influence": value}
        for query, document, value in pairs
    ]


def format_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yield the document of a pool as lines of text."""
    runs, depth, labelled = document["runs"], document["depth"], document["known"]
    yield (
        f"{document['collection']}: pool of {len(runs)} runs to depth {depth}: {document['pool']:,} pairs of "
        f"{document['queries']:,} queries, {document['judged']:,} judged in version {document['qrels']} of the qrels, "
        f"{document['candidates']:,} not" + (f" ({labelled:,} of them labelled by people)" if labelled else "")
    )
    yield f"  {'run':<24} judged@{depth:<5} nDCG@{depth:<5} lowest  highest"
    for run in runs:
        yield f"  {run['name']:<24} {run['judged']:<12.4f} {run['value']:<10.4f} {run['low']:.4f}  {run['high']:.4f}"
    pairs = len(runs) * (len(runs) - 1) // 2
    yield f"  {len(document['unsettled']):,} of {pairs:,} orders of two runs could still turn"
    for run in document.get("first", []):
        yield f"    {run['query']:<12} {run['document']:<24} {run['influence']:.6f}"


def funnel_lines(filling: Filling) -> Iterator[str]:
    """Yield the funnel of a filling as lines of text."""
    funnel = Funnel.of(filling)
    yield f"filling {filling.number}: {filling.get_state_display()}"
    yield f"  asked      {funnel.asked:>9,}   of {funnel.candidates:,} candidates, {funnel.known:,} known before"
    if funnel.filtered:
        yield f"  filtered   {funnel.filtered:>9,}   {funnel.after_filter:,} left"
    for round_counts in funnel.rounds:
        yield f"  round {round_counts['round']}    {round_counts['agreed']:>9,}   agreed, {round_counts['open']:,} open"
    yield f"  by judges  {funnel.labelled:>9,}   labelled; {funnel.pending:,} pending, {funnel.failed:,} failed"
    yield f"  to people  {funnel.to_people:>9,}   {funnel.people_settled:,} settled, {funnel.people_open:,} open"
    yield f"  settled    {funnel.settled:>9,}   {funnel.relevant:,} of them relevant"
    if filling.after is not None:
        yield f"version {filling.after.number} of the qrels: {filling.after.counts['judged']:,} judgments"
