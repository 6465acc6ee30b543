"""`status NAME` prints the progress of a collection, over all campaigns and people, or with `--campaign` of one."""

from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand, collection_named
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
        collection = collection_named(options["name"])
        campaign = None
        if options["campaign"] is not None:
            campaign = selectors.find_campaign(collection, options["campaign"])
        document = selectors.campaign_status(collection, campaign)
        if self.as_json:
            return document
        for line in summary_lines(document, whole=campaign is None):
            self.say(line)
        # Of a whole collection, only the newest running campaign is reported on.
        running_campaigns = collection.campaigns.filter(state=Campaign.State.RUNNING)
        if campaign is not None:
            running_campaigns = running_campaigns.filter(pk=campaign.pk)
        running_campaign = running_campaigns.last()
        if running_campaign is not None:
            reason = notifications.describe_wait(running_campaign)
            if reason:
                self.say(f"  campaign {running_campaign.number} is waiting: {reason}")
        return document
