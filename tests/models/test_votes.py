"""A model that thinks behind llama.cpp: votes, debates, evidence, steps of agents, checks of judges; and its death."""

import json
import math
import re
import subprocess
import time
from collections import Counter
from typing import Any

import pytest

from benchmark.models import SyntheticBundle
from config.env import ROOT
from corpus.models import Label, Pair, Target
from jobs.processes import spawn_child, stop_children
from judges.campaigns.selectors import campaign_status
from judges.models import Attempt, Work
from judges.models.probes import JudgeProbe
from judges.workers import worker_pool
from tests.called import call
from tests.engine_parts import _standing_worker, begin, judge, state_of, worker
from tests.instances import until
from tests.judges.evidence.test_evidence_campaigns import write
from tests.models.judging import PAIRS, check_pairs, check_rows, configure, make_pairs, text_of
from tests.stages import first_slow

__all__ = ["_standing_worker", "worker"]

pytestmark = pytest.mark.django_db(transaction=True)
RELEVANT_FROM = {"binary": 1, "0-3": 3, "0-10": 7}
SHORT = {"prompt": "verdict-only", "max_output_tokens": 48}


def grade_in(text: str) -> int | None:
    """The grade that an answer names, yes as 1; None unless it is one JSON object with nothing around it."""
    try:
        answer = json.loads(text)
    except ValueError:
        return None
    if not isinstance(answer, dict):
        return None
    response = str(answer.get("response", "")).lower()
    return answer["score"] if "score" in answer else {"yes": 1, "no": 0}.get(response)


def share_in(answer: dict[str, Any], word: str) -> float:
    """The probability of the answer's word, from the server's tokens that hold a letter or digit of it."""
    tokens = answer["choices"][0]["logprobs"]["content"]
    text = "".join(token["token"] for token in tokens)
    *_, match = re.finditer(r'"(?:response|score)"\s*:\s*"?(yes|no|\d+)', text)
    assert match[1] == word
    share, position = 1.0, 0
    for token in tokens:
        end = position + len(token["token"])
        if position < match.end(1) and end > match.start(1):
            assert re.search(r"\w", token["token"]), "a token of the word, not of the punctuation around it"
            share *= math.exp(token["logprob"])
        position = end
    return share


@pytest.mark.parametrize("scale", first_slow(RELEVANT_FROM))
def test_a_single_judge_answers_by_its_scale_with_the_probability_of_its_answer(llama_server, worker, scale):
    make_pairs()
    configure(llama_server, {"judge": {"scale": scale, "logprobs": True, "max_output_tokens": 128}})
    check_pairs(judge("--policy", "single").json)
    votes = [(row, answer) for row, answer in check_rows(llama_server) if row.outcome == "labelled"]
    assert len(votes) == Work.objects.filter(state="labelled").count() > 0
    for row, answer in votes:
        grade = grade_in(text_of(answer))
        assert grade is not None and row.verdict == (grade >= RELEVANT_FROM[scale])
        assert row.score == (None if scale == "binary" else grade)
        word = str(grade) if scale != "binary" else "yes" if grade else "no"
        assert row.probabilities[word] == pytest.approx(share_in(answer, word))
        assert set(row.probabilities) == ({"yes", "no"} if scale == "binary" else {word})


@pytest.mark.parametrize("mode", first_slow(["json_object", "text"]))
def test_without_a_schema_an_answer_is_a_verdict_or_a_named_failure(llama_server, worker, mode):
    make_pairs()
    configure(llama_server, {"judge": {"schema_mode": mode, **SHORT}})
    status = judge("--policy", "single").json
    check_pairs(status)
    rows = check_rows(llama_server)
    for row, answer in rows:
        fenced = re.fullmatch(r"```(?:json)?\n(.*)\n```", text_of(answer).strip(), re.DOTALL)
        grade = grade_in(fenced[1] if fenced else text_of(answer))
        whole = answer["choices"][0]["finish_reason"] == "stop"
        assert row.verdict == (grade if whole else None), text_of(answer)
        assert row.outcome == ("truncated" if not whole else "unparsed" if grade is None else "labelled")
    tries = Counter(row.pair_id for row, _answer in rows)
    assert len(tries) == PAIRS and max(tries.values()) <= 2, "an answer is repaired once"


@pytest.mark.weekly
def test_five_samples_of_one_model_are_five_votes_of_each_pair(llama_server, worker):
    make_pairs()
    configure(llama_server, {"judge": {"temperature": 1.5, **SHORT}}, ensemble=["judge"] * 5)
    status = judge("--policy", "ensemble").json
    check_pairs(status)
    check_rows(llama_server)
    for work in Work.objects.all():
        votes = Attempt.objects.filter(pair=work.pair, counts=True).order_by("place")
        assert [vote.place for vote in votes] == [0, 1, 2, 3, 4]
        verdicts = Counter(vote.verdict for vote in votes if vote.outcome == "labelled")
        verdict, most = max(verdicts.items(), key=lambda item: item[1], default=(None, 0))
        assert work.label == (verdict if most >= 3 else None)
    answers = {text_of(call["answer"]) for call in llama_server.calls()}
    assert len(answers) > 1, "samples at a temperature differ"


