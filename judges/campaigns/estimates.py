"""Estimates of a campaign's calls and cost, shown before its start. Pure.

The constants are the assumptions; the actual cost of a campaign is recorded with its attempts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from django.utils.translation import gettext as _

from judges.costs.prices import ENVELOPE, envelope_tokens, output_bound, price_for_judge, requests_reasoning
from judges.domain.ensemble import asked_first, expected_votes, usual_majority
from judges.prompts import writing
from judges.prompts.answering import fit_prompt
from judges.prompts.render import TURN_SCHEMA, VOTE_SCHEMA, render_ballot
from judges.records import Inputs, Judge, Prompt, Usage

DISAGREE = 0.3  # Expected share of debates that a round leaves without agreement.
# Expected share of pairs that an ensemble escalates, and whose debate is played for people.
ESCALATED = 0.15
REWRITTEN = 0.3  # Expected share of contributions and evidence that fail their checks and are written once more.
TURN_TOKENS = 160
# Expected tokens of an answer without hidden reasoning, by kind of prompt.
LIKELY = {"debate": TURN_TOKENS, "vote": 60, "write": 250, "entity": 40, "measure": 120}
LIKELY_CHAIN = 400  # The same for a vote by `score-chain`, whose answer contains the chain of thought.
SCHEMAS = {
    "debate": TURN_SCHEMA,
    "vote": VOTE_SCHEMA,
    "write": writing.WRITE_SCHEMA,
    "entity": writing.ENTITY_SCHEMA,
    "measure": writing.MEASURE_SCHEMA,
}
REASONING = 1_000  # Expected reasoning tokens in an answer of a judge that thinks and has not answered before.


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares and sizes of tokens in a judge's earlier answers, measured over `answers` of them."""

    answers: int = 0
    cached: float = 0.0  # The share of the input that its provider read from a cache.
    written: float = 0.0  # The share of the input that its provider wrote to one.
    reasoning: float = 0.0  # Tokens of reasoning in an answer.


NO_MIX = Mix()


@dataclass(frozen=True, slots=True)
class AnsweredShare:
    """Share of a judge's calls that it has answered before; `certain`: counted over all pairs, not over a sample."""

    share: float = 0.0
    certain: bool = True


# By `Judge.ballot_key`: the prompts for the votes on a sample of pairs, and the schema of the answer.
Ballots = Mapping[tuple[int, bool, str], tuple[Sequence[Prompt], dict[str, Any]]]


def ballots_of(judges: Sequence[Judge], inputs: Sequence[Inputs]) -> Ballots:
    """Render the judges' questions for votes, once for all judges that get the same question."""
    ballots = {}
    for key, judge in {judge.ballot_key: judge for judge in judges}.items():
        if rendered := [render_ballot(view, judge) for view in inputs]:
            ballots[key] = ([prompt for prompt, _schema in rendered], rendered[0][1])
    return ballots


@dataclass(frozen=True, slots=True)
class CampaignSize:
    """Everything on which the number of a campaign's calls depends: pairs without an outcome, policy and judges."""

    pairs: int
    # debate, ensemble, debate+ensemble, single, or evidence: the first voter writes, the second one measures.
    policy: str
    debaters: Sequence[Judge] = ()
    voters: Sequence[Judge] = ()  # Under `single` only the first one judges.
    rounds: int = 2
    early_stop: bool = False
    majority: int = 0  # Votes that must agree; 0: more than half.
    filters: Sequence[Judge] = ()
    adjudicator: Judge | None = None
    play_on: bool = False
    batch: bool = False
    # Token counts of earlier answers, by the judge's id (judges.campaigns.token_mixes).
    mixes: Mapping[int, Mix] = field(default_factory=dict)
    # Questions to voters and filters; for a judge without one, the vote among the sample's prompts is used.
    ballots: Ballots = field(default_factory=dict)
    # Shares of calls that were answered before and are not sent again, by the judge's id.
    answered: Mapping[int, AnsweredShare] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Range:
    """A low, an expected and an upper value."""

    low: float
    expected: float
    upper: float

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.expected + other.expected, self.upper + other.upper)

    def times(self, other: "Range") -> "Range":
        """Return the product of the low, expected and upper values."""
        return Range(self.low * other.low, self.expected * other.expected, self.upper * other.upper)


