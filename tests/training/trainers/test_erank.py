"""Recipes erank-sft and erank-grpo: data, prompt, tokens, losses by hand, rounds of whole queries, rewards of ranks."""

import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from corpus.errors import BadInput
from corpus.rubric import HELPFULNESS
from judges.domain.chains import render_answer
from tests.training.trainers.learnable import CHAINS, export_scores
from tests.training_sets import ask
from training.comparisons.tabling import TrainedModel, group_models
from training.erank import grpo
from training.erank.grpo import (
    ErankGrpo,
    RoundCallback,
    describe_plan,
    plan_rounds,
    rate_answers,
    sampling_seed,
    truncate_rollouts,
)
from training.erank.sft import ErankSft, encode_chain, split_step
from training.jobs.held_out import read_held_out
from training.published.base import load_tokenizer
from training.published.causal import load_causal
from training.published.chains import ChainPrompt, measure_answers, score_positions
from training.published.tiny_bases import tiny_base
from training.published.tokens import EncodedRow
from training.recipes import erank_prompt
from training.recipes.erank_data import ScoredExample, group_by_query, read_erank_set
from training.recipes.job_folder import read_lines
from training.recipes.table import ERANK_GRPO, recipe_options
from training.trainers.training import prepare_task, train_model

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tiny_base(tmp_path_factory.mktemp("base") / "tiny")


@pytest.fixture(scope="module")
def tokenizer(base):
    return load_tokenizer(base)


LONG = ScoredExample("what is it", "word " * 900, "A rule.", 1, 0.9, "", "q", "d", score=9, chain="It says so.")


def test_a_set_is_read_with_its_scores_and_chains_and_queries_that_can_be_ranked_are_ranked(tmp_path):
    found = read_erank_set(export_scores(tmp_path / "set", queries=2, dev=1))
    first = found.train[0]
    assert isinstance(first, ScoredExample)
    assert (first.label, first.teacher, first.score, first.chain) == (1, 0.9, 9, CHAINS[1])
    assert (len(found.train), len(found.dev), found.teacher, len(found.sha256)) == (6, 3, "scores", 64)
    labels = (("a", 1), ("a", 0), ("b", 0), ("b", 0), ("c", 1))
    rows = [replace(LONG, query_id=query, label=label) for query, label in labels]
    whole, left = group_by_query(rows)
    assert list(whole) == ["a"] and left == 2


def change_row(folder: Path, number: int, **change: Any) -> Path:
    """Write a row of train anew; `...`: without that field."""
    rows = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
    rows[number] = {key: value for key, value in (rows[number] | change).items() if value is not ...}
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "manifest.json").write_text('{"format": "erank-sft"}')
    return folder


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": 11}, "score 11 is not a whole number from 0 to 10"),
        ({"score": 7.5}, "score 7.5 is not"),
        ({"score": None}, "score None is not"),
        ({"score": True}, "score True is not"),
        ({"chain": ...}, "no field 'chain'"),
    ],
)
def test_a_row_that_is_none_is_refused_with_its_line(tmp_path, change, words):
    with pytest.raises(BadInput, match=f"line 3: .*{words}"):
        read_erank_set(change_row(export_scores(tmp_path / "set", queries=2, dev=0), 2, **change))


def test_the_prompt_ends_before_the_chain_and_the_document_gives_way_never_the_answer(tokenizer):
    text = erank_prompt.render_chain_prompt("why", "because", "A rule of its own.")
    assert text.count("A rule of its own.") == 1 and HELPFULNESS.statement not in text
    assert text.count(" 0: the document") == text.count(" 10: the document") == 1
    assert text.endswith("because<|im_end|>\n<|im_start|>assistant\n")
    assert erank_prompt.render_chain_prompt("why", "because").count(HELPFULNESS.statement) == 1
    assert len(erank_prompt.chain_prompt_sha256()) == 64
    whole = encode_chain(LONG, tokenizer, 4000)
    cut = encode_chain(LONG, tokenizer, 300)
    assert whole.whole == len(whole.ids) and cut.whole > len(cut.ids) == 300
    for row in (whole, cut):
        text = tokenizer.decode(row.ids[row.start :])
        assert text == render_answer("It says so.", 9) + "<|im_end|>"
        assert tokenizer.decode(row.ids[: row.start]).endswith("<|im_start|>assistant\n")
    assert encode_chain(replace(LONG, chain="word " * 400), tokenizer, 300) is None


