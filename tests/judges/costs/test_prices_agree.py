"""Estimate, reservation and ledger say the same of cached, written, reasoning and batch tokens (issue 12, check 7)."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.models import Pair
from judges.campaigns import configurations, forecasts, token_mixes
from judges.campaigns.estimates import LIKELY, LIKELY_CHAIN, NO_MIX, CampaignSize, Mix, ballots_of, estimate_campaign
from judges.costs.judge_records import judge_of
from judges.costs.ledger import ledger_rows, sum_rows
from judges.costs.price_entries import PRICES, incomplete_price
from judges.costs.price_rows import enter_price
from judges.costs.prices import ENVELOPE, Price, envelope_tokens, input_bound, output_bound, price_for_judge
from judges.models import Attempt, Campaign, JudgeVersion, Panel
from judges.probes import canaries, canary_texts, known_orders, self_check
from judges.prompts.answering import fit_prompt
from judges.prompts.render import TURN_SCHEMA, VOTE_SCHEMA, render_ballot
from judges.records import Inputs, Judge, Prompt, Usage
from tests.engine_parts import collection_of, judge, make_judge, make_panel
from tests.modelserver.fixtures import LocalModels

PAIRS = 3
SAID = LIKELY["vote"]
"""Tokens of an answer without its reasoning: as many as an estimate expects."""
IN, CACHED, WRITTEN, THOUGHT = 2_000, 1_200, 300, 440
OUT = SAID + THOUGHT
"""Of each call. 500 tokens of its input are neither read from a cache nor written to one."""


@dataclass(frozen=True)
class Table:
    """A provider's prices, how it tells of tokens, and what a call costs, in millionths of a dollar, worked by hand."""

    provider: str
    prices: dict[str, float]
    usage: dict[str, Any]
    usual: float
    batch: float | None = None
    by_row: bool = False
    """The price stands in the price table, for names that begin so."""
    tokens: dict[str, int] = field(default_factory=dict)
    """What differs from the tokens above."""


TABLES = {
    "openai": Table(
        "openai",
        {
            "input_price": 2.0, "cached_input_price": 0.5, "written_input_price": 2.5, "output_price": 8.0,
            "batch_input_price": 1.0, "batch_cached_input_price": 0.5, "batch_output_price": 4.0,
        },
        {
            "prompt_tokens": IN, "completion_tokens": OUT, "total_tokens": IN + OUT,
            "prompt_tokens_details": {"cached_tokens": CACHED, "cache_write_tokens": WRITTEN},
            "completion_tokens_details": {"reasoning_tokens": THOUGHT},
        },
        # 500 x 2 + 1200 x 0.5 + 300 x 2.5 + 500 x 8
        usual=1000 + 600 + 750 + 4000,
        # 500 x 1 + 1200 x 0.5 + 300 x 1.25 (written has the share of other input: a half) + 500 x 4
        batch=500 + 600 + 375 + 2000,
    ),
    "anthropic": Table(
        "anthropic",
        {"input_price": 1.0, "cached_input_price": 0.1, "written_input_price": 1.25, "output_price": 5.0},
        {
            "input_tokens": IN - CACHED - WRITTEN, "cache_read_input_tokens": CACHED,
            "cache_creation_input_tokens": WRITTEN, "output_tokens": OUT,
            "output_tokens_details": {"thinking_tokens": THOUGHT},
        },
        # 500 x 1 + 1200 x 0.1 + 300 x 1.25 + 500 x 5
        usual=500 + 120 + 375 + 2500,
        batch=(500 + 120 + 375 + 2500) / 2,
    ),
    "google": Table(
        "google",
        {
            "input_price": 0.3, "cached_input_price": 0.03, "output_price": 0.6, "reasoning_price": 3.5,
            "batch_input_price": 0.15, "batch_output_price": 0.3,
        },
        {
            "promptTokenCount": IN, "cachedContentTokenCount": CACHED, "candidatesTokenCount": SAID,
            "thoughtsTokenCount": THOUGHT, "totalTokenCount": IN + OUT,
        },
        # 800 x 0.3 + 1200 x 0.03 + 60 x 0.6 + 440 x 3.5
        usual=240 + 36 + 36 + 1540,
        batch=(240 + 36 + 36 + 1540) / 2,
        tokens={"written": 0},
    ),
    "own server": Table(
        "openai-compatible",
        {"input_price": 0.27, "cached_input_price": 0.07, "output_price": 1.1, "reasoning_price": 2.2},
        {
            "prompt_tokens": IN, "completion_tokens": OUT, "total_tokens": IN + OUT,
            "prompt_tokens_details": {"cached_tokens": CACHED},
            "completion_tokens_details": {"reasoning_tokens": THOUGHT},
        },
        # 800 x 0.27 + 1200 x 0.07 + 60 x 1.1 + 440 x 2.2
        usual=216 + 84 + 66 + 968,
        by_row=True,
        tokens={"written": 0},
    ),
}  # fmt: skip
CASES = [(name, False) for name in TABLES] + [(name, True) for name, table in TABLES.items() if table.batch]


