"""Synthesis of scores with reasoning as training data: k generations for each pair (ERank 3.2).

This process sends the calls, without workers and labels. If the command is run again, also after a kill, it finds paid
answers in the cache. The answers belong to the campaign, from which `export --format erank-sft` reads them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.models import Collection
from judges.campaigns.evidence_campaigns import writer_configuration
from judges.campaigns.lifecycle import check_budget
from judges.domain import copies, ensemble
from judges.domain.chains import HIGHEST
from judges.domain.verdicts import NoVerdict
from judges.engine.calls import Caller, JudgeQuestion
from judges.engine.leases import Claimed
from judges.models import Attempt, Campaign, Work
from judges.prompts import render
from judges.records import Turn
from judges.workers.inline_runner import InlineResult, ask_inline

LONGEST = 2048  # Maximum tokens of a generation in training; a query with a longer one is dropped entirely (ERank C).
# Why a document was drawn: as a labelled positive or negative, or from a range of ranks of a run (ERank C).
KINDS = ("positive", "negative", "hard", "medium", "easy")
# Thoughts with fewer bytes per token than any text has are a provider's summary.
SUMMARY = 1.5


@dataclass(frozen=True, slots=True)
class Generation:
    """Answer of a model. `chain`: its thoughts if it returns them, else its reason; `tokens`: of the chain."""

    chain: str
    score: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """A pair's generations in their order; `kept` is the position of the one nearest to their mean."""

    pair: int
    kind: str
    generations: tuple[Generation, ...]
    kept: int
    mean: float
    cut: bool  # An answer was cut at the judge's output limit.

    @property
    def too_long(self) -> bool:
        """Whether one of the answers is too long for training."""
        return self.cut or any(generation.tokens > LONGEST for generation in self.generations)


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
    """Ask `judge` k times about each pair. `kinds`: why each pair was drawn, by primary key.

    `chains`: use the prompt score-chain, whatever the judge's own. Raises BadInput for a judge that is unknown, has no
    scale from 0 to 10, or would repeat its answers.
    """
    configuration = replace(writer_configuration(judge), policy=Campaign.Policy.EVIDENCE.value)
    if configuration.voters[0].grades != HIGHEST:
        raise BadInput(
            _('%(judge)s has no scores from 0 to 10: give it scale = "0-10" in the judges file') % {"judge": judge}
        )
    if k > 1 and (why := copies.why_alike(configuration.voters[0])):
        message = _("%(k)s generations of %(judge)s would be identical: %(why)s")
        raise BadInput(message % {"judge": judge, "k": k, "why": why})
    check_budget(collection, configuration, budget, max_calls, None)

    async def ask(caller: Caller, claimed: Claimed) -> bool | None:
        voter = caller.plan.voters[0]
        if chains:
            voter = replace(voter, parameters=voter.parameters | {"prompt": "score-chain"})
        prompt, schema = render.render_ballot(claimed.inputs, voter)
        answers: list[Turn | NoVerdict] = []
        for number in range(k):
            question = JudgeQuestion(("generation", number, 0), voter, prompt, schema, key_sample=number)
            answers.append(await caller.ask(claimed, question))
        return any(isinstance(answer, Turn) for answer in answers) or None

    result = ask_inline(
        collection, configuration, "scoring", list(kinds), ask, budget=budget, max_calls=max_calls, done=done
    )
    for kind in set(kinds.values()):
        pairs = [pair for pair, pair_kind in kinds.items() if pair_kind == kind]
        Work.objects.filter(campaign=result.campaign, pair__in=pairs).update(stratum=kind)
    scored_pairs = read_scored_pairs(result.campaign.pk, kinds)
    # In the order of `kinds`, without the pairs that got no answer in this process.
    answers = {pair: scored_pairs[pair] for pair in kinds if pair in result.answers and pair in scored_pairs}
    return cast(InlineResult[ScoredPair], replace(result, answers=answers))  # type: ignore[arg-type]


def read_scored_pairs(campaign: int, pairs: Iterable[int]) -> dict[int, ScoredPair]:
    """Return those of the pairs for which the campaign's generations have a score, by primary key."""
    kinds = dict(Work.objects.filter(campaign=campaign, pair__in=pairs).values_list("pair", "stratum"))
    attempts = Attempt.objects.filter(campaign=campaign, role="generation", counts=True, pair__in=kinds)
    fields = ("pair", "outcome", "reason", "reasoning", "score", "tokens_out", "tokens_reasoning", "cache_key")
    rows = list(attempts.order_by("pair", "generation").values_list(*fields))
    # Answers from the cache have the token counts of the call that was sent.
    cache_keys = [key for *_rest, tokens, _reasoning_tokens, key in rows if not tokens]
    sent_calls = Attempt.objects.filter(cache_key__in=cache_keys, outcome="labelled", cached=False)
    original_tokens = {
        key: (tokens, reasoning_tokens)
        for key, tokens, reasoning_tokens in sent_calls.values_list("cache_key", "tokens_out", "tokens_reasoning")
    }
    generations: dict[int, list[Generation]] = {pair: [] for pair in kinds}
    cut_pairs = {pair for pair, outcome, *_rest in rows if outcome == "truncated"}
    for pair, outcome, reason, reasoning, score, tokens, reasoning_tokens, key in rows:
        if outcome == "labelled" and score is not None:
            tokens, reasoning_tokens = (tokens, reasoning_tokens) if tokens else original_tokens.get(key, (0, 0))
            # The tokens of the text that becomes training data, without hidden ones.
            size = len(reasoning.encode())
            if not reasoning:
                length = tokens - reasoning_tokens
            elif reasoning_tokens and size < SUMMARY * reasoning_tokens:
                length = size // 4
            else:
                length = reasoning_tokens or tokens
            generations[pair].append(Generation(reasoning or reason, score, length))
    return {
        pair: ScoredPair(
            pair,
            kinds[pair],
            tuple(pair_generations),
            nearest,
            sum(generation.score for generation in pair_generations) / len(pair_generations),
            pair in cut_pairs,
        )
        for pair, pair_generations in generations.items()
        if (nearest := ensemble.nearest_to_mean([generation.score for generation in pair_generations])) is not None
    }
