"""Rollouts of a reinforcement learning: a round and a query found in a large file, and shown with their rewards."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.models import Collection
from training.jobs import lifecycle
from training.jobs.rollouts import read_rollouts
from training.models import Job
from training.recipes.job_folder import JobFolder


def rollout(step: int, query: str, number: int, **values: Any) -> dict[str, Any]:
    """A line of rollouts.jsonl; the fifth answer of a document is malformed."""
    malformed = number % 5 == 4
    text = "x" * (number * 37 % 200) + (" <b>7.5" if malformed else f"<answer>{number % 10}</answer>")
    place = {"step": step, "query_id": query, "doc_id": f"d{number // 5}", "positive": number < 5, "text": text}
    score = {"score": None if malformed else number % 10, "rank": None if malformed else number + 1}
    reward = -1.0 if malformed else 1 / (number + 1)
    return {**place, **score, "reward": reward, "advantage": 0.5, "kl": 0.01, **values}


def write_lines(path: Path, lines: list[dict[str, Any]], torn: str = "") -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + torn)
    return path


def test_a_round_and_a_query_are_found_else_the_last_round_and_the_first_query(tmp_path):
    lines = [rollout(step, f"q{query}", number) for step in (1, 41, 81) for query in range(4) for number in range(20)]
    path = write_lines(tmp_path / "rollouts.jsonl", lines, torn='{"step": 121, "query')
    view = read_rollouts(path, 41, "q2")
    assert view is not None and (view["steps"], view["step"], view["query_id"]) == ([1, 41, 81], 41, "q2")
    assert view["queries"] == ["q0", "q1", "q2", "q3"] and len(view["rollouts"]) == 20
    assert {row["step"] for row in view["rollouts"]} == {41}
    ranks = [row["rank"] for row in view["rollouts"]]
    assert ranks[:16] == sorted(ranks[:16]) and ranks[16:] == [None] * 4
    path = write_lines(tmp_path / "rollouts.jsonl", [rollout(step, "q1", 0) for step in (1, 5)])
    view = read_rollouts(path, 3, "gone")
    assert view is not None and (view["step"], view["query_id"]) == (5, "q1")
    assert read_rollouts(tmp_path / "nothing.jsonl") is None
    assert read_rollouts(write_lines(tmp_path / "empty.jsonl", [], torn='{"st')) is None


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), min_size=1, max_size=8))
def test_every_round_is_found_whatever_the_lengths_of_its_lines(tmp_path_factory, rounds):
    step, lines, steps = 0, [], []
    for gap, count in rounds:
        step += gap
        steps.append(step)
        lines += [rollout(step, "q", number, text="y" * (number * number * 31 % 500)) for number in range(count)]
    path = write_lines(tmp_path_factory.mktemp("rounds") / "rollouts.jsonl", lines)
    for wanted, (_gap, count) in zip(steps, rounds, strict=True):
        view = read_rollouts(path, wanted)
        assert view is not None and view["steps"] == steps
        assert (view["step"], len(view["rollouts"])) == (wanted, count)


@pytest.fixture
def job(birds: Collection) -> Job:
    options = {"recipe": "erank-grpo", "base": "tiny:qwen3", "data": "/d", "out": "/o", "options": {}, "name": "m"}
    made = lifecycle.begin_job(kind="train", options=options, collection=birds, user="alice")
    folder = JobFolder(Path(made.folder))
    for step in range(1, 4):
        folder.append_metrics({
            "step": step, "steps": 3, "loss": 0.1, "lr": 1e-6, "tokens": 10, "tokens_per_s": 5.0, "memory_mb": 9.0,
            "seconds": 1.0 * step, "token_budget": 64, "reward_mean": 0.1 * step, "kl": 0.01, "response_tokens": 12.0,
            "malformed": 0.2, "clip_share": 0.0, "reward_by_kind": {"positive": 0.5, "negative": -0.25 * step},
        })  # fmt: skip
    lines = [rollout(step, query, number) for step in (1, 3) for query in ("q <1>", "q&2") for number in range(20)]
    write_lines(folder.path / "rollouts.jsonl", lines)
    Job.objects.filter(pk=made.pk).update(state="running", words="tiny model, CPU")
    return made


def test_the_job_page_draws_reward_kl_length_and_loss_and_rollouts_are_browsed_ten_on_a_page(alice, job):
    address = f"/c/birds/training/jobs/{job.number}/"
    page = alice.get(address).content.decode()
    reference = "KL divergence from the reference model"
    for name in ("Mean reward", reference, "Answer length in tokens", "Share of malformed answers", "Loss"):
        assert f"{name} by step (tiny" in page
    assert "Browse rollouts" in page
    csv = alice.get(f"{address}?chart=reward_mean&as=csv").content.decode()
    assert csv.splitlines()[:2] == ["step,all,relevant documents,other documents", "1,0.1,0.5,-0.25"]
    address += "rollouts/"
    page = alice.get(address, {"step": 1, "query": "q&2"}).content.decode()
    assert page.count("<details><summary") == 10 and "q &lt;1&gt;" in page and "+0.500" in page
    assert "?step=1&amp;query=q%262&amp;page=2" in page.replace("&amp;amp;", "&amp;")
    last = alice.get(address, {"step": 1, "query": "q&2", "page": 2}).content.decode()
    assert "malformed" in last and "&lt;b&gt;7.5" in last and "<b>7.5" not in last
    assert alice.get(address, {"step": "x", "query": "\x01", "page": "many"}).status_code == 200
    (Path(job.folder) / "rollouts.jsonl").unlink()
    assert alice.get(address).status_code == 404
