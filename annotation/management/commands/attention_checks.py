"""`attention_checks NAME [--count N]`: create attention checks from gold pairs and arguments (docs/people.md)."""

from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from annotation.work.quality_control import attention_checks, gold_reasons
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput
from corpus.models import Collection

MOST = 10_000
FORMS = (attention_checks.OWN, attention_checks.DREAM)


class Command(QuorumCommand):
    """Create or withdraw attention checks, have their arguments written, and count them."""

    help = "Show, create or withdraw attention checks, and have models write the arguments for gold pairs."

    def arguments(self, parser: CommandParser) -> None:
        """Add the options. Without --count, --withdraw and --write-arguments the command only counts."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("--count", type=int, metavar="N", help="create N attention checks")
        parser.add_argument("--seed", type=int, help="random seed of the draw (default: the collection's own)")
        form = "own: arguments about the pair itself; dream: relevant pairs, arguments about something else (DREAM F.2)"
        parser.add_argument("--form", choices=FORMS, default="own", help=form)
        parser.add_argument("--withdraw", action="store_true", help="withdraw all current attention checks")
        argue = "have the configured models write missing arguments, in the background"
        parser.add_argument("--write-arguments", action="store_true", help=argue)
        parser.add_argument("--estimate", action="store_true", help="print the expected cost and make no calls")

    def run(self, **options: Any) -> object:
        """Write arguments, withdraw and create checks, in this order, so that one call can replace all checks."""
        collection = collection_named(options["name"])
        document: dict[str, Any] = {"collection": collection.name, "form": options["form"]}
        if options["write_arguments"] or options["estimate"]:
            document["asked"] = self.write(collection, only_estimate=options["estimate"])
        if options["withdraw"]:
            document["withdrawn"] = attention_checks.withdraw_checks(collection=collection, by=None)
            self.say(f"{document['withdrawn']} checks were withdrawn")
        if options["count"] is not None:
            document["made"] = self.make(collection, options)
        return document | self.counts(collection)

    def make(self, collection: Collection, options: dict[str, Any]) -> int:
        """Create checks and return their number."""
        count, seed = options["count"], options["seed"]
        if not 1 <= count <= MOST:
            raise BadInput(f"--count {count}: give a number from 1 to {MOST:,}")
        seed = collection.seed if seed is None else seed
        count = attention_checks.make_checks(
            collection=collection, count=count, seed=seed, by=None, form=options["form"]
        )
        self.say(f"{count} checks were made")
        return count

    def write(self, collection: Collection, *, only_estimate: bool) -> bool:
        """Print the cost of the missing arguments, and queue them for a worker. Return whether they were queued."""
        forecast = gold_reasons.forecast_arguments(collection, *attention_checks.read_features(collection))
        if not forecast.writers:
            raise BadInput("No configured model can argue: run configure_judges, then try again")
        if forecast.estimate is None:
            self.say("all gold that can become attention checks has arguments")
            return False
        # On stderr, since stdout may carry the JSON document.
        self.stderr.write(f"estimate: {forecast.estimate.line()}")
        if only_estimate:
            return False
        with transaction.atomic():
            is_queued = gold_reasons.write_later(collection, by=None)
        queued = f"a worker asks {forecast.writers} about {forecast.offline} pairs"
        self.say(queued if is_queued else "a worker is already writing them")
        return is_queued

    def counts(self, collection: Collection) -> dict[str, Any]:
        """Count and print the checks, and the gold pairs that could become checks."""
        ordinary, gold = attention_checks.read_features(collection)
        pool = attention_checks.count_pool(collection, ordinary, gold)
        forecast = gold_reasons.forecast_arguments(collection, ordinary, gold)
        counts = {name: pool[name] for name in ("standing", "answered", "gold")}
        self.say(
            "{standing} checks stand, answered {answered} times; gold that could become checks: {gold}".format(**counts)
        )
        self.say(f"gold with models' words: {forecast.by_models}, with only the offline pair's: {forecast.offline}")
        return counts | {"gold_by_models": forecast.by_models, "gold_offline": forecast.offline}
