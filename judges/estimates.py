"""What a campaign will cost, before it begins. Pure: `judge` prints it, the page shows it before the start.

What is assumed stands in the constants; what a campaign really costs stands in its attempts.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from django.utils.translation import gettext as _

from judges.prices import ENVELOPE, in_batch, price
from judges.prompts import TURN_SCHEMA, VOTE_SCHEMA, writing
from judges.records import Judge, Prompt, Usage

DISAGREE = 0.3
"""Expected share of debates that a round leaves without agreement."""
ESCALATED = 0.15
"""Expected share of pairs that the ensemble alone cannot settle, and whose debate is played for people."""
REWRITTEN = 0.3
"""Expected share of contributions and evidence that fail their checks and are written once more."""
TURN_TOKENS = 160
LIKELY = {"debate": TURN_TOKENS, "vote": 60, "write": 250, "entity": 40, "measure": 120}
"""Expected tokens of an answer without reasoning that the model keeps to itself, by kind of prompt."""
SCHEMAS = {
    "debate": TURN_SCHEMA,
    "vote": VOTE_SCHEMA,
    "write": writing.WRITE_SCHEMA,
    "entity": writing.ENTITY_SCHEMA,
    "measure": writing.MEASURE_SCHEMA,
}
EARLY = 3.4
"""Expected votes of a pair when the panel stops at three equal ones."""


@dataclass(frozen=True, slots=True)
class CampaignOptions:
    """What decides how many calls a campaign makes: pairs without an outcome, and its policy with its judges."""

    pairs: int
    policy: str
    """debate, ensemble, debate+ensemble, single, or evidence: the first voter writes, the second one measures."""
    debaters: Sequence[Judge] = ()
    voters: Sequence[Judge] = ()
    """Under `single` the first one judges."""
    rounds: int = 2
    early_stop: bool = False
    filters: Sequence[Judge] = ()
    adjudicator: Judge | None = None
    play_on: bool = False
    batch: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """Low, expected and upper value."""

    low: float
    expected: float
    upper: float

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.expected + other.expected, self.upper + other.upper)

    def times(self, other: "Range") -> "Range":
        """Low with low, upper with upper."""
        return Range(self.low * other.low, self.expected * other.expected, self.upper * other.upper)


NOTHING = Range(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Calls, tokens and USD of a campaign. `cost` is None when a judge has no known price: `unknown` names it."""

    calls: Range
    tokens_in: Range
    tokens_out: Range
    cost: Range | None
    unknown: tuple[str, ...] = ()
    known: Range = NOTHING
    """USD of the judges whose price is known: what it costs at least where others have none."""

    @property
    def free(self) -> bool:
        """Nothing can be paid for: offline judges only."""
        return self.cost is not None and self.cost.upper == 0

    def line(self) -> str:
        """One line for people."""
        calls = _("about %(expected)s calls (at most %(upper)s without retries)") % {
            "expected": f"{self.calls.expected:,.0f}",
            "upper": f"{self.calls.upper:,.0f}",
        }
        return _("%(calls)s, %(cost)s") % {"calls": calls, "cost": self._cost()}

    def _cost(self) -> str:
        if self.cost is None:
            names = ", ".join(self.unknown)
            if not self.known.expected:
                return _("unknown price of %(names)s") % {"names": names}
            least = {"least": f"{self.known.expected:,.2f}", "names": names}
            return _("at least about $%(least)s, and the unknown price of %(names)s") % least
        if self.free:
            return _("no cost")
        cost = {name: f"{getattr(self.cost, name):,.2f}" for name in ("expected", "low", "upper")}
        return _("about $%(expected)s ($%(low)s to $%(upper)s)") % cost


def estimate(campaign_options: CampaignOptions, sample_prompts: Sequence[Prompt]) -> Estimate:
    """Calls and cost of a campaign from some of its rendered prompts.

    `sample_prompts`: for a random sample of the pairs (50 are plenty) the prompt of round 1 and of the vote, or
    those of writing and measuring, whichever the policy asks; they are told apart by their names. Only their mean
    length is used. `upper` takes every round, one token for each byte, and answers up to the judges' limit; retries
    and repairs come on top of it.
    """
    options = campaign_options
    inputs = {kind: _input_tokens(sample_prompts, kind, schema) for kind, schema in SCHEMAS.items()}
    calls, tokens_in, tokens_out, cost = NOTHING, NOTHING, NOTHING, NOTHING
    unknown: dict[str, None] = {}
    for judge, per_pair, kind in _calls(options):
        number = per_pair.times(Range(options.pairs, options.pairs, options.pairs))
        most = judge.max_output_tokens
        taken = number.times(inputs[kind] + _told(kind, options.rounds, most))
        likely = min(LIKELY[kind], most)
        given = number.times(Range(likely / 4, likely, most))
        calls, tokens_in, tokens_out = calls + number, tokens_in + taken, tokens_out + given
        money = _cost(judge, taken, given, batch=options.batch)
        if money is None:
            unknown[f"{judge.name} ({judge.model})"] = None
        else:
            cost = cost + money
    return Estimate(calls, tokens_in, tokens_out, None if unknown else cost, tuple(unknown), cost)


