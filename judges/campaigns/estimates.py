"""Estimates of a campaign's cost, before it begins. Pure: `judge` prints it, the page shows it before the start.

What is assumed stands in the constants; what a campaign really costs stands in its attempts.
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
# Expected share of pairs that the ensemble alone cannot settle, and whose debate is played for people.
ESCALATED = 0.15
REWRITTEN = 0.3  # Expected share of contributions and evidence that fail their checks and are written once more.
TURN_TOKENS = 160
# Expected tokens of an answer without reasoning that the model keeps to itself, by kind of prompt.
LIKELY = {"debate": TURN_TOKENS, "vote": 60, "write": 250, "entity": 40, "measure": 120}
LIKELY_CHAIN = 400  # The same of a vote by `score-chain`, which writes its chain of thought into the answer.
SCHEMAS = {
    "debate": TURN_SCHEMA,
    "vote": VOTE_SCHEMA,
    "write": writing.WRITE_SCHEMA,
    "entity": writing.ENTITY_SCHEMA,
    "measure": writing.MEASURE_SCHEMA,
}
REASONING = 1_000  # Expected tokens of reasoning in an answer of a judge that thinks and has answered nothing yet.


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
    """Share of a judge's calls that it has answered before; `certain`: every pair was looked at, not a sample."""

    share: float = 0.0
    certain: bool = True


Way = tuple[int, bool, str]  # What decides how a judge is asked for its vote: its scale, its endpoint and its prompt.
# By way to ask: the prompts of a sample of pairs, and the schema of the answer.
Ballots = Mapping[Way, tuple[Sequence[Prompt], dict[str, Any]]]


def way_of(judge: Judge) -> Way:
    """Judges with the same one are asked for their votes by the same prompt."""
    return judge.grades, judge.decides, judge.ballot


def ballots_of(judges: Sequence[Judge], inputs: Sequence[Inputs]) -> Ballots:
    """Render these judges' votes, once for all judges that are asked in the same way."""
    asked = {
        way_of(judge): [render_ballot(one, judge) for one in inputs]
        for judge in {way_of(j): j for j in judges}.values()
    }
    return {way: ([prompt for prompt, _schema in found], found[0][1]) for way, found in asked.items() if found}


@dataclass(frozen=True, slots=True)
class CampaignSize:
    """All that decides how many calls a campaign makes: pairs without an outcome, and its policy with its judges."""

    pairs: int
    # debate, ensemble, debate+ensemble, single, or evidence: the first voter writes, the second one measures.
    policy: str
    debaters: Sequence[Judge] = ()
    voters: Sequence[Judge] = ()  # Under `single` the first one judges.
    rounds: int = 2
    early_stop: bool = False
    majority: int = 0  # Votes that must agree; 0: more than half.
    filters: Sequence[Judge] = ()
    adjudicator: Judge | None = None
    play_on: bool = False
    batch: bool = False
    # What earlier answers took, by id of the judge (judges.campaigns.token_mixes).
    mixes: Mapping[int, Mix] = field(default_factory=dict)
    # What voters and filters are asked; a judge that is not in it gets the vote among the sample's prompts.
    ballots: Ballots = field(default_factory=dict)
    # What was answered before and is not sent again, by id of the judge.
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
        """Multiply low with low, upper with upper."""
        return Range(self.low * other.low, self.expected * other.expected, self.upper * other.upper)


def exactly(value: float) -> Range:
    return Range(value, value, value)