def a_prompt() -> Prompt:
    """A vote whose input an estimate takes for exactly IN tokens: four characters each, with the schema around it."""
    return Prompt("vote-answers", "", "", "x" * (4 * IN - len(json.dumps(VOTE_SCHEMA)) - ENVELOPE))


def asked(models: LocalModels, table: Table) -> Judge:
    """The table's judge, alone on its panel, on the local server that tells of these tokens."""
    make_panel(models)
    prices = {} if table.by_row else table.prices
    parameters = {"max_output_tokens": 4096}
    nothing: dict[str, float | None] = {"input_price": None, "output_price": None}
    values: dict[str, Any] = {**nothing, **prices, "provider": table.provider, "parameters": parameters}
    make_judge(models, "priced", "priced-model-1", **values)
    if table.by_row:
        enter_price(provider=table.provider, model="priced-*", prices=table.prices, source="file")
    models.script(**{"priced-model-1": {"verdict": "yes", "usage": table.usage}})
    return judge_of(JudgeVersion.objects.get(name="priced"))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("name", "batch"), CASES)
def test_estimate_and_ledger_agree_with_what_was_worked_by_hand(models: LocalModels, name: str, batch: bool) -> None:
    table = TABLES[name]
    models.batch_delay(0.0)
    collection_of(PAIRS)
    one = asked(models, table)
    found = judge("--policy", "single", "--judges", "priced", *(["--batch"] if batch else []))
    assert found.code == 0 and found.json["labelled"] == PAIRS, found.err
    by_hand = (table.batch if batch else table.usual) * PAIRS / 1e6  # type: ignore[operator]
    booked = sum_rows("", ledger_rows(Campaign.objects.get()))
    assert booked.cost == pytest.approx(by_hand, rel=1e-9) and booked.unpriced == 0
    assert found.json["cost"] == pytest.approx(by_hand, rel=1e-9)
    written = table.tokens.get("written", WRITTEN)
    counted = (
        booked.tokens_in,
        booked.tokens_cached,
        booked.tokens_written,
        booked.tokens_out,
        booked.tokens_reasoning,
    )
    assert counted == tuple(PAIRS * n for n in (IN, CACHED, written, OUT, THOUGHT))
    assert found.json["tokens"]["written"] == PAIRS * written
    assert {row.tokens_written for row in Attempt.objects.filter(role="vote")} == {written}

    mix = token_mixes.mixes_of([one])[one.id]
    assert mix == Mix(PAIRS, CACHED / IN, written / IN, THOUGHT)
    options = CampaignSize(PAIRS, "single", voters=[one], batch=batch, mixes={one.id: mix})
    told = estimate_campaign(options, [a_prompt()])
    assert told.cost is not None and told.cost.expected == pytest.approx(by_hand, rel=1e-6)
    assert told.cost.low < told.cost.expected < told.cost.upper
    assert all(words in told.line() for words in ("priced: 440 ", "3 earlier answers"))
    assert "60% of the input" in told.line() and "prompt cache" in told.line()


