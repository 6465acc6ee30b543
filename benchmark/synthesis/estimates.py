"""Cost estimates of a synthesis, from the prompts of all steps with texts of the expected lengths."""

from collections.abc import Sequence

from benchmark.synthesis.bundles import EXAMPLES
from benchmark.synthesis.seeds import Seed
from judges.campaigns.estimates import NO_MIX, Estimate, Range, of_calls
from judges.campaigns.token_mixes import mixes_of
from judges.prompts import synthesis as prompts
from judges.prompts.answers.formats import schema_of
from judges.prompts.answers.synthesis import FORMATS
from judges.records import Judge, Prompt

ANALYTICAL = 0.7  # Expected share of analytical queries: seeds are rewritten as needs for explanation.
ASPECTS = 2.4  # Expected aspects of an analytical query.
SAMPLED = 50  # Seeds whose length is measured.
# Expected tokens of each answer, and of plans and texts for each passage.
LIKELY = {"persona": 100, "classify": 8, "outline": 220, "decompose": 100}
LIKELY_EACH = {"blueprint": 130, "negatives": 160, "compose": 180}
QUERY, ANSWER, ASPECT, PART = 75, 210, 45, 25  # Expected tokens: query, answer, aspect with rationale, any other field.
SUMMARY = 60


def estimate_synthesis(seeds: Sequence[Seed], judge: Judge, writer: Judge, personas: Sequence[str]) -> Estimate:
    """Estimate the calls for these seeds. The upper value assumes that every query is analytical."""
    count = len(seeds)
    analytical = Range(0, ANALYTICAL * count, count)
    every_query = Range(count, count, count)
    passages = 1 - ANALYTICAL + ANALYTICAL * ASPECTS  # Expected positives of a query; as many negatives.
    sample = _sample_prompts([seed.text for seed in seeds[:SAMPLED]], personas, passages)
    mixes = mixes_of([judge, writer])

    def expect(role: str, calls: Range, likely: float, model: Judge = judge) -> Estimate:
        mix = mixes.get(model.id, NO_MIX)
        return of_calls(model, calls, sample[role], schema_of(FORMATS[role]), round(likely), mix)

    estimate = expect("persona", every_query, LIKELY["persona"]) + expect("classify", every_query, LIKELY["classify"])
    for role in ("outline", "decompose"):
        estimate += expect(role, analytical, LIKELY[role])
    for role in ("blueprint", "negatives"):
        estimate += expect(role, every_query, LIKELY_EACH[role] * passages)
    # Positives and negatives are written in separate calls.
    compositions = Range(2 * count, 2 * count, 2 * count)
    return estimate + expect("compose", compositions, LIKELY_EACH["compose"] * passages, writer)


def _sample_prompts(seeds: Sequence[str], personas: Sequence[str], passages: float) -> dict[str, list[Prompt]]:
    """Return prompts of each step, with filler text of the expected length for what the models will write."""
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
    count = max(1, round(passages))
    return {
        "persona": [prompts.persona_prompt(seed, personas[:EXAMPLES]) for seed in seeds],
        "classify": [prompts.query_prompt("synth-classify", query)],
        "outline": [prompts.query_prompt("synth-outline", query)],
        "decompose": [prompts.decompose_prompt(query, answer)],
        "blueprint": [prompts.blueprint_prompt(query, answer, [aspect] * count)],
        "negatives": [prompts.negatives_prompt(query, [plan] * count)],
        "compose": [prompts.compose_prompt([plan] * count), prompts.compose_prompt([negative] * count)],
    }


def _text_of(tokens: float) -> str:
    """Return a text of about so many tokens."""
    return "word" * round(tokens)
