"""What a start would come to: pairs, calls, money, people's hours, and judges that nobody has checked."""

from typing import Any

from actions.services import Actor
from annotation.campaigns.people import estimate_people
from annotation.panels.self_checks import LARGE, unchecked_judges
from corpus.models import Collection
from judges.campaigns.configurations import configuration_of
from judges.campaigns.forecasts import forecast_judging
from judges.campaigns.lifecycle import pairs_to_judge
from judges.campaigns.options import CampaignOptions
from judges.costs.collection_budgets import collection_budget


def estimate_campaign(actor: Actor, collection: Collection, options: CampaignOptions) -> dict[str, Any]:
    """Estimate calls, money and people's hours of a campaign; nothing starts."""
    wanted, caps = configuration_of(options), collection_budget(collection)
    pairs = pairs_to_judge(collection, wanted, limit=options.limit, again=options.again)
    estimate = forecast_judging(collection, wanted, limit=options.limit, again=options.again, fresh=options.fresh)
    return {
        "wanted": wanted,
        "caps": caps,
        "short": estimate is not None and caps.is_short_for(estimate.known.expected),
        "pairs": pairs,
        "estimate": estimate,
        "people": estimate_people(collection, wanted, pairs, estimate.calls.expected if estimate else 0.0),
        "unchecked": unchecked_judges(collection, wanted.judges) if pairs >= LARGE else (),
    }
