"""`holes NAME --runs F... --depth 10`: is the runs' order safe? Fill the pool's holes."""

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
    """Show the holes of a pool, or with --fill have them judged; given again it goes on."""

    name = "holes"
    act = ""
    help = "Pool runs, show how their unjudged pairs could change the measures, and have these holes judged."

    def arguments(self, parser: CommandParser) -> None:
        """Add the options of a filling, and those of looking, waiting and writing."""
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

    def run(self, **given: Any) -> object:
        """Inspect the pool; fill it where that was asked for."""
        collection = collection_named(given["name"])
        options = read_arguments(FillingOptions, given, **({"policy": "people"} if given["people"] else {}))
        check_options(collection, options, given)
        # Numbers of versions are looked up before files are imported: a mistyped one imports nothing.
        before = planning.version_before(collection, options, shell_user()) if options.qrels else None
        runs = self.runs_of(collection, options.runs)
        options = options.model_copy(update={"runs": [run.name for run in runs]})
        before = before or planning.version_before(collection, options, shell_user())
        document = inspect_pool(collection, runs, options.depth, before, options.first or 0)
        begun = self.begin(collection, runs, before, document, options, given) if given["fill"] else None
        for line in format_lines(document):
            self.say(line)
        return document if begun is None else self.follow_filling(begun, runs, document, given)

    def follow_filling(
        self, begun: Filling, runs: Sequence[Run], document: dict[str, Any], options: dict[str, Any]
    ) -> object:
        """Wait for the judges where that was asked for, and say what came of it."""
        campaign = Campaign.objects.filter(pk=begun.campaign).first() if begun.campaign else None
        if options["wait"] and campaign is not None and campaign.state == Campaign.State.RUNNING:
            with self.interruptible(begun.collection, campaign):
                self.wait(begun.collection, campaign, options["workers"])
        # Filling goes on by steps that a worker usually takes; the command takes the next one itself.
        begun = stages.advance_filling(begun)
        if options["with_what_there_is"]:
            stages.finish_filling(begun, shell_user())
        begun.refresh_from_db()
        document["filling"] = filling_document(begun, runs)
        for line in funnel_lines(begun):
            self.say(line)
        if (path := options["out"]) is not None:
            if begun.after is None:
                raise BadInput(f"{path} was not written: there is no filled version yet, see --with-what-there-is")
            # Opened to create: a file that appeared meanwhile is not overwritten.
            with path.open("x", encoding="utf-8") as file:
                file.writelines(reading.write_trec(begun.after))
        return self.ended(begun, document, waited=options["wait"])

    def begin(
        self,
        collection: Collection,
        runs: Sequence[Run],
        before: Qrels,
        document: dict[str, Any],
        options: FillingOptions,
        given: dict[str, Any],
    ) -> Filling | None:
        """Print the expected cost, and start or resume a filling; None for nothing to fill."""
        if not document["candidates"] or (options.first and not document["unsettled"]):
            self.note("nothing to fill: no pair of the pool that nobody judged could change what is asked")
            return None
        self.confirm_cost(collection, planning.estimate_cost(collection, runs, before, options), given)
        begun = services.start_filling(self.actor, collection, options)
        # A large one waits for a worker; the command takes this step itself.
        if begun.state == Filling.State.PREPARING:
            services.prepare_filling(begun.pk)
            begun.refresh_from_db()
        return begun

    def ended(self, begun: Filling, document: dict[str, Any], *, waited: bool) -> object:
        """Return a filling's document; raise Incomplete (exit 3) when judges left pairs undone."""
        funnel = Funnel.of(begun)
        if begun.after is None and waited and (funnel.failed or funnel.pending):
            raise Incomplete(
                f"{funnel.pending:,} pairs are pending and {funnel.failed:,} failed: the same command goes on, "
                "--retry-failed has failed ones judged again, --with-what-there-is fills without them",
                document,
            )
        if begun.after is None and funnel.people_open:
            self.note(f"{funnel.people_open:,} pairs wait for people; the filled version is made when they are done")
        return document

    def runs_of(self, collection: Collection, given: Sequence[str]) -> list[Run]:
        """Return runs by name; files (F or NAME=F) are imported unless their run holds the same. Raises BadInput."""
        # A run's name goes before a file of that name: the file may be the one that it was imported from.
        known = [builders.find_run(collection, text) for text in given]
        files = [text for text, run in zip(given, known, strict=True) if run is None]
        paths = paths_by_name(files)
        for text, path in zip(files, paths.values(), strict=True):
            if not path.is_file():
                runs = Run.objects.filter(collection=collection, is_deleted=False).values_list("name", flat=True)
                told = ", ".join(runs) or "none yet"
                raise BadInput(f"{text}: neither a file nor a run of {collection.name}; its runs are: {told}")
        # A run that holds the same as the file is taken as it is, so that the same command can be given again.
        standing: dict[str, Run] = {}
        for name, path in paths.items():
            run = builders.find_run(collection, name)
            if run is not None and rankings.as_run(run) == read_run(path):
                standing[name] = run
        if new := {name: path for name, path in paths.items() if name not in standing}:
            imported = import_runs(self.actor, collection, RunImportOptions(), files=new)
            standing |= {run.name: run for run, _counts in imported}
        of_files = iter([standing[name] for name in paths])
        found = list(dict.fromkeys(run or next(of_files) for run in known))
        for run in found:
            if run.state != JobState.READY:
                raise BadInput(f"Run {run.name} is {run.get_state_display()}: wait until it is ready")
        return found