def exactly(value: float) -> Range:
    return Range(value, value, value)


NOTHING = exactly(0.0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Calls, tokens and USD of a campaign. `cost` is None if a judge has no known price (`unknown` names it)."""

    calls: Range
    tokens_in: Range
    tokens_out: Range
    cost: Range | None
    unknown: tuple[str, ...] = ()
    known: Range = NOTHING  # USD of the judges with a known price: a lower bound of the cost.
    # What the estimate assumes about reasoning and caches, for each judge, and whether it was measured.
    notes: tuple[str, ...] = ()

    def __add__(self, other: "Estimate") -> "Estimate":
        unknown, known_cost = tuple(dict.fromkeys(self.unknown + other.unknown)), self.known + other.known
        return Estimate(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            cost=None if unknown else known_cost,
            unknown=unknown,
            known=known_cost,
            notes=tuple(dict.fromkeys(self.notes + other.notes)),
        )

    @property
    def free(self) -> bool:
        """True if the campaign certainly costs nothing, as with offline judges."""
        return self.cost is not None and self.cost.upper == 0

    def line(self) -> str:
        amounts = {name: f"{getattr(self.cost or self.known, name):,.2f}" for name in ("low", "expected", "upper")}
        if self.free:
            cost = _("free")
        elif self.cost is not None:
            cost = _("about $%(expected)s ($%(low)s to $%(upper)s)")
        elif self.known.expected:
            cost = _("at least about $%(least)s, and the unknown price of %(names)s")
        else:
            cost = _("unknown price of %(names)s")
        calls = _("about %(expected)s calls (at most %(upper)s without retries)") % {
            "expected": f"{self.calls.expected:,.0f}",
            "upper": f"{self.calls.upper:,.0f}",
        }
        cost %= amounts | {"least": amounts["expected"], "names": ", ".join(self.unknown)}
        return "; ".join([_("%(calls)s, %(cost)s") % {"calls": calls, "cost": cost}, *self.notes])


def estimate_campaign(size: CampaignSize, sample_prompts: Sequence[Prompt]) -> Estimate:
    """Estimate calls and cost of a campaign, without retries and repairs, from the prompts of a sample of its pairs.

    The sample (50 pairs are plenty) has the prompts of round 1 and of the vote, or those of writing and measuring,
    distinguished by their names. Only their mean length is used; judges with a ballot have that of their own. The
    upper value takes every round, one token for each byte, and answers up to the judges' limit.
    """
    inputs = {kind: _input_tokens(sample_prompts, kind, schema) for kind, schema in SCHEMAS.items()}
    votes = {key: (_input_tokens(prompts, "", schema), schema) for key, (prompts, schema) in size.ballots.items()}
    total = Estimate(NOTHING, NOTHING, NOTHING, NOTHING)
    for judge, per_pair, kind in _expected_calls(size):
        prompt_tokens, schema, likely = inputs[kind], SCHEMAS[kind], LIKELY[kind]
        if kind == "vote" and judge != size.adjudicator:
            prompt_tokens, schema = votes.get(judge.ballot_key, (prompt_tokens, schema))
        if kind == "vote" and judge.ballot == "score-chain":
            likely = LIKELY_CHAIN
        tokens_in = prompt_tokens + _answer_form_tokens(judge, schema)
        tokens_in += Range(0, 0, envelope_tokens(judge) - ENVELOPE)
        # Earlier answers in the prompt have up to eight bytes for each token.
        if kind == "debate":
            # Of a turn: the two turns of the round before, which the first round does not have.
            later = 1 - 1 / sum(DISAGREE**number for number in range(size.rounds))
            longest = 8 * judge.max_output_tokens * (size.rounds - 1) / size.rounds
            tokens_in += Range(0, 2 * TURN_TOKENS * later, longest)
        elif kind != "vote":
            tokens_in += Range(0, 0, 8 * judge.max_output_tokens)
        mix = size.mixes.get(judge.id, NO_MIX)
        answered = size.answered.get(judge.id, AnsweredShare())
        rest = 1 - answered.share
        calls = per_pair.times(Range(rest, rest, 0 if answered.certain and not rest else 1)).times(exactly(size.pairs))
        total += _estimate_calls(judge, calls, tokens_in, likely, mix, batch=size.batch)
    if shares := [answered.share for answered in size.answered.values()]:
        note = _("%(share)s of the answers are kept from earlier calls and cost nothing")
        total = replace(total, notes=(*total.notes, note % {"share": f"{fmean(shares):.0%}"}))
    return total


def of_calls(
    judge: Judge, calls: int | Range, sample: Sequence[Prompt], schema: dict[str, Any], likely: int, mix: Mix = NO_MIX
) -> Estimate:
    """Estimate calls with prompts like those of `sample`; `likely`: the expected tokens of an answer, 0 for none."""
    calls = calls if isinstance(calls, Range) else exactly(calls)
    tokens_in = _input_tokens(sample, "", schema) + _answer_form_tokens(judge, schema)
    return _estimate_calls(judge, calls, tokens_in, likely, mix, batch=False)


def _estimate_calls(judge: Judge, calls: Range, tokens_in: Range, likely: int, mix: Mix, *, batch: bool) -> Estimate:
    """Estimate calls of `tokens_in` input tokens each, and an answer of `likely` tokens without reasoning.

    Reasoning tokens are as many as in earlier answers; they are assumed for a judge that thinks and has none.
    """
    reasoning = NOTHING
    most = output_bound(judge)
    if likely and (mix.answers or requests_reasoning(judge)):
        budget = judge.parameters.get("thinking")
        assumed = min(REASONING, budget) if isinstance(budget, int) and not isinstance(budget, bool) else REASONING
        expected = min(mix.reasoning if mix.answers else assumed, most)
        reasoning = Range(expected / 4, expected, most)
    text = min(likely, judge.max_output_tokens)
    answer = Range(text / 4 + reasoning.low, min(text + reasoning.expected, most), most)
    tokens_out = calls.times(answer) if likely else NOTHING
    cost = _estimate_cost(judge, calls.times(tokens_in), tokens_out, calls.times(reasoning), mix, batch=batch)
    if cost is not None and (price := price_for_judge(judge)) and price.call:
        cost = calls.times(exactly(price.call))  # a web search, whose price does not depend on tokens
    unknown = () if cost else (f"{judge.name} ({judge.model})",)
    notes = tuple(_estimate_notes(judge, mix, reasoning))
    return Estimate(calls, calls.times(tokens_in), tokens_out, cost, unknown, cost or NOTHING, notes)


def _expected_calls(size: CampaignSize) -> list[tuple[Judge, Range, str]]:
    """List (judge, calls for one pair, kind of prompt)."""
    if size.policy == "evidence":
        tries = Range(1, 1 + REWRITTEN, 2)
        kinds = (("write",), ("entity", "measure"))  # Of the writer, and of the measuring judge.
        return [(judge, tries, kind) for judge, names in zip(size.voters, kinds, strict=False) for kind in names]
    rounds = size.rounds
    expected_rounds = rounds if size.play_on else sum(DISAGREE**number for number in range(rounds))
    calls: list[tuple[Judge, Range, str]] = [(judge, exactly(1), "vote") for judge in size.filters]
    if size.policy in ("debate", "debate+ensemble"):
        least = rounds if size.play_on else 1
        calls += [(judge, Range(least, expected_rounds, rounds), "debate") for judge in size.debaters]
        if size.adjudicator:
            calls.append((size.adjudicator, Range(0, DISAGREE**rounds, 1), "vote"))
    elif size.policy == "ensemble":
        # Escalated pairs get a debate for the people who judge them (DREAM's history, played late).
        calls += [(judge, Range(0, ESCALATED * expected_rounds, rounds), "debate") for judge in size.debaters]
    if size.policy in ("single", "ensemble", "debate+ensemble"):
        voters = size.voters[:1] if size.policy == "single" else size.voters
        vote = exactly(1)
        if size.early_stop and (count := len(size.voters)) and size.policy == "ensemble":
            expected = expected_votes(count, size.majority or usual_majority(count))
            vote = Range(asked_first(count) / count, expected / count, 1)  # The share that an early stop leaves.
        calls += [(judge, vote.times(exactly(judge.generations)), "vote") for judge in voters]
    return calls


def _input_tokens(prompts: Sequence[Prompt], kind: str, schema: dict[str, Any]) -> Range:
    """Return the mean input tokens of the sample's prompts of a kind, with the schema of their answers."""
    texts = [prompt.system + prompt.user for prompt in prompts if prompt.name.startswith(kind)]
    if not texts:
        return NOTHING
    low, likely, most = zip(*map(_estimate_tokens, texts), strict=True)
    extra_bytes = len(json.dumps(schema)) + ENVELOPE
    return Range(fmean(low), fmean(likely) + extra_bytes / 4, fmean(most) + extra_bytes)


def _answer_form_tokens(judge: Judge, schema: dict[str, Any]) -> Range:
    """Return the input tokens of the form of the answer, for a judge that gets it in words."""
    return Range(*_estimate_tokens(fit_prompt(Prompt("", "", "", ""), judge, schema).system))


def _estimate_tokens(text: str) -> tuple[float, float, float]:
    """Return a low, an expected and an upper number of tokens.

    English has about four characters a token, Chinese and most other scripts about one; a byte is the upper bound.
    """
    size = len(text.encode("utf-8", "replace"))
    ascii_count = sum(character.isascii() for character in text)
    other_count = len(text) - ascii_count
    return ascii_count / 5 + other_count * 0.5, ascii_count / 4 + other_count, size


def _estimate_notes(judge: Judge, mix: Mix, reasoning: Range) -> list[str]:
    """Describe the assumptions about reasoning and caches, and whether they were measured."""
    values = {"judge": judge.name, "tokens": f"{reasoning.expected:,.0f}", "answers": f"{mix.answers:,}"}
    if not mix.answers:
        assumed = _("%(judge)s: assuming %(tokens)s reasoning tokens per answer (no earlier answers)")
        return [assumed % values] if reasoning.expected else []
    notes = []
    if mix.reasoning:
        notes.append(_("%(judge)s: %(tokens)s reasoning tokens per answer, from %(answers)s earlier answers") % values)
    if mix.cached or mix.written:
        values |= {"cached": f"{mix.cached:.0%}", "written": f"{mix.written:.0%}"}
        cache = _(
            "%(judge)s: %(cached)s of the input read from the prompt cache and %(written)s "
            "written to it, from %(answers)s earlier answers"
        )
        notes.append(cache % values)
    return notes


def _estimate_cost(
    judge: Judge, tokens_in: Range, tokens_out: Range, reasoning: Range, mix: Mix, *, batch: bool
) -> Range | None:
    price = price_for_judge(judge, batch=batch)
    if price is None:
        return None

    def cost(bound: str) -> float:
        input, output = getattr(tokens_in, bound), getattr(tokens_out, bound)
        usage = Usage(
            input=round(input),
            cached=round(input * mix.cached),
            written=round(input * mix.written),
            output=round(output),
            reasoning=round(min(getattr(reasoning, bound), output)),
        )
        return price.cost(usage)

    return Range(cost("low"), cost("expected"), price.most(round(tokens_in.upper), round(tokens_out.upper)))
