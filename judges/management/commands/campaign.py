"""`campaign NAME pause|resume|cancel|retry-failed|send-again`: control a collection's newest campaign."""

from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand, collection_named
from judges.campaigns import lifecycle, selectors
from judges.management.commands.status import campaign_of

ACTIONS = {"pause": lifecycle.pause, "resume": lifecycle.resume, "cancel": lifecycle.cancel}


class Command(QuorumCommand):
    act = "campaign.control"
    help = "Pause, resume or cancel a campaign, judge its failed pairs again, or send its lost batches again."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("action", choices=[*ACTIONS, "retry-failed", "send-again"], help="what to do")
        parser.add_argument("--campaign", type=int, help="number of the campaign (default: the newest not cancelled)")

    def run(self, **options: Any) -> object:
        """Control the campaign; return its status document."""
        name, action, campaign = options["name"], options["action"], options["campaign"]
        collection = collection_named(name)
        chosen = (
            campaign_of(collection, campaign)
            if campaign is not None
            else lifecycle.newest_campaign(collection=collection, cancelled=action == "cancel")
        )
        if action == "retry-failed":
            retried = lifecycle.retry_failed(campaign=chosen)
            self.say(f"campaign {chosen.number}: {retried} failed pairs are judged again")
        elif action == "send-again":
            sent = lifecycle.send_again(campaign=chosen)
            self.say(f"campaign {chosen.number}: {sent} lost batches are sent again")
        else:
            changed = ACTIONS[action](campaign=chosen)
            self.say(f"campaign {changed.number} is {changed.get_state_display()}")
        return selectors.campaign_status(collection, chosen)