def check_options(collection: Collection, options: FillingOptions, given: dict[str, Any]) -> None:
    """Check the options before anything is stored. Raises BadInput."""
    only_filling = ("people", "wait", "with_what_there_is", "out", "retry_failed", "failed_to_people")
    if not given["fill"] and (needless := [name for name in only_filling if given[name]]):
        raise BadOption(needless[0], "this needs --fill")
    if given["out"] is not None and given["out"].exists():
        raise BadOption("out", f"{given['out']} exists already: name a new file")
    check_workers_option(given["workers"])
    if given["fill"]:
        wanted = planning.judging_configuration(options)
        if wanted is not None:
            # The budget is known to be too small before a run is imported.
            lifecycle.check_budget(collection, wanted, options.budget, options.max_calls, None)


def inspect_pool(collection: Collection, runs: Sequence[Run], depth: int, before: Qrels, first: int) -> dict[str, Any]:
    """Counts of the pool, bounds of each run, orders that are not settled, the first pairs: the JSON document."""
    told = planning.preview_filling(collection, runs, depth, before)
    loaded = rankings.load([run.pk for run in runs], depth)
    found = order.compute_bounds(loaded, reading.load(before), collection.grades, depth)
    called = {run.pk: run.name for run in runs}
    values = [{"name": called[one["run"]], **one} for one in found["systems"]]
    return {
        "collection": collection.name,
        # The runs of a pool keep their ids inside; a JSON document speaks of names.
        "qrels": before.number,
        "depth": depth,
        **told,
        "runs": [{key: value for key, value in one.items() if key != "run"} for one in values],
        "unsettled": [[called[one], called[other]] for one, other in found["unsettled"]],
        **({"first": by_name(found["first"][:first])} if first else {}),
        "filling": None,
    }


def by_name(pairs: Sequence[order.Influence]) -> list[dict[str, Any]]:
    """Return pairs by the ids of files, with what each could move."""
    queries = dict(Query.objects.filter(pk__in={one[0] for one in pairs}).values_list("pk", "external_id"))
    documents = rankings.names_of(one[1] for one in pairs)
    return [
        {"query": queries[query], "document": documents[document], "influence": value}
        for query, document, value in pairs
    ]


def format_lines(document: dict[str, Any]) -> Iterator[str]:
    """Lines for people of what `inspect_pool` found."""
    runs, depth, known = document["runs"], document["depth"], document["known"]
    yield (
        f"{document['collection']}: pool of {len(runs)} runs to depth {depth}: {document['pool']:,} pairs of "
        f"{document['queries']:,} queries, {document['judged']:,} judged in version {document['qrels']} of the qrels, "
        f"{document['candidates']:,} not" + (f" ({known:,} of them labelled by people)" if known else "")
    )
    yield f"  {'run':<24} judged@{depth:<5} nDCG@{depth:<5} lowest  highest"
    for one in runs:
        yield f"  {one['name']:<24} {one['judged']:<12.4f} {one['value']:<10.4f} {one['low']:.4f}  {one['high']:.4f}"
    pairs = len(runs) * (len(runs) - 1) // 2
    yield f"  {len(document['unsettled']):,} of {pairs:,} orders of two runs could still turn"
    for one in document.get("first", []):
        yield f"    {one['query']:<12} {one['document']:<24} {one['influence']:.6f}"


def funnel_lines(begun: Filling) -> Iterator[str]:
    """Lines for people of a filling's funnel."""
    funnel = Funnel.of(begun)
    yield f"filling {begun.number}: {begun.get_state_display()}"
    yield f"  asked      {funnel.asked:>9,}   of {funnel.candidates:,} candidates, {funnel.known:,} known before"
    if funnel.filtered:
        yield f"  filtered   {funnel.filtered:>9,}   {funnel.after_filter:,} left"
    for one in funnel.rounds:
        yield f"  round {one['round']}    {one['agreed']:>9,}   agreed, {one['open']:,} open"
    yield f"  by judges  {funnel.labelled:>9,}   labelled; {funnel.pending:,} pending, {funnel.failed:,} failed"
    yield f"  to people  {funnel.to_people:>9,}   {funnel.people_settled:,} settled, {funnel.people_open:,} open"
    yield f"  settled    {funnel.settled:>9,}   {funnel.relevant:,} of them relevant"
    if begun.after is not None:
        yield f"version {begun.after.number} of the qrels: {begun.after.counts['judged']:,} judgments"


def filling_document(begun: Filling, runs: Sequence[Run]) -> dict[str, Any]:
    """A filling as --json has it."""
    return {
        "id": begun.number,
        "state": begun.state,
        "campaign": number_of(begun.campaign),
        "runs": [run.name for run in runs],
        "before": begun.before.number,
        "after": begun.after.number if begun.after is not None else None,
        **Funnel.of(begun).document,
    }
