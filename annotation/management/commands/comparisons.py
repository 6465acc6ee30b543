"""`comparisons NAME`: draw a set of comparisons of two documents of a query."""

from typing import Any

from annotation.models.comparisons import ComparisonSet
from annotation.work.comparing.services import draw_comparisons
from corpus.commands import ActionCommand


class Command(ActionCommand):
    action = draw_comparisons
    help = "Draw a set of comparisons of two documents of a query, for people and judges."

    def report(self, result: ComparisonSet) -> dict[str, Any]:
        """Print the number of the set and of its comparisons."""
        count = result.comparisons.count()
        self.say(f"set {result.number}: {count} comparisons, {result.people} people each")
        return {"set": result.number, "comparisons": count, "people": result.people}