@pytest.mark.parametrize(("score", "text"), [(7, "7"), (10, "10"), (0, "0")])
def test_the_probability_is_the_product_over_the_score_s_tokens(base, tokenizer, score, text):
    model = load_causal(base)
    (prompt,) = ChainPrompt(400, 64).encode(tokenizer, [LONG])
    answer = tokenizer(render_answer("It says so.", score) + "<|im_end|>", add_special_tokens=False)["input_ids"]
    (found,) = measure_answers(model, tokenizer, [prompt], [answer])
    places = score_positions(tokenizer, answer, render_answer("It says so.", score), score)
    assert tokenizer.decode([answer[place] for place in places]) == text
    with torch.no_grad():
        shares = model(input_ids=torch.tensor([[*prompt.ids, *answer]])).logits[0].float().log_softmax(-1)
    expected = sum(shares[len(prompt.ids) + place - 1, answer[place]] for place in places).exp()
    assert found.probability == pytest.approx(float(expected), rel=1e-5)
    assert (found.score, found.ranking_score) == (score, score * found.probability)


def test_a_malformed_answer_ranks_below_every_score(base, tokenizer):
    answers = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("<think>a</think>", "7")]
    found = measure_answers(load_causal(base), tokenizer, [EncodedRow([1, 2])] * 2, answers)
    assert [(one.score, one.ranking_score) for one in found] == [(None, -1.0)] * 2


@pytest.mark.parametrize(
    ("rows", "longest", "budget", "expected"), [(128, 2048, 16384, (8, 16)), (6, 100, 450, (3, 2)), (5, 10, 1, (1, 5))]
)
def test_a_step_is_split_into_equal_passes(rows, longest, budget, expected):
    assert split_step(rows, longest, budget) == expected


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_loss_and_gradient_are_those_of_a_plain_loop(tmp_path, reduction):
    # Two passes of eight rows: one step over all rows, at a rate that changes nothing that could be seen.
    options = {"sft_reduction": reduction, "batch": 16, "token_budget": 8 * 384, "max_steps": 1, "clip": 0.0}
    data = export_scores(tmp_path / "data", queries=4, dev=0)
    folder = ask(tmp_path, "erank-sft", data, "tiny:qwen3", learning_rate=1e-12, weight_decay=0.0, **options)
    recipe = ErankSft(prepare_task(folder, folder.job))
    rows, model = recipe.rows, recipe.model
    plain = load_causal(recipe.task.base).train()
    total, tokens = torch.zeros(()), 0
    for row in rows:
        logits = plain(input_ids=torch.tensor([row.ids])).logits[0]
        kept = slice(row.start - 1, len(row.ids) - 1)
        loss = torch.nn.functional.cross_entropy(logits[kept], torch.tensor(row.ids[row.start :]), reduction="sum")
        total, tokens = total + loss, tokens + len(row.ids) - row.start
    expected = total / (len(rows) if reduction == "sum" else tokens)
    expected.backward()
    gradients = {}

    def keep(name):
        return lambda gradient: gradients.__setitem__(name, gradients.get(name, 0) + gradient.detach().clone())

    for name, value in model.named_parameters():
        value.register_hook(keep(name))
    recipe.train(folder, lambda: False)
    (line,) = [line for line in folder.read_metrics() if "loss" in line]
    assert line["loss"] == pytest.approx(float(expected.detach()), rel=1e-6)
    for name, value in plain.named_parameters():
        assert torch.allclose(gradients[name], value.grad, atol=1e-5, rtol=1e-4), name


def test_rows_that_do_not_fit_are_counted(tmp_path):
    data = change_row(export_scores(tmp_path / "data", queries=4, dev=0), 0, chain="word " * 400)
    folder = ask(tmp_path, "erank-sft", data, "tiny:qwen3", lora_rank=4)
    recipe = ErankSft(prepare_task(folder, folder.job))
    assert (recipe.dropped, len(recipe.rows), recipe.record()["notes"]) == (1, 11, {"rows_dropped": 1})


SMALL = {"batch": 6, "mini_batch": 6, "group": 2, "epochs": 2, "max_response": 8, "learning_rate": 1e-3}