def test_a_debate_marks_quotes_that_are_not_in_the_document(llama_server, worker):
    make_pairs()
    configure(llama_server, {name: {"max_output_tokens": 128} for name in "abc"}, debate=["a", "b"], adjudicator="c")
    check_pairs(judge("--policy", "debate", "--rounds", 1, "--adjudicator", "panel").json)
    is_quoted: list[bool] = []
    for row, answer in check_rows(llama_server):
        if row.role == "adjudicate" or row.outcome != "labelled":
            continue
        document = row.pair.document.text
        assert [quote["text"] for quote in row.quotes] == json.loads(text_of(answer))["reference"]
        for quote in row.quotes:
            is_quoted.append(quote["start"] is not None)
            if is_quoted[-1]:
                assert document[quote["start"] : quote["end"]].split() == quote["text"].split()
            else:
                assert not quote["text"].strip() or quote["text"] not in document
    assert set(is_quoted) == {True, False}, "this model copies sentences, and invents some"
    for work in Work.objects.all():
        turns = Attempt.objects.filter(pair=work.pair, role__in=("for", "against"), counts=True)
        verdicts = {turn.verdict for turn in turns}
        assert (len(verdicts) == 1 and None not in verdicts) == (work.agreed_in_round == 1)


def test_evidence_is_written_of_each_pair_or_it_is_said_why_not(llama_server, worker):
    make_pairs()
    for pair in Pair.objects.all():
        Label.objects.create(pair=pair, grade=1, origin="people")
    configure(llama_server, {"writer": {"max_output_tokens": 128}})
    status = write("--writer", "writer").json
    rows = check_rows(llama_server)
    assert (status["state"], status["pairs"]) == ("finished", PAIRS) and status["calls"] == len(rows)
    assert {row.pair_id for row, _answer in rows} == set(Pair.objects.values_list("pk", flat=True))
    texts = set()
    for row, answer in rows:
        assert row.role == "write" and row.verdict is None
        if row.outcome == "labelled":
            texts.add((row.pair_id, json.loads(text_of(answer))["evidence"].strip()))
    assert {(target.pair_id, target.evidence.strip()) for target in Target.objects.all()} <= texts
    for work in Work.objects.all():
        has_text = Target.objects.filter(pair=work.pair, good=True).exists()
        assert has_text == (work.state == "labelled") and (has_text or work.reason)


def test_an_agent_answers_one_question(llama_server, worker):
    make_pairs()
    configure(llama_server, {"agent": {"max_output_tokens": 192}})
    done = call("agents", "books", "--retrievers", "bm25", "--agents", "agent", "--sample", 1, "--wait", "--json")
    assert (done.code, done.json["state"]) == (0, "ready"), done.err
    rows = check_rows(llama_server)
    assert rows and {row.role for row, _answer in rows} <= {"search", "answer"}
    assert len({row.query for row, _answer in rows}) == 1


def test_a_query_is_synthesised_or_it_is_said_at_which_step_it_was_dropped(llama_server, worker, tmp_path):
    make_pairs()
    configure(llama_server, {"judge": {"max_output_tokens": 192}})
    models = ("--judge", "judge", "--writer", "judge")
    done = call("synthesize", "books", *models, "--limit", 1, "--out", tmp_path / "set", "--json")
    assert (done.code, done.json["state"], done.json["seeds"]) == (0, "ready", 1), done.err
    rows = check_rows(llama_server)
    assert done.json["calls"] == len(rows) >= 1
    dropped = done.json["counts"]["dropped"]
    assert done.json["bundles"] + sum(dropped.values()) == 1 == SyntheticBundle.objects.count()
    for reason in dropped:
        step, _, outcome = reason.partition(": ")
        row = rows[-1][0]
        assert (row.role, row.outcome) == (step, outcome) and row.error


MODES = ("json_schema", "json_object", "text")


def test_each_mode_is_checked_with_the_tokens_that_the_server_counts(llama_server, manage):
    configure(llama_server, {mode: {"schema_mode": mode, "logprobs": 5, "max_output_tokens": 128} for mode in MODES})
    done = manage("check_judges", "--judge", *MODES, "--json", check=False)
    checks = {check["name"]: check for check in done.json["judges"]}
    assert done.code == (0 if all(check["ok"] for check in checks.values()) else 3), done.err
    for name, check in checks.items():
        usages = llama_server.usages(name)
        assert 1 <= check["calls"] == len(usages) <= 2
        sides = {"in": "prompt_tokens", "out": "completion_tokens"}
        assert check["tokens"] == {side: sum(usage[key] for usage in usages) for side, key in sides.items()}
        assert check["ok"] != bool(check["problem"]), "a judge works, or it is said why not"
        assert check["found"]["context"] == 2048 and any("2,048 tokens" in line for line in check["warnings"])
        assert check["cost"] == 0
    assert checks["json_schema"]["ok"], checks["json_schema"]["problem"]
    assert checks["json_schema"]["found"]["logprobs"] == 5
    assert JudgeProbe.objects.count() == len(MODES)


def test_a_campaign_outlives_its_model_server(llama_server, instance):
    collection = make_pairs()
    configure(llama_server, {"judge": {"prompt": "verdict-only"}})
    campaign = begin(collection, policy="single")
    own = spawn_child(worker_pool.worker_command(1, "models"), instance, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        until(lambda: len(llama_server.usages()) >= 4 and "answer" not in llama_server.calls()[-1])
        llama_server.kill()
        before = len(llama_server.calls())
        time.sleep(3)
        assert state_of(campaign) == "running", "it waits for its server"
        llama_server.start()
        until(lambda: state_of(campaign) == "finished")
    finally:
        stop_children([own])
    check_pairs(campaign_status(collection))
    check_rows(llama_server)
    assert not Work.objects.filter(state="failed", reason="error").exists(), "no pair pays for the server's death"
    calls = llama_server.calls()
    lost = [call for call in calls if "answer" not in call]
    assert lost and all(call in calls[:before] for call in lost), "those in flight at the kill"
    asked = Counter(json.dumps(call["request"]) for call in calls)
    assert asked.total() - len(asked) <= len(lost)
    assert len(asked) == PAIRS == Attempt.objects.filter(counts=True).count()
