"""Estimates of a synthesis before it begins: each step's prompt with expected lengths."""

from collections.abc import Sequence

from benchmark.synthesis.bundles import EXAMPLES
from benchmark.synthesis.seeds import Seed
from judges.campaigns.estimates import NO_MIX, Estimate, Range, of_calls
from judges.conversations.formats import schema_of
from judges.conversations.synthesis import FORMATS
from judges.costs.token_mixes import mixes_of
from judges.prompts import synthesis as prompts
from judges.records import Judge, Prompt

ANALYTICAL = 0.7  # Expected share of analytical queries: seeds are rewritten as needs that want explaining.
ASPECTS = 2.4  # Expected aspects of an analytical query.
SAMPLED = 50  # Seeds whose length is looked at.
# Expected tokens of each answer; those of plans and passages are for each passage.
LIKELY = {"persona": 100, "classify": 8, "outline": 220, "decompose": 100}
LIKELY_EACH = {"blueprint": 130, "negatives": 160, "compose": 180}
QUERY, ANSWER, ASPECT, PART = 75, 210, 45, 25  # Expected tokens: query, answer, aspect with rationale, any other field.
SUMMARY = 60


def estimate_synthesis(seeds: Sequence[Seed], judge: Judge, writer: Judge, personas: Sequence[str]) -> Estimate:
    """Estimate the calls for these seeds. The upper value takes every query for analytical."""
    count = len(seeds)
    analytical = Range(0, ANALYTICAL * count, count)
    always = Range(count, count, count)
    passages = 1 - ANALYTICAL + ANALYTICAL * ASPECTS  # Expected positives of a query, and negatives.
    sample = _sample_prompts([one.text for one in seeds[:SAMPLED]], personas, passages)
    mixes = mixes_of([judge, writer])

    def expect(role: str, calls: Range, likely: float, asked: Judge = judge) -> Estimate:
        mix = mixes.get(asked.id, NO_MIX)
        return of_calls(asked, calls, sample[role], schema_of(FORMATS[role]), round(likely), mix)

    found = expect("persona", always, LIKELY["persona"]) + expect("classify", always, LIKELY["classify"])
    for role in ("outline", "decompose"):
        found += expect(role, analytical, LIKELY[role])
    for role in ("blueprint", "negatives"):
        found += expect(role, always, LIKELY_EACH[role] * passages)
    both = Range(2 * count, 2 * count, 2 * count)
    return found + expect("compose", both, LIKELY_EACH["compose"] * passages, writer)


def _sample_prompts(seeds: Sequence[str], personas: Sequence[str], passages: float) -> dict[str, list[Prompt]]:
    """Each step's prompts as they will be, with words in the place of what nobody knows yet."""
    query, answer = _text_of(QUERY), _text_of(ANSWER)
    aspect = {"aspect": _text_of(ASPECT / 3), "rationale": _text_of(ASPECT * 2 / 3)}
    plan = {
        "rationale": _text_of(PART),
        "passage_type": _text_of(4),
        "source": _text_of(6),
        "title": _text_of(12),
        "summary": _text_of(SUMMARY),
    }
    negative = plan | {"missing_aspect": _text_of(PART)}
    many = max(1, round(passages))
    return {
        "persona": [prompts.persona_prompt(seed, personas[:EXAMPLES]) for seed in seeds],
        "classify": [prompts.query_prompt("synth-classify", query)],
        "outline": [prompts.query_prompt("synth-outline", query)],
        "decompose": [prompts.decompose_prompt(query, answer)],
        "blueprint": [prompts.blueprint_prompt(query, answer, [aspect] * many)],
        "negatives": [prompts.negatives_prompt(query, [plan] * many)],
        "compose": [prompts.compose_prompt([plan] * many), prompts.compose_prompt([negative] * many)],
    }


def _text_of(tokens: float) -> str:
    """A text of about so many tokens."""
    return "word" * round(tokens)
