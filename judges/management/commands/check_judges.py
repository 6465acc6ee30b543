"""check_judges [--panel P]: one call per judge; exit 3 when one of them cannot work."""

import asyncio
from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand
from corpus.errors import BadInput, Incomplete
from judges.checks import Checked, check
from judges.engine.plan import judge_of
from judges.models import JudgeVersion, Panel
from judges.records import Judge


class Command(QuorumCommand):
    """Prints a line for each judge: what works, or what is wrong and what to do.

    The exit code is 3 and not 2 when a judge cannot work: the input was right, the calls were made, and the table of
    results stands on standard output.
    """

    help = "Call every judge of a panel once: key, model, schema, price. These calls are paid for."

    def arguments(self, parser: CommandParser) -> None:
        """The panel."""
        parser.add_argument("--panel", help="name of the panel; the default one unless given")

    def run(self, **options: Any) -> object:
        """Ask, print, fail when one failed."""
        panel = find_panel(options["panel"])
        results = asyncio.run(check(members(panel)))
        width = max(len(result.judge.name) for result in results)
        for result in results:
            self.say(f"{result.judge.name:{width}}  {line(result)}")
        document = {"panel": panel.name, "judges": [row(result) for result in results]}
        failed = [result.judge.name for result in results if result.problem]
        if failed:
            raise Incomplete(f"{len(failed)} of {len(results)} judges cannot work: {', '.join(failed)}", document)
        return document


def find_panel(name: str | None) -> Panel:
    """The named panel, or the default one. Raises BadInput."""
    panel = Panel.objects.filter(name=name).first() if name else Panel.objects.filter(is_default=True).first()
    if panel is None:
        known = ", ".join(Panel.objects.order_by("name").values_list("name", flat=True))
        raise BadInput(f"No panel {name}; there are: {known}" if name else "No default panel: run configure_judges F")
    return panel


def members(panel: Panel) -> list[tuple[Judge, str]]:
    """Each judge of the panel once, with a role that it has: a debater is asked for a turn. Raises BadInput."""
    roles = dict.fromkeys(filter(None, [*panel.ensemble, panel.adjudicator]), "vote")
    roles |= dict(zip(panel.debate, ("for", "against"), strict=False))
    rows = {row.name: row for row in JudgeVersion.objects.filter(name__in=roles, is_current=True)}
    if missing := roles.keys() - rows.keys():
        raise BadInput(f"Panel {panel.name} names judges that are gone: {', '.join(sorted(missing))}")
    order = dict.fromkeys([*panel.debate, *roles])
    return [(judge_of(rows[name]), roles[name]) for name in order]


def line(result: Checked) -> str:
    """For people."""
    known = result.price
    price = f"${known.input:g} in, ${known.output:g} out per million tokens" if known else "price unknown"
    if result.judge.provider == "offline":
        price = "offline, free"
    name = f", answers as {result.answered_as}" if result.answered_as else ""
    if result.problem:
        return f"FAILS  {result.problem}"
    return f"ok     {result.judge.model}{name}, {result.seconds:.1f} s, {price}"


def row(result: Checked) -> dict[str, object]:
    """For programs."""
    known = result.price
    return {
        "name": result.judge.name,
        "provider": result.judge.provider,
        "model": result.judge.model,
        "role": result.role,
        "ok": not result.problem,
        "problem": result.problem or None,
        "answered_as": result.answered_as or result.judge.model if not result.problem else None,
        "price": {"input": known.input, "cached": known.cached, "output": known.output} if known else None,
        "tokens": {"in": result.usage.input, "out": result.usage.output},
        "cost": result.cost,
        "seconds": round(result.seconds, 3),
    }
