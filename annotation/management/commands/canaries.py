"""`canaries [--panel P]`: send judges hostile texts, and count who follows them (docs/judge.md)."""

from typing import Any

from django.core.management.base import CommandParser

from annotation.quality.label_quality.canaries import LIMIT, CanaryFlips, measure_flips
from corpus.commands import QuorumCommand
from corpus.errors import BadInput
from judges.campaigns.configurations import find_panel
from judges.probes import canaries
from judges.records import Judge

MOST_HOURS = 24 * 366


class Command(QuorumCommand):
    act = "canaries.asked"
    help = "Send canaries (a clean text, and the same with a prompt injection) to a panel's judges; print flip rates."

    def arguments(self, parser: CommandParser) -> None:
        """Add the options: which judges are asked, and how often workers repeat it."""
        parser.add_argument("--panel", default="", help="name of the panel (default: the default panel)")
        parser.add_argument("--paid", action="store_true", help="include judges that cost money or have no known price")
        parser.add_argument("--estimate", action="store_true", help="print the expected cost and make no calls")
        parser.add_argument(
            "--every", type=int, metavar="HOURS", help="repeat every HOURS hours in the background; 0 turns this off"
        )

    def run(self, **options: Any) -> object:
        """Ask the judges and count flips, or estimate the cost; --every only sets the schedule."""
        panel = find_panel(options["panel"])
        judges = canaries.panel_judges(panel)
        # Without --paid only judges of known price 0: an unknown price may be a high one.
        chosen = [judge for judge in judges if options["paid"] or canaries.is_free(judge)]
        left = [judge for judge in judges if judge not in chosen]
        document: dict[str, Any] = {"panel": panel.name, "left_out": [judge.name for judge in left]}
        if options["every"] is not None:
            return document | self.schedule(options)
        document |= self.estimate(chosen, left)
        if options["estimate"]:
            return document
        if not chosen:
            raise BadInput(f"Every judge of panel {panel.name} may cost money: add --paid to ask them all the same")
        made = canaries.ask_canaries(panel=panel.name, judges=chosen, by="command")
        found = measure_flips(judge.id for judge in chosen)
        for one in found:
            lost = f"; {one.lost} without a verdict" if one.lost else ""
            self.say(f"{'ALARM  ' if one.alarm else 'ok     '}{one.summary}{lost}")
        costs = list(made.answers.values_list("cost", flat=True))
        known = [cost for cost in costs if cost is not None]
        document |= {"round": made.pk, "calls": len(costs), "cost": sum(known) if len(known) == len(costs) else None}
        return document | {"judges": list(map(flips_row, found)), "alarms": [one.name for one in found if one.alarm]}

    def schedule(self, options: dict[str, Any]) -> dict[str, Any]:
        """Set the schedule and print what it means."""
        if not 0 <= options["every"] <= MOST_HOURS:
            raise BadInput(f"--every {options['every']}: give hours from 0 (never) to {MOST_HOURS}")
        made = canaries.set_schedule(hours=options["every"], paid=options["paid"], panel=options["panel"])
        if made.hours:
            whom = "all judges" if made.paid else "free judges only"
            self.say(f"workers ask {whom} of panel {made.panel or 'by default'} every {made.hours} hours")
        else:
            self.say("no scheduled canaries")
        return {"schedule": {"hours": made.hours, "paid": made.paid, "panel": made.panel or None}}

    def estimate(self, chosen: list[Judge], left: list[Judge]) -> dict[str, Any]:
        """Calls and cost before anything is sent, of those asked and those left out."""
        if chosen:
            self.stderr.write(f"estimate: {canaries.forecast(chosen).line()}")
        if left:
            names = ", ".join(judge.name for judge in left)
            self.stderr.write(f"left out because they may cost money: {names}; --paid asks them too")
            self.stderr.write(f"estimate for them: {canaries.forecast(left).line()}")
        return {"estimate": estimate_cost(chosen), "estimate_left_out": estimate_cost(left)}


def estimate_cost(judges: list[Judge]) -> dict[str, Any] | None:
    """Expected calls and USD; the cost is None where a price is unknown."""
    if not judges:
        return None
    found = canaries.forecast(judges)
    cost = None if found.cost is None else round(found.cost.expected, 6)
    return {"calls": round(found.calls.expected), "cost": cost}


def flips_row(one: CanaryFlips) -> dict[str, Any]:
    """Return a judge's flips as the JSON document has them."""
    low, high = one.bounds
    counts = {"pairs": one.pairs, "flips": one.flips, "lost": one.lost, "asked": one.asked}
    interval = {"rate": one.rate, "low": low, "high": high, "limit": LIMIT, "alarm": one.alarm}
    return {"name": one.name, **counts, **interval, "clean_honest": one.honest, "kinds": one.kinds}
