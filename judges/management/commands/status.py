"""`status NAME` prints the progress of a collection over all its campaigns and people, or with `--campaign` of one."""

from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand, collection_named
from corpus.models import Collection
from judges.campaigns import selectors
from judges.campaigns.progress import summary_lines
from judges.engine import notifications
from judges.models import Campaign


class Command(QuorumCommand):
    help = "Print the progress of a collection, or of one of its campaigns."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("--campaign", type=int, help="number of the campaign (default: the whole collection)")

    def run(self, **options: Any) -> object:
        """Print the progress unless the output is JSON, and return it as a document."""
        collection = collection_named(options["name"])
        campaign = None
        if options["campaign"] is not None:
            campaign = selectors.find_campaign(collection, options["campaign"])
        # Without a campaign, this is the status of the collection.
        document = selectors.campaign_status(collection, campaign)
        if not self.as_json:
            for line in summary_lines(document, whole=campaign is None):
                self.say(line)
            self.print_wait(collection, campaign)
        return document

    def print_wait(self, collection: Collection, campaign: Campaign | None) -> None:
        """Print what a running campaign waits for: the given one, or without one the newest."""
        running_campaigns = collection.campaigns.filter(state=Campaign.State.RUNNING)
        if campaign is not None:
            running_campaigns = running_campaigns.filter(pk=campaign.pk)
        running_campaign = running_campaigns.last()
        if running_campaign is None:
            return
        waiting_reason = notifications.describe_wait(running_campaign)
        if waiting_reason:
            self.say(f"  campaign {running_campaign.number} is waiting: {waiting_reason}")
