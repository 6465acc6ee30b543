"""A tiny model learns to write scores, and to rank by rewards beside a reference that stays."""

import statistics

import pytest

torch = pytest.importorskip("torch")

from tests.training.trainers.scored import export_scores  # noqa: E402
from tests.training_sets import ask  # noqa: E402
from training.comparisons.tabling import TrainedModel, group_models  # noqa: E402
from training.jobs.held_out import read_held_out  # noqa: E402
from training.published.base import load_tokenizer  # noqa: E402
from training.published.causal import load_causal  # noqa: E402
from training.published.chains import ChainPrompt  # noqa: E402
from training.recipes.erank_data import read_erank_set  # noqa: E402
from training.trainers.training import train_model  # noqa: E402

SFT = {"epochs": 24, "evaluate_every": 1000, "max_response": 24, "learning_rate": 5e-3}
GRPO = {"batch": 24, "mini_batch": 24, "group": 4, "max_steps": 30, "evaluate_every": 100, "learning_rate": 5e-4}


@pytest.mark.weekly
def test_after_supervised_training_answers_parse_and_rewards_raise_held_out_ranking(tmp_path):
    torch.set_num_threads(1)
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