def test_reasoning_is_assumed_and_said_where_a_judge_that_thinks_has_answered_nothing() -> None:
    plain = Judge("p", "openai", "m", id=1, input_price=1.0, output_price=10.0, parameters={"max_output_tokens": 4096})
    thinking = Judge("t", "anthropic", "m", id=2, input_price=1.0, output_price=10.0,
                     parameters={"max_output_tokens": 4096, "thinking": True})  # fmt: skip
    options = [CampaignSize(10, "single", voters=[one]) for one in (plain, thinking)]
    without, told = (estimate_campaign(one, [a_prompt()]) for one in options)
    assert told.tokens_out.expected == without.tokens_out.expected + 10 * 1_000
    assert without.cost is not None and told.cost is not None
    assert told.cost.expected == pytest.approx(without.cost.expected + 10 * 1_000 * 10 / 1e6)
    assert without.notes == ()
    assert "t: assuming 1,000 reasoning tokens" in told.line() and "no earlier answers" in told.line()
    budgeted = Judge("b", "anthropic", "m", id=3, parameters={"max_output_tokens": 4096, "thinking": 300})
    assert "b: assuming 300" in estimate_campaign(CampaignSize(1, "single", voters=[budgeted]), [a_prompt()]).line()


def test_a_bound_counts_thoughts_that_the_output_limit_may_not_and_what_a_tool_adds() -> None:
    def bound(provider: str, **parameters: Any) -> int:
        return output_bound(Judge("j", provider, "m", id=1, parameters={"max_output_tokens": 4096, **parameters}))

    assert bound("qwen") == bound("qwen", thinking=False) == bound("anthropic", thinking=True) == 4096
    assert bound("qwen", thinking=1_000) == 5_096
    assert bound("qwen", thinking=True) == 4096 + 81_920
    tool = Judge("j", "anthropic", "m", id=1, parameters={"schema_mode": "tool"}, input_price=1.0, output_price=1.0)
    plain = replace(tool, parameters={})
    assert envelope_tokens(tool) == envelope_tokens(plain) + 512
    upper = [
        estimate_campaign(CampaignSize(1, "single", voters=[one]), [a_prompt()]).tokens_in.upper
        for one in (tool, plain)
    ]
    words = fit_prompt(a_prompt(), tool, VOTE_SCHEMA).system
    assert upper[0] == upper[1] + 512 + len(words.encode())


BALLOTS: list[dict[str, Any]] = [
    {},
    {"scale": "0-3"},
    {"scale": "0-10"},
    {"scale": "0-10", "prompt": "score-chain", "relevant_from": 6},
    {"prompt": "verdict-only"},
]
SHOWN = Inputs("What is a mapping?", ("a table",), "Mappings", "A mapping object maps hashable values." * 20)


def bounds(told: float, one: Judge, number: int) -> None:
    """`told` is what the engine would reserve for so many votes of the judge."""
    prompt, schema = render_ballot(SHOWN, one)
    reserved = input_bound(one, fit_prompt(prompt, one, schema), schema)
    assert told == pytest.approx(number * reserved)


@pytest.mark.parametrize("mode", ["json_schema", "json_object", "tool", "text"])
@pytest.mark.parametrize("parameters", BALLOTS)
def test_the_upper_bound_of_a_vote_is_what_its_own_ballot_reserves(parameters: dict[str, Any], mode: str) -> None:
    """Whatever the scale, the prompt and the schema mode, and beside a voter that is asked otherwise."""
    plain = Judge("p", "openai-compatible", "m", id=1, input_price=1.0, output_price=2.0)
    one = replace(plain, id=2, name="j", parameters={**parameters, "schema_mode": mode})
    told = estimate_campaign(CampaignSize(7, "single", voters=[one], ballots=ballots_of([one], [SHOWN])), [])
    bounds(told.tokens_in.upper, one, 7)
    filtered = CampaignSize(7, "single", voters=[plain], filters=[one], ballots=ballots_of([plain, one], [SHOWN]))
    alone = estimate_campaign(CampaignSize(7, "single", voters=[plain], ballots=ballots_of([plain], [SHOWN])), [])
    bounds(estimate_campaign(filtered, []).tokens_in.upper - alone.tokens_in.upper, one, 7)
    likely = LIKELY_CHAIN if parameters.get("prompt") == "score-chain" else LIKELY["vote"]
    assert told.tokens_out.expected == 7 * likely and told.tokens_in.low < told.tokens_in.expected


def test_a_debater_that_gets_its_form_in_words_has_them_in_its_bound() -> None:
    plain = Judge("p", "openai-compatible", "m", id=1)
    worded = replace(plain, parameters={"schema_mode": "json_object"})
    turn = Prompt("debate-answers", "", "", "x" * 100)
    upper = [
        estimate_campaign(CampaignSize(1, "debate", [one], rounds=1), [turn]).tokens_in.upper for one in (plain, worded)
    ]
    words = fit_prompt(turn, worded, TURN_SCHEMA).system
    assert upper[1] == upper[0] + len(words.encode()) and words


