"""The recipes' defaults: the papers' figures, one by one, and options that do not exist."""

from dataclasses import asdict, replace

import pytest

from corpus.errors import BadInput
from training.recipes.rendering import PROMPTS
from training.recipes.table import FAR_RATE, TABLE, find_far_rate, recipe_options

PAPER = {
    "lora_rank": 64, "lora_alpha": 128, "lora_dropout": 0.0, "learning_rate": 1e-5, "weight_decay": 0.01,
    "warmup_steps": 100, "schedule": "cosine", "max_length": 10_240, "batch": 8, "epochs": 2.0,
    "point_weight": 20.0, "sft_weight": 1.0, "sft_reduction": "sum",
}  # fmt: skip
FIGURES = {
    ("prism", "paper"): PAPER,
    ("prism", "paper-0.8b"): PAPER | {"epochs": 3.0},
    ("prism", "paper-9b"): PAPER | {"lora_rank": 32, "lora_alpha": 64},
    ("prism", "released"): PAPER | {
        "point_weight": 10.0, "warmup_steps": 1000, "batch": 16, "max_length": 8192, "sft_reduction": "mean",
    },
    ("erank-sft", "paper"): {
        "lora_rank": 32, "lora_alpha": 64, "learning_rate": 1e-4, "epochs": 1.0, "schedule": "cosine",
        "warmup_ratio": 0.05, "max_length": 2048, "batch": 128,
    },
    ("rtriever", "paper"): {  # B12
        "lora_rank": 16, "lora_alpha": 32, "lora_targets": "all-linear", "learning_rate": 1e-5, "warmup_ratio": 0.05,
        "epochs": 5.0, "batch": 768, "max_length": 2048, "temperature": 0.02, "mask_false_negatives": False,
        "hard_negatives": True,
    },
    ("ablation", "paper"): {  # appendix B
        "negatives": 7, "temperature": 2.0, "sft_weight": 0.0, "point_weight": 1.0, "prompt": "qwen3-reranker",
    },
}  # fmt: skip


@pytest.mark.parametrize(("recipe", "preset"), FIGURES)
def test_presets_have_the_papers_figures(recipe, preset):
    chosen, figures = asdict(recipe_options(recipe, {"preset": preset})), FIGURES[recipe, preset]
    assert {name: chosen[name] for name in figures} == figures


@pytest.mark.parametrize("recipe", TABLE)
def test_every_preset_is_itself_allowed(recipe):
    assert all(recipe_options(recipe, {"preset": preset}).preset == preset for preset in TABLE[recipe])


def test_what_is_given_wins_and_nothing_else_changes():
    assert recipe_options("prism", {"max_steps": 5, "epochs": None}) == recipe_options("prism", {"max_steps": 5})
    assert recipe_options("cross-encoder", {"loss": "lambda"}).loss == "lambda"


@pytest.mark.parametrize(
    ("recipe", "given", "words"),
    [
        ("erank", {}, "No recipe named 'erank'; there are prism, prism-extend, ablation"),
        ("prism", {"preset": "big"}, "has no preset 'big'; there are paper"),
        ("prism", {"lr": 1}, "No option named 'lr'"),
        ("prism", {"loss": "bce"}, "loss must be one of hybrid, not 'bce'"),
        ("prism", {"batch": 0}, "batch must be 1 or more"),
        ("prism", {"learning_rate": float("nan")}, "learning_rate and epochs must be above 0"),
        ("erank-sft", {"packing": True}, "Recipe erank-sft packs no rows: leave packing off"),
        ("prism", {"token_budget": 10}, "token_budget 10 is smaller than max_length 10240"),
        ("rtriever", {"temperature": 0.0}, "Temperature .* 0"),
        ("ablation", {"temperature": 0.0}, "Negatives .* temperature"),
        ("prism", {"sft_share": 1.5}, "sft_share .* 0 to 1"),
        ("cross-encoder", {"sft_share": 0.5}, "'sft_share'"),
        ("prism-extend", {"teacher": "votes"}, "Teacher .*'votes'"),
        ("erank-grpo", {"reward": "map"}, "reward must be one of rr, ndcg, se"),
        ("erank-grpo", {"group": 1}, "Group must be 2 or more"),
        ("erank-grpo", {"mini_batch": 7}, "mini_batch 7 must divide batch 1280"),
        ("erank-grpo", {"clip_ratio": 0.0}, "clip_ratio must be between 0 and 1"),
        ("erank-grpo", {"grpo_reduction": "row"}, "grpo_reduction must be one of rollout, token"),
    ],
)
def test_what_does_not_exist_is_refused(recipe, given, words):
    with pytest.raises(BadInput, match=words):
        recipe_options(recipe, given)


@pytest.mark.parametrize(
    ("recipe", "rates"),
    [("cross-encoder", {"paper": 2e-5}), ("rtriever", {"small": 3e-5, "paper": 1e-5, "safe": 1e-5})],
)
def test_the_defaults_keep_what_a_good_base_knows(recipe, rates):
    """At 2e-4 an embedder that ranked well lost to itself; 3e-5 with warm-up and decay gained."""
    presets = {name: preset for name, preset in TABLE[recipe].items() if name != "tiny"}
    assert {name: preset.learning_rate for name, preset in presets.items()} == rates and max(rates.values()) <= 3e-5
    assert all(preset.schedule == "cosine" for preset in presets.values())
    assert all(preset.warmup_ratio or preset.warmup_steps for preset in presets.values())


def test_recipes_begin_with_the_papers_preset_and_a_retriever_with_small_batches():
    """With the paper's batch of 768 a few hundred queries make one step an epoch; assumed negatives did harm."""
    assert {recipe_options(recipe, {}).preset for recipe in TABLE if recipe != "rtriever"} == {"paper"}
    small = recipe_options("rtriever", {})
    assert (small.preset, small.batch, small.hard_negatives) == ("small", 16, False)


def test_a_learning_rate_far_above_the_presets_is_warned_of():
    far = find_far_rate("rtriever", recipe_options("rtriever", {"learning_rate": 2e-4}))
    assert far == {"rate": "0.0002", "usual": "3e-05", "preset": "small", "times": "6.67"} and FAR_RATE % far
    assert find_far_rate("rtriever", recipe_options("rtriever", {"learning_rate": 3e-5})) is None
    assert find_far_rate("cross-encoder", recipe_options("cross-encoder", {"learning_rate": 1e-4})) is not None
    for recipe, presets in TABLE.items():
        assert all(find_far_rate(recipe, preset) is None for preset in presets.values())


def test_the_papers_template_stands_beside_the_cards():
    """Prism A.1, to the letter; ERank with LLaMA-Factory's reduction is a preset."""
    given = PROMPTS["prism-paper"].render("Q", "D", "another instruction")
    assert given == (
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
        "provided.<|im_end|>\n<|im_start|>user\n<Instruct>: Given a query and a document, judge whether the document "
        'is relevant to the query. Answer "yes" or "no", then provide in XML:\n1. <contribution>: what the document '
        "contributes to the query.\n2. <evidence>: a self-contained rewrite of relevant content.\n<Query>: Q\n"
        "<Document>: D<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )
    paper, other = TABLE["erank-sft"]["paper"], TABLE["erank-sft"]["token-mean"]
    assert (paper.sft_reduction, other.sft_reduction) == ("sum", "mean")
    assert replace(other, preset="paper", sft_reduction="sum") == paper
