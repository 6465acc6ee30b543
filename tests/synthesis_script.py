"""What the scripted server answers to the steps of a synthesis: an analytical query with two aspects."""

import json
from typing import Any

PERSONA = {
    "persona": "A foreman of a steel mill who has to explain cracks in a slab to the night shift",
    "question": "Why does a plate crack when it is cooled too quickly?",
    "background": "Three slabs cracked this week. The furnace log shows nothing odd. I was told to cool more slowly.",
}
ANSWER = (
    "A plate that is cooled from outside shrinks there first, while its core is still hot. The cold skin is held by "
    "the core and comes under tension. Where that tension exceeds the strength of the steel, which is brittle at this "
    "temperature, a crack opens; thick plates and high rates of cooling make it worse."
)
ASPECTS = [
    {
        "aspect": "Uneven shrinkage puts the skin under tension",
        "rationale": "It carries the first half: where the stress comes from.",
    },
    {
        "aspect": "Steel is brittle in part of the range",
        "rationale": "It carries the second half: why the stress opens a crack.",
    },
]


def plan(title: str, words: str, **more: str) -> dict[str, str]:
    summary = f"The text explains {words} with an example. It gives the numbers for it. It names its limits."
    return {
        "rationale": f"It supplies {words}.",
        "passage_type": "manual",
        "source": "a steelmaker's handbook",
        "title": title,
        "summary": summary,
        **more,
    }


POSITIVES = [
    plan("Stress in a cooling slab", "how a cold skin is stretched by a hot core"),
    plan("Brittle ranges of steel", "at which temperatures steel loses its toughness"),
]
NEGATIVES = [
    plan(
        "How slabs are cooled",
        "which nozzles cool a slab",
        failure="It describes equipment and explains no crack.",
        missing_aspect="why the skin is stretched",
    ),
    plan(
        "Steel grades and their uses",
        "which grades are rolled into plates",
        failure="It lists grades without their behaviour when cooled.",
        missing_aspect="at which temperature steel is brittle",
    ),
]
TEXTS = [
    "While water cools the skin of a slab, the core stays hot. The skin shrinks against it and is stretched.",
    "Between 700 and 900 degrees many steels lose their toughness. A slab that is bent there cracks along the grains.",
]
OTHERS = [
    "Flat nozzles stand in rows along the strand. Each throws a fan of water, and valves set the amount of every row.",
    "Grade A goes into ships, grade B into bridges. Both are rolled in the same mill and leave it with a stamp.",
]


def script(**changes: Any) -> list[dict[str, Any]]:
    """The behaviours of a judge, first match first; `changes`: another answer, or another behaviour, for a step."""
    answers: dict[str, tuple[str, Any]] = {
        "persona": ("Write the persona", PERSONA),
        "classify": ("Of which type", {"type": "analytical"}),
        "outline": ("Write the answer to this query", {"answer": ANSWER}),
        "decompose": ("Take this answer apart", {"aspects": ASPECTS}),
        "negatives": ("do not help with this query", {"blueprints": NEGATIVES}),
        "blueprint": ("Plan the passages for this query", {"blueprints": POSITIVES}),
        "others": ("must not provide", {"passages": OTHERS}),
        "compose": ("Write the passages of these plans", {"passages": TEXTS}),
    }
    return [
        {"contains": contains, "text": json.dumps(changes.get(step, said))}
        if not isinstance(changes.get(step), str)
        else {"contains": contains, "text": changes[step]}
        for step, (contains, said) in answers.items()
    ]


FACTUAL = {
    "classify": {"type": "factual"},
    "blueprint": {"blueprints": POSITIVES[:1]},
    "negatives": {"blueprints": NEGATIVES[:1]},
    "compose": {"passages": TEXTS[:1]},
    "others": {"passages": OTHERS[:1]},
}


FILLER = (
    "The mill keeps a record of every slab, with the time at each zone and the temperature of the skin. "
    "Operators compare the record with the drawing before the next order is rolled, because a small change of the "
    "water has a large effect. Where the two differ, the slab is set aside and looked at by somebody else. "
    "Experience shows that most of the damage is done in the first minutes, long before anybody can see it. "
    "The figures differ from mill to mill, and a table of one plant is only a hint for another. "
)
RATIONALE = "It gives the mechanism that the first half of the answer stands on, with the order of magnitude."
SUMMARY = (
    "During cooling the skin of a slab is colder than its core by up to 300 degrees and wants to shrink. "
    "The core holds it, so the skin is stretched by as much as 0.4 per cent within the first two minutes. "
    "The handbook gives the stretch for five thicknesses and three amounts of water, measured at two plants."
)


MORE_ASPECTS = [
    *ASPECTS,
    {"aspect": "Thickness sets the size of the stress", "rationale": "It carries the last clause."},
]
MORE_POSITIVES = [*POSITIVES, plan("Thick plates and their cores", "how thickness delays the core")]
MORE_NEGATIVES = [
    *NEGATIVES,
    plan(
        "Prices of thick plates", "what plates cost", failure="It lists prices.", missing_aspect="what thickness does"
    ),
]
MORE_TEXTS = [*TEXTS, "A core of 200 millimetres keeps its heat four times as long as one of 100 millimetres."]
MORE_OTHERS = [*OTHERS, "Thick plates cost more per tonne, since fewer mills roll them and orders are small."]


def numbered_script(number: int, aspects: int) -> list[dict[str, Any]]:
    """Answers to the steps of one seed of many, `slab number NN`, each as long as models write them.

    `aspects`: 2 or 3; 0 for a factual query.
    """
    mark, count = f"number {number:02d}", aspects or 1
    summary = {"summary": SUMMARY, "rationale": RATIONALE}
    plans = {
        name: {"blueprints": [one | {"title": f"{one['title']}, {mark}"} | summary for one in some[:count]]}
        for name, some in (("blueprint", MORE_POSITIVES), ("negatives", MORE_NEGATIVES))
    }
    changes = {
        "persona": PERSONA | {"question": f"Why does slab {mark} crack when it is cooled too quickly?"},
        "classify": {"type": "analytical" if aspects else "factual"},
        "outline": {"answer": f"{ANSWER} {FILLER}"},
        "decompose": {"aspects": MORE_ASPECTS[:count]},
        "compose": {"passages": [f"{text} {mark} {FILLER}" for text in MORE_TEXTS[:count]]},
        "others": {"passages": [f"{FILLER} {mark} {text}" for text in MORE_OTHERS[:count]]},
    }
    return [one | {"also": mark} for one in script(**plans, **changes)]