def test_the_paper_s_round_is_64_whole_queries_and_each_samples_by_a_seed_of_its_own():
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
    with pytest.raises(BadInput, match=r"'q' has 9 .* 8 .* batch"):
        plan_rounds({"q": 9, "r": 2}, replace(ERANK_GRPO, batch=8, mini_batch=8))
    assert len({sampling_seed(seed, step, rank) for seed in (0, 1) for step in range(50) for rank in range(2)}) == 200


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


def prepared(tmp_path, **options):
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
    trainer = recipe.make_trainer(folder, callback, [5.0] * len(recipe.rows))
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    return trainer


@pytest.mark.slow
def test_token_terms_of_the_loss_by_hand(tmp_path):
    trainer = trainer_of(tmp_path, kl_weight=1.0)

    def loss(*, own, old, reference, advantage):
        one = torch.ones(1, 1)
        trainer._get_per_token_logps_and_entropies = lambda *given, **named: (own * one, one, None)
        names = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")
        inputs = {name: torch.ones(1, 1, dtype=torch.long) for name in names}
        inputs |= {"old_per_token_logps": old * one, "ref_per_token_logps": reference * one}
        return float(trainer._compute_loss(trainer.model, inputs | {"advantages": torch.tensor([advantage])}))

    for own, reference, kl in ((-1.0, -1.2, 0.018731), (-2.0, -1.0, 0.718282), (-1.0, -1.0, 0.0)):
        assert loss(own=own, old=own, reference=reference, advantage=0.0) == pytest.approx(kl, abs=1e-6)
    for ratio, advantage, term in ((1.5, 1.0, 1.2), (1.5, -1.0, -1.5), (0.5, 1.0, 0.5), (0.5, -1.0, -0.8)):
        own = float(torch.tensor(ratio).log())
        assert -loss(own=own, old=0.0, reference=own, advantage=advantage) == pytest.approx(term, abs=1e-6)


@pytest.mark.slow
def test_at_the_first_step_the_ratio_is_one_and_the_gradient_is_the_policy_gradient(tmp_path):
    trainer = trainer_of(tmp_path, kl_weight=0.0, group=4, token_budget=12_288)
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


SFT = {"epochs": 24, "evaluate_every": 1000, "max_response": 24, "learning_rate": 5e-3}
GRPO = {"batch": 24, "mini_batch": 24, "group": 4, "max_steps": 30, "evaluate_every": 100, "learning_rate": 5e-4}


@pytest.mark.weekly
def test_after_supervised_training_answers_parse_and_rewards_raise_held_out_ranking(tmp_path):
    data, base = export_scores(tmp_path / "data"), tmp_path / "sft" / "out"
    train_model(ask(tmp_path / "sft", "erank-sft", data, "tiny:qwen3", **SFT), lambda: False)
    dev = read_erank_set(data).dev
    written = ChainPrompt(320, 24).write_scores(load_causal(base), load_tokenizer(base), dev)
    assert sum(one.score is not None for one in written) >= 0.95 * len(dev)
    options = GRPO | {"reward": "se", "max_response": 24}
    folder = ask(tmp_path / "rl", "erank-grpo", data, str(base), **options)
    found = train_model(folder, lambda: False)
    rounds = [line for line in folder.read_metrics() if "reward_mean" in line]
    first, last = ([line["reward_mean"] for line in some] for some in (rounds[:5], rounds[-5:]))
    spread = ((statistics.variance(first) + statistics.variance(last)) / 5) ** 0.5
    # 2.306: Student's t of 8 degrees, 95%.
    assert statistics.fmean(last) - statistics.fmean(first) > 2.306 * spread
    assert found["evaluation"]["merged"]["ndcg@10"] > found["evaluation"]["base"]["ndcg@10"]
    before, after = (statistics.fmean(line["malformed"] for line in some) for some in (rounds[:5], rounds[-5:]))
    assert after < before + 0.05
    # The published folders say enough for the comparison of base, SFT and SFT + RL.
    tuned = tmp_path / "rl" / "out"
    models = [
        TrainedModel(1, "sft", "erank-sft", "tiny:qwen3", str(base), read_held_out(base)),
        TrainedModel(2, "rl", "erank-grpo", str(base), str(tuned), read_held_out(tuned)),
    ]
    (group,) = group_models(models)
    assert [row.role for row in group["rows"]] == ["base", "SFT", "SFT + RL"] and group["queries"] == 6
    gain = found["gain"]
    assert group["rows"][2].start is not None and group["rows"][2].start.difference == pytest.approx(gain["difference"])
