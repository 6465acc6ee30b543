"""What a start would cost, from a sample of the pairs it would judge."""

from corpus.models import Collection, Pair
from judges import campaigns, prompts
from judges.campaigns import Configuration
from judges.estimates import CampaignOptions, Estimate, estimate
from judges.records import Inputs, Prompt, Side

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
    )
    return estimate(options, sample(collection))


def sample(collection: Collection) -> list[Prompt]:
    """Rendered prompts of a spread of the collection's pairs."""
    pairs = Pair.objects.filter(collection=collection).select_related("query", "document").order_by("pk")
    step = max(1, pairs.count() // SAMPLE)
    found = []
    for number in range(0, SAMPLE * step, step):
        pair = pairs[number : number + 1].first()
        if pair is None:
            break
        query, document = pair.query, pair.document
        instruction = query.instruction or collection.instruction
        inputs = Inputs(query.text, tuple(query.answers), document.title, document.text, instruction)
        found += [prompts.turn_prompt(inputs, Side.FOR, 1), prompts.vote_prompt(inputs)]
    return found
