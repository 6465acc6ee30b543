"""`gate NAME --run NEW --against OLD`: pass, fail or cannot tell, by intervals and bounds, for a pipeline."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from actions.options import add_arguments, read_arguments
from benchmark.gate import services
from benchmark.gate.options import GateOptions
from benchmark.gate.selectors import gate_document
from benchmark.gate.summary import as_junit, as_markdown, describe_basis, measures_in_order
from benchmark.gate.verdict import CANNOT_TELL, FAIL
from benchmark.models import Gate
from corpus.commands import collection_named
from corpus.errors import BadOption, Incomplete
from judges.management.judging_command import JudgingCommand, check_workers_option
from judges.models import Campaign


class GateFailed(Incomplete):
    """The new run failed: exit code 4, with the document."""

    exit_code = 4


class Command(JudgingCommand):
    """Tell a verdict and keep it; with --judge have the pairs that decide judged, and tell it again."""

    name = "gate"
    help = "Tell whether a run may replace another: exit code 0 passes, 4 fails, 3 cannot tell."

    def arguments(self, parser: CommandParser) -> None:
        """Add the options of a gate, of judging, and the files of the summary."""
        parser.add_argument("name", help="name of the collection")
        add_arguments(parser, GateOptions)
        parser.add_argument(
            "--workers", type=int, help="with --judge: number of worker processes (default: one per CPU)"
        )
        parser.add_argument("--yes", action="store_true", help="start paid work without asking for confirmation")
        parser.add_argument("--markdown", type=Path, metavar="F", help="file to write the summary to, as Markdown")
        parser.add_argument("--junit", type=Path, metavar="F", help="file to write the verdicts to, as JUnit XML")

    def run(self, **arguments: Any) -> object:
        """Tell the verdict, write its files, and end with its exit code."""
        collection = collection_named(arguments["name"])
        options = read_arguments(GateOptions, arguments)
        check_workers_option(arguments["workers"])
        files = {flag: path for flag in ("markdown", "junit") if (path := arguments[flag]) is not None}
        for flag, path in files.items():
            if path.is_dir() or not path.parent.is_dir():
                raise BadOption(flag, f"{path} cannot be written: name a file in a folder that exists")
        without_judging = options.model_copy(update={"judge": False, "budget": None})
        gate = services.decide_gate(self.actor, collection, without_judging)
        if options.judge and gate.result["deciding_pairs"]:
            gate = self.judge(gate, options, arguments)
        for flag, path in files.items():
            write = as_markdown if flag == "markdown" else as_junit
            path.write_text(write(gate.result), encoding="utf-8")
        for line in format_lines(gate):
            self.say(line)
        document = gate_document(gate)
        if gate.verdict == FAIL:
            raise GateFailed(f"failed: {gate.result['reason']}", document)
        if gate.verdict == CANNOT_TELL:
            raise Incomplete(f"cannot tell: {gate.result['reason']}", document)
        return document

    def judge(self, gate: Gate, options: GateOptions, arguments: dict[str, Any]) -> Gate:
        """Have the pairs that decide judged, wait for the judges, and tell the verdict again."""
        self.note(gate.result["reason"])
        filling_options = services.filling_options_of(gate, budget=options.budget)
        estimate = services.estimate_deciding(gate, filling_options)
        self.confirm_cost(gate.collection, estimate, {**arguments, "max_calls": None})
        filling = services.judge_deciding(self.actor, gate, filling_options).filling
        campaign = Campaign.objects.filter(pk=filling.campaign).first() if filling and filling.campaign else None
        if campaign is not None and campaign.state == Campaign.State.RUNNING:
            with self.interruptible(gate.collection, campaign):
                self.wait(gate.collection, campaign, arguments["workers"])
        return services.decide_again(self.actor, gate)


def format_lines(gate: Gate) -> Iterator[str]:
    """Yield a verdict as lines of text."""
    result = gate.result
    yield f"gate {gate.number}: {result['run']} against {result['against']}: {gate.get_verdict_display().upper()}"
    yield f"  {describe_basis(result)}"
    yield f"  {'measure':<16} {'old':>7} {'new':>7} {'change':>8}  {'interval':<19} {'at worst':>8} {'at best':>8}"
    for name, outcome in measures_in_order(result).items():
        span = f"{outcome['low']:+.4f} to {outcome['high']:+.4f}"
        yield (
            f"  {name:<16} {outcome['old']:7.4f} {outcome['new']:7.4f} {outcome['change']:+8.4f}  {span:<19} "
            f"{outcome['lowest']:+8.4f} {outcome['highest']:+8.4f}  {outcome['verdict'].replace('_', ' ')}"
        )
    yield f"  {result['reason']}"