NOTHING = exactly(0.0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Calls, tokens and USD of a campaign. `cost` is None when a judge has no known price: `unknown` names it."""

    calls: Range
    tokens_in: Range
    tokens_out: Range
    cost: Range | None
    unknown: tuple[str, ...] = ()
    known: Range = NOTHING  # USD of the judges whose price is known: what it costs at least where others have none.
    # What is reckoned with beyond the texts, judge by judge: reasoning and caches, measured or assumed.
    notes: tuple[str, ...] = ()

    def __add__(self, other: "Estimate") -> "Estimate":
        unknown, known = tuple(dict.fromkeys(self.unknown + other.unknown)), self.known + other.known
        return Estimate(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            cost=None if unknown else known,
            unknown=unknown,
            known=known,
            notes=tuple(dict.fromkeys(self.notes + other.notes)),
        )

    @property
    def free(self) -> bool:
        """True if the campaign is sure to cost nothing, as with offline judges."""
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


def estimate_campaign(campaign_options: CampaignSize, sample_prompts: Sequence[Prompt]) -> Estimate:
    """Estimate calls and cost of a campaign from some of its rendered prompts; retries and repairs come on top."""
    # For a random sample of the pairs (50 are plenty) there are the prompts of round 1 and of the
    # vote, or those of writing and measuring, told apart by their names. Only their mean length is
    # used; votes of judges with a ballot in the options have that of their own. The upper value
    # takes every round, one token for each byte, and answers up to the judges' limit.
    options = campaign_options
    inputs = {kind: _input_tokens(sample_prompts, kind, schema) for kind, schema in SCHEMAS.items()}
    votes = {way: (_input_tokens(asked, "", schema), schema) for way, (asked, schema) in options.ballots.items()}
    total = Estimate(NOTHING, NOTHING, NOTHING, NOTHING)
    for judge, per_pair, kind in _expected_calls(options):
        asked, schema, likely = inputs[kind], SCHEMAS[kind], LIKELY[kind]
        if kind == "vote" and judge != options.adjudicator:
            asked, schema = votes.get(way_of(judge), (asked, schema))
        if kind == "vote" and judge.ballot == "score-chain":
            likely = LIKELY_CHAIN
        around = _answer_form_tokens(judge, schema) + Range(0, 0, envelope_tokens(judge) - ENVELOPE)
        taken = asked + around + _context_tokens(kind, options.rounds, judge.max_output_tokens)
        mix = options.mixes.get(judge.id, NO_MIX)
        known = options.answered.get(judge.id, AnsweredShare())
        left = 1 - known.share
        per_pair = per_pair.times(Range(left, left, 0 if known.certain and not left else 1))
        total += _estimate_calls(judge, per_pair.times(exactly(options.pairs)), taken, likely, mix, batch=options.batch)
    if shares := [known.share for known in options.answered.values()]:
        words = _("%(share)s of the answers are kept from earlier calls and cost nothing")
        total = replace(total, notes=(*total.notes, words % {"share": f"{fmean(shares):.0%}"}))
    return total


def of_calls(
    judge: Judge, calls: int | Range, sample: Sequence[Prompt], schema: dict[str, Any], likely: int, mix: Mix = NO_MIX
) -> Estimate:
    """Estimate calls like `sample`; `likely`: an answer's tokens; 0: none."""
    calls = calls if isinstance(calls, Range) else exactly(calls)
    taken = _input_tokens(sample, "", schema) + _answer_form_tokens(judge, schema)
    return _estimate_calls(judge, calls, taken, likely, mix, batch=False)


def _estimate_calls(judge: Judge, calls: Range, taken: Range, likely: int, mix: Mix, *, batch: bool) -> Estimate:
    thought = _reasoning_tokens(judge, mix) if likely else NOTHING
    said, most = min(likely, judge.max_output_tokens), output_bound(judge)
    answer = Range(said / 4 + thought.low, min(said + thought.expected, most), most)
    given = calls.times(answer) if likely else NOTHING
    money = _estimate_cost(judge, calls.times(taken), given, calls.times(thought), mix, batch=batch)
    if money is not None and (price := price_for_judge(judge)) and price.call:
        money = calls.times(exactly(price.call))  # A web search: nothing depends on its tokens.
    unknown = () if money else (f"{judge.name} ({judge.model})",)
    notes = tuple(_estimate_notes(judge, mix, thought))
    return Estimate(calls, calls.times(taken), given, money, unknown, money or NOTHING, notes)


def _expected_calls(options: CampaignSize) -> list[tuple[Judge, Range, str]]:
    """List (judge, calls for one pair, kind of prompt)."""
    if options.policy == "evidence":
        kinds = (("write",), ("entity", "measure"))
        tries = Range(1, 1 + REWRITTEN, 2)
        return [(judge, tries, kind) for judge, asked in zip(options.voters, kinds, strict=False) for kind in asked]
    rounds = options.rounds
    expected_rounds = rounds if options.play_on else sum(DISAGREE**number for number in range(rounds))
    found: list[tuple[Judge, Range, str]] = [(judge, exactly(1), "vote") for judge in options.filters]
    if options.policy in ("debate", "debate+ensemble"):
        least = rounds if options.play_on else 1
        found += [(judge, Range(least, expected_rounds, rounds), "debate") for judge in options.debaters]
        if options.adjudicator:
            found.append((options.adjudicator, Range(0, DISAGREE**rounds, 1), "vote"))
    elif options.policy == "ensemble":
        # Escalated pairs get a debate for the people who settle them (DREAM's history, played late).
        found += [(judge, Range(0, ESCALATED * expected_rounds, rounds), "debate") for judge in options.debaters]
    if options.policy in ("single", "ensemble", "debate+ensemble"):
        voters = options.voters[:1] if options.policy == "single" else options.voters
        vote = exactly(1)
        if options.early_stop and (size := len(options.voters)) and options.policy == "ensemble":
            likely = expected_votes(size, options.majority or usual_majority(size))
            vote = Range(asked_first(size) / size, likely / size, 1)  # The share that an early stop leaves.
        found += [(judge, vote.times(exactly(judge.generations)), "vote") for judge in voters]
    return found


def _input_tokens(prompts: Sequence[Prompt], kind: str, schema: dict[str, Any]) -> Range:
    """Return input tokens of a prompt of a kind with its schema, over the sample."""
    texts = [prompt.system + prompt.user for prompt in prompts if prompt.name.startswith(kind)]
    if not texts:
        return NOTHING
    low, likely, most = zip(*map(_estimate_tokens, texts), strict=True)
    around = len(json.dumps(schema)) + ENVELOPE
    return Range(fmean(low), fmean(likely) + around / 4, fmean(most) + around)


def _answer_form_tokens(judge: Judge, schema: dict[str, Any]) -> Range:
    """Return further input of a judge that gets the form of its answer in words."""
    return Range(*_estimate_tokens(fit_prompt(Prompt("", "", "", ""), judge, schema).system))


def _estimate_tokens(text: str) -> tuple[float, float, float]:
    """English has about four characters a token; Chinese and most other scripts about one; a byte is the bound."""
    size = len(text.encode("utf-8", "replace"))
    plain = sum(character.isascii() for character in text)
    other = len(text) - plain
    return plain / 5 + other * 0.5, plain / 4 + other, size


def _context_tokens(kind: str, rounds: int, most: int) -> Range:
    """Return further input for what was said before; an answer of `most` tokens is at most eight bytes for each."""
    if kind != "debate":
        return NOTHING if kind == "vote" else Range(0, 0, 8 * most)
    # Of a turn: the two turns of the round before, which the first round does not have.
    later = 1 - 1 / sum(DISAGREE**number for number in range(rounds))
    return Range(0, 2 * TURN_TOKENS * later, 8 * most * (rounds - 1) / rounds)


def _reasoning_tokens(judge: Judge, mix: Mix) -> Range:
    """Tokens of reasoning in an answer: as in earlier ones, else assumed where the judge thinks."""
    if not (mix.answers or requests_reasoning(judge)):
        return NOTHING
    budget = judge.parameters.get("thinking")
    assumed = min(REASONING, budget) if isinstance(budget, int) and not isinstance(budget, bool) else REASONING
    most = output_bound(judge)
    expected = min(mix.reasoning if mix.answers else assumed, most)
    return Range(expected / 4, expected, most)


def _estimate_notes(judge: Judge, mix: Mix, thought: Range) -> list[str]:
    """Say what is reckoned with, and whether it was measured."""
    told = {"judge": judge.name, "tokens": f"{thought.expected:,.0f}", "answers": f"{mix.answers:,}"}
    if not mix.answers:
        assumed = _("%(judge)s: assuming %(tokens)s reasoning tokens per answer (no earlier answers)")
        return [assumed % told] if thought.expected else []
    notes = []
    if mix.reasoning:
        notes.append(_("%(judge)s: %(tokens)s reasoning tokens per answer, from %(answers)s earlier answers") % told)
    if mix.cached or mix.written:
        told |= {"cached": f"{mix.cached:.0%}", "written": f"{mix.written:.0%}"}
        cache = _(
            "%(judge)s: %(cached)s of the input read from the prompt cache and %(written)s "
            "written to it, from %(answers)s earlier answers"
        )
        notes.append(cache % told)
    return notes


def _estimate_cost(judge: Judge, taken: Range, given: Range, thought: Range, mix: Mix, *, batch: bool) -> Range | None:
    known = price_for_judge(judge, batch=batch)
    if known is None:
        return None

    def usage(tokens_in: float, tokens_out: float, reasoning: float) -> Usage:
        return Usage(
            input=round(tokens_in),
            cached=round(tokens_in * mix.cached),
            written=round(tokens_in * mix.written),
            output=round(tokens_out),
            reasoning=round(min(reasoning, tokens_out)),
        )

    low = known.cost(usage(taken.low, given.low, thought.low))
    expected = known.cost(usage(taken.expected, given.expected, thought.expected))
    return Range(low, expected, known.most(round(taken.upper), round(given.upper)))
