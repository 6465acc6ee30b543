"""Synthesis of scores with reasoning as training data: k generations for each pair (ERank 3.2).

The pairs are asked by this process, without workers and without labels: what was paid for is found
in the cache when the command runs again, also after a kill. What was answered stays with the
campaign, where `export --format erank-sft` reads it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.models import Collection
from judges.campaigns.lifecycle import check_budget
from judges.domain import copies, ensemble
from judges.domain.chains import HIGHEST
from judges.domain.verdicts import NoVerdict
from judges.engine.calls import Caller, JudgeQuestion
from judges.engine.leases import Claimed
from judges.evidence.campaigns import writer_configuration
from judges.inline.runner import InlineResult, ask_inline
from judges.models import Attempt, Campaign, Work
from judges.prompts import render
from judges.records import Turn

LONGEST = 2048  # Tokens of a generation as it is trained on; a query with a longer one is dropped whole (ERank C).
# Why a document was drawn: positives and negatives that have a label, then the ranges of ranks of a run (ERank C).
KINDS = ("positive", "negative", "hard", "medium", "easy")
# Fewer bytes a thought token than any text has: the provider gives a summary.
SUMMARY = 1.5


@dataclass(frozen=True, slots=True)
class Generation:
    """Answer of a model. `chain`: its thoughts where it tells them, else its reason; `tokens`: of the kept text."""

    chain: str
    score: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """A pair's generations in their order; `kept` is the place of the one nearest to their mean."""

    pair: int
    kind: str
    generations: tuple[Generation, ...]
    kept: int
    mean: float
    cut: bool  # An answer was cut at the judge's output limit.

    @property
    def too_long(self) -> bool:
        """True if one of the answers is longer than training takes."""
        return self.cut or any(one.tokens > LONGEST for one in self.generations)


def synthesize(
    collection: Collection,
    judge: str,
    kinds: Mapping[int, str],
    *,
    k: int,
    chains: bool = False,
    budget: float | None = None,
    max_calls: int | None = None,
    done: Callable[[int], None] = lambda count: None,
) -> InlineResult[ScoredPair]:
    """Ask `judge` k times about each pair; `kinds`: why each was drawn.

    `chains`: ask with the prompt score-chain, whatever the judge votes by. Raises BadInput for an
    unknown judge, one without a scale of 0 to 10, and one whose answers would be alike.
    """
    wanted = replace(writer_configuration(judge), policy=Campaign.Policy.EVIDENCE.value)
    if wanted.voters[0].grades != HIGHEST:
        raise BadInput(
            _('%(judge)s has no scores from 0 to 10: give it scale = "0-10" in the judges file') % {"judge": judge}
        )
    if k > 1 and (why := copies.why_alike(wanted.voters[0])):
        alike = _("%(k)s generations of %(judge)s would be identical: %(why)s")
        raise BadInput(alike % {"judge": judge, "k": k, "why": why})
    check_budget(collection, wanted, budget, max_calls, None)

    async def ask(caller: Caller, claimed: Claimed) -> bool | None:
        member = caller.plan.voters[0]
        if chains:
            member = replace(member, parameters=member.parameters | {"prompt": "score-chain"})
        prompt, schema = render.render_ballot(claimed.inputs, member)
        answers: list[Turn | NoVerdict] = []
        for number in range(k):
            question = JudgeQuestion(("generation", number, 0), member, prompt, schema, key_sample=number)
            answers.append(await caller.ask(claimed, question))
        return any(isinstance(one, Turn) for one in answers) or None

    found = ask_inline(collection, wanted, "scoring", list(kinds), ask, budget=budget, max_calls=max_calls, done=done)
    for kind in set(kinds.values()):
        drawn = [pair for pair, one in kinds.items() if one == kind]
        Work.objects.filter(campaign=found.campaign, pair__in=drawn).update(stratum=kind)
    scored = read_scored_pairs(found.campaign.pk, kinds)
    # In the order of the question, and without those that this process got no answer for.
    answers = {pair: scored[pair] for pair in kinds if pair in found.answers and pair in scored}
    return cast(InlineResult[ScoredPair], replace(found, answers=answers))  # type: ignore[arg-type]


def read_scored_pairs(campaign: int, pairs: Iterable[int]) -> dict[int, ScoredPair]:
    """Return what a campaign's generations say of these pairs, those with a score."""
    kinds = dict(Work.objects.filter(campaign=campaign, pair__in=pairs).values_list("pair", "stratum"))
    counted = Attempt.objects.filter(campaign=campaign, role="generation", counts=True, pair__in=kinds)
    fields = ("pair", "outcome", "reason", "reasoning", "score", "tokens_out", "tokens_reasoning", "cache_key")
    rows = list(counted.order_by("pair", "generation").values_list(*fields))
    sent = _tokens_as_sent([key for *_rest, tokens, _thought, key in rows if not tokens])
    generations: dict[int, list[Generation]] = {pair: [] for pair in kinds}
    cut = {pair for pair, outcome, *_rest in rows if outcome == "truncated"}
    for pair, outcome, reason, reasoning, score, tokens, thought, key in rows:
        if outcome == "labelled" and score is not None:
            tokens, thought = (tokens, thought) if tokens else sent.get(key, (0, 0))
            generations[pair].append(Generation(reasoning or reason, score, _tokens_kept(reasoning, tokens, thought)))
    return {
        pair: ScoredPair(pair, kinds[pair], tuple(made), kept, sum(one.score for one in made) / len(made), pair in cut)
        for pair, made in generations.items()
        if (kept := ensemble.nearest_to_mean([one.score for one in made])) is not None
    }


def _tokens_as_sent(keys: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return tokens out, and thought, of the sent call, for answers from the cache."""
    sent = Attempt.objects.filter(cache_key__in=keys, outcome="labelled", cached=False)
    return {
        key: (tokens, thought)
        for key, tokens, thought in sent.values_list("cache_key", "tokens_out", "tokens_reasoning")
    }


def _tokens_kept(reasoning: str, tokens: int, thought: int) -> int:
    """Count the tokens of what becomes training data; hidden ones outside it do not count."""
    if not reasoning:
        return tokens - thought
    size = len(reasoning.encode())
    if thought and size < SUMMARY * thought:
        return size // 4
    return thought or tokens
