"""Recipe erank-grpo: whole queries in a round, rewards of ranks, TRL's loss as ERank has it."""

import json
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from corpus.errors import BadInput  # noqa: E402
from tests.training.trainers.scored import export_scores  # noqa: E402
from tests.training_sets import ask  # noqa: E402
from training.erank import grpo  # noqa: E402
from training.erank.grpo import (  # noqa: E402
    ErankGrpo,
    RoundCallback,
    describe_plan,
    plan_rounds,
    rate_answers,
    sampling_seed,
    truncate_rollouts,
)
from training.recipes.job_folder import read_lines  # noqa: E402
from training.recipes.table import ERANK_GRPO, recipe_options  # noqa: E402
from training.trainers.training import prepare_task  # noqa: E402

SMALL = {"batch": 6, "mini_batch": 6, "group": 2, "epochs": 2, "max_response": 8, "learning_rate": 1e-3}


def test_the_paper_s_round_is_64_whole_queries_and_an_epoch_32_of_them():
    paper = recipe_options("erank-grpo", {})
    sizes = {f"q{number}": 20 for number in range(2048)}
    rounds = plan_rounds(sizes, paper)
    assert (paper.batch, paper.mini_batch, paper.group, paper.epochs) == (1280, 320, 5, 10)
    assert (paper.clip_ratio, paper.kl_weight, paper.learning_rate) == (0.2, 0.001, 1e-6)
    assert (paper.max_prompt, paper.max_response, paper.lora_rank) == (1024, 1024, 0)
    assert rounds.per_epoch == 32 and {len(queries) for bins in rounds.shares for queries in bins} == {64}
    assert len(rounds.shares) == 10 and rounds.most == 320
    assert describe_plan(paper, rounds) == (
        "batch 1,280 / mini 320 documents, G 5, 10 epochs of 32 steps of 4 updates; clip 0.2, KL 0.001, lr 1e-06; "
        "1,024 + 1,024 tokens"
    )


@pytest.mark.parametrize("processes", [1, 2])
def test_a_query_is_whole_in_one_process_s_share_of_a_round(processes):
    sizes = {f"q{number}": 2 + number % 4 for number in range(20)}
    options = replace(ERANK_GRPO, batch=12, mini_batch=12, epochs=2.0, processes=processes)
    rounds = plan_rounds(sizes, options)
    first, places = 0, {}
    for query, size in sizes.items():
        places[query] = range(first, first + size)
        first += size
    order, room = rounds.order(places), 12 // processes
    assert len(order) % 12 == 0
    shares = [order[at : at + room] for at in range(0, len(order), room)]
    for epoch, bins in enumerate(rounds.shares):
        assert sorted(query for queries in bins for query in queries) == sorted(sizes)
        assert bins != rounds.shares[epoch - 1]
    for share, queries in zip(shares, (one for bins in rounds.shares for one in bins), strict=True):
        real = [row for row in share if row >= 0]
        assert real == [row for query in queries for row in places[query]]
        assert share[len(real) :] == [-1 - (real or [0])[-1]] * (room - len(real))


def test_a_query_that_no_share_has_room_for_is_refused():
    with pytest.raises(BadInput, match=r"'q' has 9 .* 8 .* batch"):
        plan_rounds({"q": 9, "r": 2}, replace(ERANK_GRPO, batch=8, mini_batch=8))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"reward": "map"}, "reward must be one of rr, ndcg, se"),
        ({"group": 1}, "Group must be 2 or more"),
        ({"mini_batch": 7}, "mini_batch 7 must divide batch 1280"),
        ({"clip_ratio": 0.0}, "clip_ratio must be between 0 and 1"),
        ({"grpo_reduction": "row"}, "grpo_reduction must be one of rollout, token"),
    ],
)
def test_options_that_cannot_be_trained_with_are_refused(given, words):
    with pytest.raises(BadInput, match=words):
        recipe_options("erank-grpo", given)


