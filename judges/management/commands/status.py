"""`status NAME`: the progress of a collection, over all campaigns and people; with `--campaign`, of one campaign."""

from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand, collection_named
from judges.campaigns import selectors
from judges.campaigns.progress import summary_lines
from judges.engine import notifications
from judges.models import Campaign


class Command(QuorumCommand):
    help = "Print how far a collection is, or one of its campaigns."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("--campaign", type=int, help="number of the campaign (default: the whole collection)")

    def run(self, **options: Any) -> object:
        collection, number = collection_named(options["name"]), options["campaign"]
        campaign = selectors.find_campaign(collection, number) if number is not None else None
        document = selectors.campaign_status(collection, campaign)
        if self.as_json:
            return document
        for line in summary_lines(document, whole=campaign is None):
            self.say(line)
        running_campaign = collection.campaigns.filter(state=Campaign.State.RUNNING).last()
        if running_campaign is not None and (reason := notifications.describe_wait(running_campaign)):
            self.say(f"  waits: {reason}")
        return document
