"""What a start would cost, from a sample of the pairs it would judge."""

from django.db.models import Max, Min

from corpus.models import Collection, Pair
from judges import campaigns, prompts
from judges.campaigns import Configuration
from judges.debate import FOR
from judges.estimates import CampaignOptions, Estimate, estimate
from judges.records import Inputs, Prompt

SAMPLE = 50


def forecast(
    collection: Collection, wanted: Configuration, *, limit: int | None = None, again: bool = False
) -> Estimate | None:
    """The estimate of what a start with this configuration has still to do; None when that is nothing."""
    left = campaigns.pairs_to_judge(collection, wanted, limit=limit, again=again)
    if not left:
        return None
    options = CampaignOptions(
        pairs=left,
        policy=wanted.policy,
        debaters=wanted.debaters,
        voters=wanted.voters,
        rounds=wanted.rounds,
        early_stop=wanted.early_stop,
        filters=wanted.filters,
        adjudicator=wanted.adjudicator,
        play_on=wanted.protocol.play_on,
        batch=wanted.protocol.batch,
    )
    return estimate(options, sample(collection))


def sample(collection: Collection) -> list[Prompt]:
    """Rendered prompts of a spread of the collection's pairs."""
    candidates = Pair.objects.filter(collection=collection, is_candidate=True)
    pairs = candidates.select_related("query", "document").order_by("pk")
    ends = candidates.aggregate(first=Min("pk"), last=Max("pk"))
    if ends["first"] is None:
        return []
    found = []
    # Steps over keys, not offsets: an offset into a million pairs reads all that come before it.
    step = max(1, (ends["last"] - ends["first"]) // SAMPLE)
    spread = {pairs.filter(pk__gte=key).first() for key in range(ends["first"], ends["last"] + 1, step)}
    for pair in sorted(filter(None, spread), key=lambda pair: pair.pk)[:SAMPLE]:
        query, document = pair.query, pair.document
        instruction = query.instruction or collection.instruction
        inputs = Inputs(query.text, tuple(query.answers), document.title, document.text, instruction)
        found += [prompts.turn_prompt(inputs, FOR, 1), prompts.vote_prompt(inputs)]
    return found
