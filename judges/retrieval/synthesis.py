"""Scores with their chains as training data: k generations of a graded judge for chosen pairs (ERank 3.2, SPEC S5).

The pairs are asked by this process, without workers and without labels: what was paid for is found in the cache when
the command runs again, also after a kill.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.models import Collection
from judges.campaigns.lifecycle import check_budget
from judges.domain import copies, ensemble
from judges.domain.verdicts import NoVerdict
from judges.engine.calls import Caller, JudgeQuestion
from judges.engine.leases import Claimed
from judges.evidence.campaigns import writer_configuration
from judges.inline.runner import InlineResult, ask_inline
from judges.models import Attempt, Campaign
from judges.prompts import render
from judges.records import Turn

LONGEST = 2048  # Tokens of an answer; a query with a longer one is dropped whole (ERank C).


@dataclass(frozen=True, slots=True)
class Synthesized:
    """A pair's generations in their order; `kept` is the place of the one nearest to their mean."""

    pair: int
    prompt: str
    instruction: str
    generations: tuple[Turn, ...]
    tokens: tuple[int, ...]  # Of each answer.
    kept: int
    mean: float
    cut: bool  # An answer was cut at the judge's output limit.

    @property
    def too_long(self) -> bool:
        """Whether one of the answers is longer than is trained on."""
        return self.cut or any(number > LONGEST for number in self.tokens)


def synthesize(
    collection: Collection,
    judge: str,
    pairs: Sequence[int],
    *,
    k: int,
    budget: float | None = None,
    max_calls: int | None = None,
    done: Callable[[int], None] = lambda count: None,
) -> InlineResult[Synthesized]:
    """Ask `judge` k times about each pair. Raises BadInput for an unknown judge, and one without a scale of its own."""
    wanted = replace(writer_configuration(judge), policy=Campaign.Policy.EVIDENCE.value)
    if wanted.voters[0].grades == 1:
        raise BadInput(_('%(judge)s answers yes or no: give it scale = "0-10" in the judges file') % {"judge": judge})
    if k > 1 and (why := copies.why_alike(wanted.voters[0])):
        alike = _("%(k)s generations of %(judge)s would be alike: %(why)s")
        raise BadInput(alike % {"judge": judge, "k": k, "why": why})
    check_budget(collection, wanted, budget, max_calls, None)

    async def ask(caller: Caller, claimed: Claimed) -> Synthesized | None:
        member = caller.plan.voters[0]
        prompt, schema = render.render_ballot(claimed.inputs, member)
        answers: list[Turn | NoVerdict] = []
        for number in range(k):
            question = JudgeQuestion(("generation", number, 0), member, prompt, schema, key_sample=number)
            answers.append(await caller.ask(claimed, question))
        return _synthesized_pair(claimed, f"{prompt.system}\n\n{prompt.user}", answers)

    found = ask_inline(collection, wanted, "scoring", pairs, ask, budget=budget, max_calls=max_calls, done=done)
    tokens = _tokens_by_answer(found.campaign)

    def count_tokens(pair: int, one: Synthesized) -> Synthesized:
        keys = ((pair, turn.reason, turn.score or 0) for turn in one.generations)
        return replace(one, tokens=tuple(tokens.get(key, 0) for key in keys))

    return replace(found, answers={pair: count_tokens(pair, one) for pair, one in found.answers.items()})


def _synthesized_pair(claimed: Claimed, prompt: str, answers: Sequence[Turn | NoVerdict]) -> Synthesized | None:
    given = tuple(one for one in answers if isinstance(one, Turn) and one.score is not None)
    scores = [one.score or 0 for one in given]
    kept = ensemble.nearest_to_mean(scores)
    if kept is None:
        return None
    mean = sum(scores) / len(scores)
    cut = any(isinstance(one, NoVerdict) and one.outcome == "truncated" for one in answers)
    return Synthesized(claimed.pair, prompt, claimed.inputs.relevance.statement, given, (), kept, mean, cut)


def _tokens_by_answer(campaign: int) -> dict[tuple[int, str, int], int]:
    """Tokens of each answer by pair, chain and score; of those from the cache as the call that was sent had them."""
    rows = Attempt.objects.filter(campaign=campaign, role="generation", counts=True, outcome="labelled")
    mine = list(rows.values_list("pair", "reason", "score", "tokens_out", "cache_key"))
    keys = [key for *_, tokens, key in mine if not tokens]
    sent = Attempt.objects.filter(cache_key__in=keys, outcome="labelled", cached=False)
    known = dict(sent.values_list("cache_key", "tokens_out"))
    return {(pair, reason, score or 0): tokens or known.get(key, 0) for pair, reason, score, tokens, key in mine}