def test_every_round_and_process_samples_by_a_seed_of_its_own():
    assert len({sampling_seed(seed, step, rank) for seed in (0, 1) for step in range(50) for rank in range(2)}) == 200
    assert sampling_seed(3, 7, 0) == sampling_seed(3, 7, 0)


def prepared(tmp_path, **options):
    torch.set_num_threads(1)
    data = export_scores(tmp_path / "data", queries=4, dev=0)
    folder = ask(tmp_path, "erank-grpo", data, "tiny:qwen3", **SMALL | options)
    return folder, ErankGrpo(prepare_task(folder, folder.job))


def test_rollouts_are_rated_by_the_ranks_of_their_query_and_fillers_get_nothing(tmp_path):
    _, recipe = prepared(tmp_path)
    rows = list(recipe.row_ranges[recipe.rows[0].query_id])
    assert [recipe.rows[row].label for row in rows] == [1, 0, 0]
    scores = [(9, 7), (8, 3), (7, 11)]
    texts = [f"<think>a</think><answer>{score}</answer>" for pair in scores for score in pair] + ["x", "x"]
    answers = [recipe.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    prompts = [str(row) for row in rows for _ in range(2)] + [str(-1 - rows[-1])] * 2
    references = {rows[1]: 2.0}
    rated = rate_answers(recipe, [references.get(row, 5.0) for row in range(len(recipe.rows))], prompts, answers)
    assert [one.rank for one in rated] == [1, 3, 2, 5, 3, None, None, None]
    assert [one.reward for one in rated[:6]] == pytest.approx([1, 1 / 3, -1, 0.99, -1, -1])
    expected = [0.70711, -0.70711, -0.70711, 0.70711, 0, 0, 0, 0]
    assert [one.advantage for one in rated] == pytest.approx(expected, abs=1e-4)
    assert [one.advantage for one in rated[4:]] == [0.0] * 4 and [one.reward for one in rated[6:]] == [None] * 2


def test_references_are_what_the_model_said_before_it_moved_and_the_teacher_s_for_the_squared_error(tmp_path):
    """A9: t is asked once, of the model as it came; rounds and a resumed run read the stored one."""
    folder, recipe = prepared(tmp_path)
    before, path = recipe.reference_scores(folder), folder.path / "references.jsonl"
    written = path.read_text()
    with torch.no_grad():
        for weights in recipe.model.parameters():
            weights.mul_(-2)
    assert recipe.reference_scores(folder) == before and path.read_text() == written
    lines = [json.loads(line) for line in written.splitlines()]
    assert len(lines) == len(recipe.rows)
    # Where the model wrote no score the teacher's stands in.
    path.write_text("".join(json.dumps(one | {"score": None if at else 4}) + "\n" for at, one in enumerate(lines)))
    assert recipe.reference_scores(folder) == [4.0, *(float(row.score) for row in recipe.rows[1:])]
    path.unlink()
    recipe.options = replace(recipe.options, reward="se")
    assert recipe.reference_scores(folder) == [float(row.score) for row in recipe.rows] and not path.exists()


@pytest.mark.slow
def test_every_round_is_rated_against_what_the_model_said_before_the_first(tmp_path, monkeypatch):
    """A9: as the policy moves, t does not."""
    folder, recipe = prepared(tmp_path, reward="rr", epochs=5, learning_rate=3e-3)
    before, seen, rate = recipe.reference_scores(folder), [], grpo.rate_answers
    weights = [value.detach().clone() for value in recipe.model.parameters()]

    def watch(recipe, references, prompts, answers):
        seen.append((list(references), (folder.path / "references.jsonl").read_text()))
        return rate(recipe, references, prompts, answers)

    monkeypatch.setattr(grpo, "rate_answers", watch)
    recipe.train(folder, lambda: False)
    assert len(seen) >= 10 and all(one == seen[0] for one in seen) and seen[0][0] == before
    assert any(not torch.equal(old, new) for old, new in zip(weights, recipe.model.parameters(), strict=True))


def trainer_of(tmp_path, **options):
    folder, recipe = prepared(tmp_path, **options)
    callback = RoundCallback(folder, recipe.task, lambda: False, recipe.dev_margins)
    return recipe, recipe.make_trainer(folder, callback, [5.0] * len(recipe.rows))


@pytest.mark.slow
def test_token_terms_of_the_loss_by_hand(tmp_path):
    _, trainer = trainer_of(tmp_path, kl_weight=1.0)
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()

    def loss(*, own, old, reference, advantage):
        one = torch.ones(1, 1)
        trainer._get_per_token_logps_and_entropies = lambda *given, **named: (own * one, one, None)
        inputs = {name: torch.ones(1, 1, dtype=torch.long) for name in ("prompt_ids", "prompt_mask")}
        inputs |= {name: torch.ones(1, 1, dtype=torch.long) for name in ("completion_ids", "completion_mask")}
        inputs |= {"old_per_token_logps": old * one, "ref_per_token_logps": reference * one}
        return float(trainer._compute_loss(trainer.model, inputs | {"advantages": torch.tensor([advantage])}))

    for own, reference, kl in ((-1.0, -1.2, 0.018731), (-2.0, -1.0, 0.718282), (-1.0, -1.0, 0.0)):
        assert loss(own=own, old=own, reference=reference, advantage=0.0) == pytest.approx(kl, abs=1e-6)
    for ratio, advantage, term in ((1.5, 1.0, 1.2), (1.5, -1.0, -1.5), (0.5, 1.0, 0.5), (0.5, -1.0, -0.8)):
        own = float(torch.tensor(ratio).log())
        assert -loss(own=own, old=0.0, reference=own, advantage=advantage) == pytest.approx(term, abs=1e-6)


@pytest.mark.slow
def test_at_the_first_step_the_ratio_is_one_and_the_gradient_is_the_policy_gradient(tmp_path):
    _, trainer = trainer_of(tmp_path, kl_weight=0.0, group=4, token_budget=12_288)
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    prompts = [{"prompt": str(row)} for row in range(6) for _ in range(4)]
    found = trainer._generate_and_score_completions(prompts)
    found["advantages"] = torch.linspace(-1, 1, len(prompts))
    loss = trainer._compute_loss(trainer.model, found)
    loss.backward()
    own = {name: value.grad.clone() for name, value in trainer.model.named_parameters()}
    trainer.model.zero_grad()
    assert float(trainer._metrics["train"]["clip_ratio/region_mean"][-1]) == 0.0
    ids = torch.cat([found["prompt_ids"], found["completion_ids"]], dim=1)
    mask = torch.cat([found["prompt_mask"], found["completion_mask"]], dim=1)
    width = found["completion_ids"].size(1)
    logits = trainer.model(input_ids=ids, attention_mask=mask).logits[:, -width - 1 : -1].float().log_softmax(-1)
    logps = logits.gather(-1, found["completion_ids"].unsqueeze(-1)).squeeze(-1)
    held = found["completion_mask"]
    policy = ((logps * held).sum(-1) / held.sum(-1) * found["advantages"]).mean()
    (-policy).backward()
    # Every ratio is exactly 1.
    assert float(loss.detach()) == pytest.approx(-float(found["advantages"].mean()), abs=1e-6)
    for name, value in trainer.model.named_parameters():
        assert torch.allclose(own[name], value.grad, atol=1e-6), name


def test_rollouts_after_the_checkpoint_are_forgotten(tmp_path):
    path = tmp_path / "rollouts.jsonl"
    path.write_text("".join(json.dumps({"step": step}) + "\n" for step in (1, 3, 5)))
    truncate_rollouts(path, 4)
    assert [line["step"] for line in read_lines(path)] == [1, 3]
