"""`judge NAME`: judge a collection's pairs with a panel, by a policy."""

from typing import Any

from django.core.management.base import CommandParser

from actions.options import add_arguments, read_arguments
from corpus.commands import collection_named
from judges.campaigns.configurations import configuration_of
from judges.campaigns.forecasts import forecast_judging
from judges.campaigns.options import CampaignOptions
from judges.campaigns.services import start_judging
from judges.management.judging_command import JudgingCommand, add_wait_options, check_workers_option


class Command(JudgingCommand):
    name = "judge"
    help = "Judge a collection's pairs with a panel. Running the command again continues where it stopped."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        add_arguments(parser, CampaignOptions)
        add_wait_options(parser)

    def run(self, **arguments: Any) -> object:
        """Start or join the campaign, and with `--wait` wait for its end; return its status document."""
        collection, options = collection_named(arguments["name"]), read_arguments(CampaignOptions, arguments)
        check_workers_option(arguments["workers"])
        scope = options.model_dump(include={"limit", "again", "fresh"})
        self.confirm_cost(collection, forecast_judging(collection, configuration_of(options), **scope), arguments)
        return self.follow(collection, start_judging(self.actor, collection, options), arguments)
