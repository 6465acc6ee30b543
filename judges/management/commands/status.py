"""`status NAME`: how far a collection is, whoever labelled its pairs; with `--campaign` one campaign of it."""

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
        name, campaign = options["name"], options["campaign"]
        collection = collection_named(name)
        found = selectors.find_campaign(collection, campaign) if campaign is not None else None
        document = selectors.campaign_status(collection, found)
        for line in summary_lines(document, whole=campaign is None):
            if not self.as_json:
                self.say(line)
        running = collection.campaigns.filter(state=Campaign.State.RUNNING).last()
        if not self.as_json and running is not None and (waits := notifications.describe_wait(running)):
            self.say(f"  waits: {waits}")
        return document
