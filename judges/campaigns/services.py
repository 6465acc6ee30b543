"""Actions on campaigns, for pages, the API and commands."""

from collections.abc import Callable
from typing import Any, NamedTuple

from actions.services import Actor, Unchanged, action
from corpus.models import Collection
from judges.campaigns import lifecycle
from judges.campaigns.configurations import configuration_of
from judges.campaigns.lifecycle import Started
from judges.campaigns.options import CampaignOptions
from judges.models import Campaign

CONTROLS: dict[str, Callable[..., Any]] = {
    "pause": lifecycle.pause,
    "resume": lifecycle.resume,
    "cancel": lifecycle.cancel,
    "retry-failed": lifecycle.retry_failed,
    "send-again": lifecycle.send_again,
}


class Controlled(NamedTuple):
    """A campaign after an action on it, and the number of pairs or batches concerned."""

    campaign: Campaign
    touched: int


def _note_start(options: CampaignOptions, started: Started) -> dict[str, Any]:
    number = started.campaign.number if started.campaign else None
    return {**options.noted(), "campaign": number, "pairs": started.added}


@action("campaign.started", noted=_note_start)
def start_judging(actor: Actor, collection: Collection, options: CampaignOptions) -> Started | Unchanged:
    """Start a campaign, or go on with the one that has this configuration. Raises BadInput."""
    started = lifecycle.start_campaign(
        collection=collection,
        configuration=configuration_of(options),
        retry=options.retry_failed,
        **options.model_dump(include={"limit", "budget", "max_calls", "again", "fresh", "failed_to_people"}),
    )
    return Unchanged(started) if started.idle else started


@action("campaign.control", noted=lambda act, done: {"campaign": done.campaign.number, "what": act})
def control_campaign(actor: Actor, campaign: Campaign, act: str) -> Controlled:
    """Pause, resume or cancel a campaign, retry failed pairs, or send lost batches again."""
    done = CONTROLS[act](campaign=campaign)
    campaign.refresh_from_db()
    return Controlled(campaign, done if isinstance(done, int) else 0)
