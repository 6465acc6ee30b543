"""`check_judges [--panel P] [--judge NAME ...]`: check judges by at most two calls each; exit 3 if one cannot work."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand
from corpus.errors import BadInput, Incomplete
from judges.campaigns.configurations import find_panel
from judges.costs.judge_records import records_of
from judges.costs.prices import Price
from judges.management.commands.presets import align_columns
from judges.models import JudgeVersion, Panel
from judges.probes import stored
from judges.probes.checks import CheckedJudge, add_costs, plan_check, probe_role, run_checks
from judges.records import Judge

HEADINGS = ("judge", "works", "model", "schema mode", "logprobs", "temp.", "thinks", "context", "USD/M in, out")


class Command(QuorumCommand):
    """The command that checks judges: it prints calls and cost, asks on a terminal, and prints the results.

    The exit code for a judge that cannot work is 3 and not 2, because the input was right and the results are printed.
    """

    help = (
        "Probe the judges of a panel: key, model, schema mode, log-probabilities, temperature, thinking, context, "
        "price. At most two calls a judge, which are paid for."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--panel", help="name of the panel (default: the default panel)")
        parser.add_argument("--judge", nargs="+", metavar="NAME", help="check only these judges, on a panel or not")
        parser.add_argument("--yes", action="store_true", help="make paid calls without asking for confirmation")

    def run(self, **options: Any) -> object:
        panel = None if options["judge"] and not options["panel"] else find_panel(options["panel"])
        judges = select_judges(panel, options["judge"])
        planned = [(judge, *plan_check(judge, role)) for judge, role in judges]
        self.announce(planned, ask=not options["yes"])
        results = asyncio.run(run_checks(judges))
        stored.store_results(results)
        for line in results_table(results):
            self.say(line)
        document = {
            "panel": panel.name if panel else None,
            "judges": [result_document(result) for result in results],
            "most_calls": sum(calls for _judge, calls, _cost in planned),
            "most_cost": add_costs(cost for _judge, _calls, cost in planned),
        }
        failed = [result.judge.name for result in results if result.problem]
        if failed:
            raise Incomplete(f"{len(failed)} of {len(results)} judges cannot work: {', '.join(failed)}", document)
        return document

    def announce(self, planned: Sequence[tuple[Judge, int, float | None]], *, ask: bool) -> None:
        """Print the calls and their cost; with `ask`, wait for a yes on a terminal. Raises BadInput without one.

        `planned`: each judge with the most calls and USD (None: unknown).
        """
        paid_checks = [(judge, calls, cost) for judge, calls, cost in planned if cost != 0]
        if not paid_checks:
            return
        for judge, calls, cost in paid_checks:
            self.stderr.write(f"{judge.name}: {_format_call_count(calls)} to {judge.model}, {_format_bound(cost)}")
        total_calls = _format_call_count(sum(calls for _judge, calls, _cost in paid_checks))
        total_cost = add_costs(cost for _judge, _calls, cost in paid_checks)
        self.stderr.write(f"together at most {total_calls}, {_format_bound(total_cost)}")
        if not ask or self.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return
        self.stderr.write("Send them? [y/N] ", ending="")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise BadInput("Nothing was sent: answer yes, or give --yes")


def select_judges(panel: Panel | None, names: Sequence[str] | None) -> list[tuple[Judge, str]]:
    """Return the judges to check, each with a role: the panel's, those of them that are named, or any named ones.

    Raises BadInput for an unknown name.
    """
    if panel is not None:
        # A debater's role is its side, also if it votes as well.
        roles = dict.fromkeys(filter(None, [*panel.ensemble, panel.adjudicator]), "vote")
        roles |= dict(zip(panel.debate, ("for", "against"), strict=False))
        rows = {row.name: row for row in JudgeVersion.objects.filter(name__in=roles, is_current=True)}
        if missing := roles.keys() - rows.keys():
            raise BadInput(f"Panel {panel.name} names judges that are gone: {', '.join(sorted(missing))}")
        if missing := set(names or ()) - roles.keys():
            raise BadInput(f"Panel {panel.name} has no judge {', '.join(sorted(missing))}")
        order = [name for name in dict.fromkeys([*panel.debate, *roles]) if not names or name in names]
        return [(judge, roles[judge.name]) for judge in records_of(rows[name] for name in order)]
    rows = {row.name: row for row in JudgeVersion.objects.filter(name__in=names or (), is_current=True)}
    if missing := set(names or ()) - rows.keys():
        raise BadInput(f"No judge {', '.join(sorted(missing))}: load it with configure_judges F")
    judges = records_of(rows[name] for name in dict.fromkeys(names or ()))
    return [(judge, probe_role(judge)) for judge in judges]


def results_table(results: Sequence[CheckedJudge]) -> list[str]:
    """Return the table of results with a row for each judge, then the problems and warnings."""
    lines = align_columns([HEADINGS, *(table_row(result) for result in results)])
    problems = [f"{result.judge.name} FAILS  {result.problem}" for result in results if result.problem]
    warnings = [f"{result.judge.name} note   {line}" for result in results for line in result.warnings]
    return [*lines, *problems, *warnings]


def table_row(result: CheckedJudge) -> tuple[str, ...]:
    properties, judge = result.found, result.judge
    model = f"{judge.model} (answers as {result.answered_as})" if result.answered_as else judge.model
    works = "FAILS" if result.problem else f"{result.seconds:.1f} s"
    if not judge.preset.asks:
        return (judge.name, works, model, "-", "-", "-", "-", "-", _format_price(judge, result.price))
    temperature = properties["temperature"]
    return (
        judge.name,
        works,
        model,
        judge.schema_mode,
        "-" if properties["logprobs"] is None else str(properties["logprobs"]),
        "not sent" if temperature is None else f"{temperature:g}",
        f"yes, {properties['reasoning_tokens']}" if properties["thinks"] else "no",
        f"{properties['context']:,}" if properties["context"] else "?",
        _format_price(judge, result.price),
    )


def _format_price(judge: Judge, price: Price | None) -> str:
    if judge.provider == "offline":
        return "offline, free"
    return f"{price.input:g}, {price.output:g}" if price else "price unknown"


def _format_call_count(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"


def _format_bound(cost: float | None) -> str:
    return "price unknown" if cost is None else f"at most ${cost:.4f}"


def result_document(result: CheckedJudge) -> dict[str, object]:
    price = result.price
    return {
        "name": result.judge.name,
        "provider": result.judge.provider,
        "model": result.judge.model,
        "role": result.role,
        "ok": not result.problem,
        "problem": result.problem or None,
        "warnings": list(result.warnings),
        "answered_as": result.answered_as or result.judge.model if not result.problem else None,
        "price": {"input": price.input, "cached": price.cached, "output": price.output} if price else None,
        "tokens": {"in": result.usage.input, "out": result.usage.output},
        "cost": result.cost,
        "seconds": round(result.seconds, 3),
        "calls": result.calls,
        "found": result.found,
    }