@pytest.mark.django_db
@pytest.mark.parametrize("parameters", BALLOTS)
def test_every_estimate_counts_a_judges_own_ballot(parameters: dict[str, Any]) -> None:
    """A campaign's, a self-check's and that of the canaries."""
    pair = Pair.objects.get(collection=collection_of(1))
    one = judge_of(JudgeVersion.objects.create(name="j", model="m", provider="openai", parameters=parameters))
    shown = forecasts.pair_inputs(pair.collection, pair.query, pair.document)
    probe = known_orders.Probe("p", ((0, shown), (1, shown)))
    wanted = configurations.build_configuration(policy="single", judges=["j"])
    upper = {
        "campaign": forecasts.estimate_pairs(wanted, 2, [shown]).tokens_in.upper,
        "self-check": self_check.forecast([one], [probe], 1).tokens_in.upper,
    }
    prompt, schema = render_ballot(shown, one)
    reserved = input_bound(one, prompt, schema)
    assert upper == dict.fromkeys(upper, pytest.approx(2 * reserved))
    asked = [render_ballot(canary.inputs, one) for canary in canary_texts.all_canaries()]
    most = sum(input_bound(one, prompt, schema) for prompt, schema in asked)
    assert canaries.forecast([one]).tokens_in.upper == pytest.approx(most)


@pytest.mark.django_db
def test_without_debates_for_people_an_estimate_counts_no_late_ones() -> None:
    names = ["a", "b", "c"]
    for name in names:
        JudgeVersion.objects.create(name=name, model="m", provider="openai")
    Panel.objects.update(is_default=False)
    Panel.objects.create(name="main", debate=names[:2], ensemble=names, majority=2, is_default=True)
    none = configurations.build_configuration(policy="ensemble", no_debate_for_people=True)
    assert forecasts.estimate_pairs(none, 10, []).calls.upper == 10 * 3
    late = configurations.build_configuration(policy="ensemble")
    assert forecasts.estimate_pairs(late, 10, []).calls.upper == 10 * (3 + 2 * late.rounds)


PRICE = st.just(0.0) | st.floats(1e-6, 100)
OPTIONAL = st.none() | PRICE
TOKENS = st.integers(0, 100_000)


@st.composite
def spending(draw: st.DrawFn) -> tuple[Price, int, int, Usage]:
    """Any price, the most tokens of a call, and what the call took of them."""
    known = Price(draw(PRICE), draw(PRICE), draw(PRICE), draw(OPTIONAL), draw(OPTIONAL))
    most_in, most_out = draw(TOKENS), draw(TOKENS)
    used = Usage(
        input=draw(st.integers(0, most_in)), output=draw(st.integers(0, most_out)),
        cached=draw(TOKENS), written=draw(TOKENS), reasoning=draw(TOKENS),
    )  # fmt: skip
    return known, most_in, most_out, used


@given(spending())
def test_no_usage_within_the_bound_costs_more_than_the_bound(given: tuple[Price, int, int, Usage]) -> None:
    known, most_in, most_out, used = given
    assert 0 <= known.cost(used) <= known.most(most_in, most_out) * (1 + 1e-9) + 1e-12


@given(st.dictionaries(st.sampled_from(PRICES), PRICE), st.booleans(), st.integers(1, 9_000), st.floats(0, 1))
def test_no_estimate_ends_above_its_upper_bound(prices, batch, thought, share):
    one = Judge("j", "openai", "m", id=1, parameters={"max_output_tokens": 4096}, **prices)
    if incomplete_price(prices) or not prices:
        return
    mix = Mix(10, share, (1 - share) / 2, thought)
    for mixed in (mix, NO_MIX):
        options = CampaignSize(7, "single", voters=[one], batch=batch, mixes={1: mixed})
        told = estimate_campaign(options, [a_prompt()]).cost
        assert told is not None and told.low <= told.expected * (1 + 1e-9) <= told.upper * (1 + 2e-9)
    known = price_for_judge(one, batch=batch)
    assert known is not None
    assert known.cost(Usage(input=10, cached=4, written=3, output=9, reasoning=5)) <= known.most(10, 9) * (1 + 1e-9)
