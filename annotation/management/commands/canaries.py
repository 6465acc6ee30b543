"""`canaries [--panel P]`: send judges prompt injections, and count the verdicts that they flip (docs/judge.md)."""

from typing import Any

from django.core.management.base import CommandParser

from annotation.quality.label_quality.canaries import ALARM_RATE, CanaryResult, read_canary_results
from corpus.commands import QuorumCommand
from corpus.errors import BadInput
from judges.campaigns.configurations import find_panel
from judges.probes import canaries
from judges.records import Judge

MAX_INTERVAL_HOURS = 24 * 366


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
        # Without --paid only judges known to be free: an unknown price may be high.
        asked_judges = [judge for judge in judges if options["paid"] or canaries.is_free(judge)]
        left_out = [judge for judge in judges if judge not in asked_judges]
        document: dict[str, Any] = {"panel": panel.name, "left_out": [judge.name for judge in left_out]}
        if options["every"] is not None:
            return document | self.schedule(options)
        document |= self.estimate(asked_judges, left_out)
        if options["estimate"]:
            return document
        if not asked_judges:
            raise BadInput(f"Every judge of panel {panel.name} may cost money: add --paid to ask them all the same")
        canary_round = canaries.ask_canaries(panel=panel.name, judges=asked_judges, by="command")
        results = read_canary_results(judge.id for judge in asked_judges)
        for result in results:
            lost_verdicts = result.missing_verdict_count
            without_verdict = f"; {lost_verdicts} without a verdict" if lost_verdicts else ""
            self.say(f"{'ALARM  ' if result.raises_alarm else 'ok     '}{result.summary}{without_verdict}")
        costs = list(canary_round.answers.values_list("cost", flat=True))
        known_costs = [cost for cost in costs if cost is not None]
        document |= {
            "round": canary_round.pk,
            "calls": len(costs),
            "cost": sum(known_costs) if len(known_costs) == len(costs) else None,
        }
        return document | {
            "judges": [describe_result(result) for result in results],
            "alarms": [result.judge_name for result in results if result.raises_alarm],
        }

    def schedule(self, options: dict[str, Any]) -> dict[str, Any]:
        """Set the schedule and print it."""
        if not 0 <= options["every"] <= MAX_INTERVAL_HOURS:
            raise BadInput(f"--every {options['every']}: give hours from 0 (never) to {MAX_INTERVAL_HOURS}")
        schedule = canaries.set_schedule(hours=options["every"], paid=options["paid"], panel=options["panel"])
        if schedule.hours:
            whom = "all judges" if schedule.paid else "free judges only"
            self.say(f"workers ask {whom} of panel {schedule.panel or 'by default'} every {schedule.hours} hours")
        else:
            self.say("no scheduled canaries")
        return {"schedule": {"hours": schedule.hours, "paid": schedule.paid, "panel": schedule.panel or None}}

    def estimate(self, judges: list[Judge], left_out: list[Judge]) -> dict[str, Any]:
        """Print and return the expected calls and cost, of the judges that are asked and of those left out."""
        if judges:
            self.stderr.write(f"estimate: {canaries.forecast(judges).line()}")
        if left_out:
            names = ", ".join(judge.name for judge in left_out)
            self.stderr.write(f"left out because they may cost money: {names}; --paid asks them too")
            self.stderr.write(f"estimate for them: {canaries.forecast(left_out).line()}")
        return {"estimate": estimate_cost(judges), "estimate_left_out": estimate_cost(left_out)}


def describe_result(result: CanaryResult) -> dict[str, Any]:
    """Return the result of a judge as JSON."""
    return {
        "name": result.judge_name,
        "pairs": result.pair_count,
        "flips": result.flip_count,
        "lost": result.missing_verdict_count,
        "asked": result.hostile_text_count,
        "rate": result.flip_rate,
        "low": result.flip_rate_interval.low,
        "high": result.flip_rate_interval.high,
        "limit": ALARM_RATE,
        "alarm": result.raises_alarm,
        "clean_honest": result.correct_clean_count,
        "kinds": {
            counts.kind: {
                "pairs": counts.pair_count,
                "flips": counts.flip_count,
                "lost": counts.missing_verdict_count,
            }
            for counts in result.counts_by_kind
        },
    }


def estimate_cost(judges: list[Judge]) -> dict[str, Any] | None:
    """Return the expected calls and cost in USD, None where a price is unknown."""
    if not judges:
        return None
    forecast = canaries.forecast(judges)
    cost = None if forecast.cost is None else round(forecast.cost.expected, 6)
    return {"calls": round(forecast.calls.expected), "cost": cost}