def of_calls(judge: Judge, calls: int, sample: Sequence[Prompt], schema: dict[str, Any], likely: int) -> Estimate:
    """So many calls of one judge that all look like `sample`; an answer has `likely` tokens, 0: it writes none."""
    number = Range(calls, calls, calls)
    taken = number.times(_input_tokens(sample, "", schema))
    most = judge.max_output_tokens if likely else 0
    given = number.times(Range(min(likely, most) / 4, min(likely, most), most))
    money = _cost(judge, taken, given, batch=False)
    return Estimate(number, taken, given, money, () if money else (f"{judge.name} ({judge.model})",))


def _calls(options: CampaignOptions) -> list[tuple[Judge, Range, str]]:
    """(judge, calls for one pair, kind of prompt)."""
    if options.policy == "evidence":
        kinds = (("write",), ("entity", "measure"))
        tries = Range(1, 1 + REWRITTEN, 2)
        return [(judge, tries, kind) for judge, asked in zip(options.voters, kinds, strict=False) for kind in asked]
    rounds = options.rounds
    expected_rounds = rounds if options.play_on else sum(DISAGREE**number for number in range(rounds))
    found: list[tuple[Judge, Range, str]] = [(judge, Range(1, 1, 1), "vote") for judge in options.filters]
    if options.policy in ("debate", "debate+ensemble"):
        least = rounds if options.play_on else 1
        found += [(judge, Range(least, expected_rounds, rounds), "debate") for judge in options.debaters]
        if options.adjudicator:
            found.append((options.adjudicator, Range(0, DISAGREE**rounds, 1), "vote"))
    elif options.policy == "ensemble":
        # Escalated pairs get a debate for the people who settle them (DREAM's history, played late).
        found += [(judge, Range(0, ESCALATED * expected_rounds, rounds), "debate") for judge in options.debaters]
    if options.policy == "single":
        found += [(judge, Range(1, 1, 1), "vote") for judge in options.voters[:1]]
    elif options.policy in ("ensemble", "debate+ensemble"):
        size = len(options.voters)
        vote = Range(min(3, size) / size, min(EARLY, size) / size, 1) if options.early_stop and size else Range(1, 1, 1)
        many = [Range(judge.generations, judge.generations, judge.generations) for judge in options.voters]
        found += [(judge, vote.times(number), "vote") for judge, number in zip(options.voters, many, strict=True)]
    return found


def _input_tokens(prompts: Sequence[Prompt], kind: str, schema: dict[str, Any]) -> Range:
    """Input tokens of a prompt of a kind with its schema, over the sample."""
    texts = [prompt.system + prompt.user for prompt in prompts if prompt.name.startswith(kind)]
    if not texts:
        return NOTHING
    low, likely, most = zip(*map(_tokens, texts), strict=True)
    around = len(json.dumps(schema)) + ENVELOPE
    return Range(fmean(low), fmean(likely) + around / 4, fmean(most) + around)


def _tokens(text: str) -> tuple[float, float, float]:
    """English has about four characters a token; Chinese and most other scripts about one; a byte is the bound."""
    size = len(text.encode("utf-8", "replace"))
    plain = sum(character.isascii() for character in text)
    other = len(text) - plain
    return plain / 5 + other * 0.5, plain / 4 + other, size


def _told(kind: str, rounds: int, most: int) -> Range:
    """Further input for what was said before; an answer of `most` tokens is at most eight bytes for each."""
    if kind == "debate":
        return _history(rounds, most)
    return NOTHING if kind == "vote" else Range(0, 0, 8 * most)


def _history(rounds: int, most: int) -> Range:
    """Further input of a turn for the two turns of the round before; the first round has none."""
    later = 1 - 1 / sum(DISAGREE**number for number in range(rounds))
    return Range(0, 2 * TURN_TOKENS * later, 8 * most * (rounds - 1) / rounds)


def _cost(judge: Judge, taken: Range, given: Range, *, batch: bool) -> Range | None:
    known = in_batch(judge, price(judge)) if batch else price(judge)
    if known is None:
        return None
    pairs = ((taken.low, given.low), (taken.expected, given.expected), (taken.upper, given.upper))
    return Range(
        *(known.cost(Usage(input=round(tokens_in), output=round(tokens_out))) for tokens_in, tokens_out in pairs)
    )
