"""`campaign NAME pause|resume|cancel|retry-failed|send-again`: control a collection's newest campaign."""

from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand, collection_named
from judges.campaigns import selectors
from judges.campaigns.services import CONTROLS, control_campaign

RESULTS = {"retry-failed": "failed pairs are judged again", "send-again": "lost batches are sent again"}


class Command(QuorumCommand):
    help = "Pause, resume or cancel a campaign, judge its failed pairs again, or send its lost batches again."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("action", choices=CONTROLS, help="what to do")
        parser.add_argument("--campaign", type=int, help="number of the campaign (default: the newest not cancelled)")

    def run(self, **options: Any) -> object:
        """Control the campaign; return its status document."""
        collection, act = collection_named(options["name"]), options["action"]
        campaign = selectors.find_campaign(collection, options["campaign"], cancelled=act == "cancel")
        campaign, touched = control_campaign(self.actor, campaign, act)
        result = f": {touched} {RESULTS[act]}" if act in RESULTS else f" is {campaign.get_state_display()}"
        self.say(f"campaign {campaign.number}{result}")
        return selectors.campaign_status(collection, campaign)
