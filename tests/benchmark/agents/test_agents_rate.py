"""Agents at full size on the scripted server: how fast beside plain calls, and how much memory."""

import json
import resource
import time

import pytest

from benchmark.agents import jobs, searching
from benchmark.agents.retrievers import LexicalRetriever
from benchmark.agents.sampling import ensure_sample
from benchmark.agents.searching import start_search
from benchmark.models import Run, Trace
from corpus.search.bm25 import index_for
from judges.conversations.agents import SearchTurn
from judges.conversations.requests import Step, Subject, hold_conversations
from judges.engine.plan import judge_of
from judges.models.retrieval import RetrievalCall
from judges.prompts.agents import agent_prompt, render_question
from judges.retrieval.model_requests import open_campaign
from tests.benchmark.agents.scripted import ANSWERING, answer, finish, says, search, wings
from tests.engine_parts import make_judge
from tests.factories import make_document
from tests.modelserver.fixtures import _model_server_process, model_server

__all__ = ["_model_server_process", "model_server"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
QUERIES, SYSTEMS, LATENCY, PLAIN = 200, 4, 0.2, 4000


class ShiftedRetriever(LexicalRetriever):
    """BM25 whose system has a number: it leaves out that many times five of the best, so that no two find alike."""

    number = 0

    def search(self, text, depth):
        return super().search(text, depth + 5 * self.number)[5 * self.number :]


def open_shifted(collection, given, campaign, judges, tell, stopped):
    found = ShiftedRetriever(index_for(collection))
    found.number = int(given["name"].rpartition("-")[2])
    return found


def test_agents_make_at_least_four_fifths_of_the_calls_of_plain_questions(
    settings, tmp_path, model_server, capsys, monkeypatch
):
    """200 queries x 4 systems x 2 agents x 3 rounds at 0.2 s: the rate of calls made, and the memory of the process."""
    settings.VAR = tmp_path
    collection = wings(QUERIES)
    monkeypatch.setattr(searching, "open_retriever", open_shifted)
    for topic in ("alpha", "beta", "gamma"):
        for number in range(7, 5 * SYSTEMS + 1):
            make_document(collection, f"{topic} wing number {number}" + " lift" * number)
    for number in range(SYSTEMS):
        recipe = {"k1": 0.5 + number / 2, "b": 0.75}
        Run.objects.create(collection=collection, name=f"bm25-{number}", kind="bm25", state="ready", recipe=recipe)
    versions = [make_judge(model_server, name) for name in ("reader", "writer")]
    turns = [says(answer("Lift [alpha-1]."), contains=ANSWERING, latency=LATENCY)]
    for shown, text in (('"round": 2,', "gamma"), ('"round": 1,', "beta"), ("", "alpha")):
        turns.append(says(search(text), contains=shown, latency=LATENCY))
    model_server.script(reader=turns, writer=turns)

    judge = judge_of(versions[0])
    campaign = open_campaign(collection, [judge], "plain", budget=None, max_calls=None)
    subjects = [Subject(number, f"plain question {number}") for number in range(1, PLAIN + 1)]

    async def ask_once(conversation):
        prompt = agent_prompt(render_question(conversation.subject.text), [], answer=False)
        return await conversation.ask(Step("search", SearchTurn, judge, prompt))

    def ask_plainly(part):
        began = time.monotonic()
        hold_conversations(campaign, part, ask_once, at_once=jobs.AT_ONCE)
        return time.monotonic() - began

    before = ask_plainly(subjects[: PLAIN // 2])

    job = start_search(
        collection,
        ensure_sample(collection, per_member=QUERIES),
        retrievers=[f"bm25-{number}" for number in range(SYSTEMS)],
        agents=["reader", "writer"],
        protocol="fixed",
        limits={"budget": None, "max_calls": None},
    )
    began = time.monotonic()
    job = finish(job)
    seconds = time.monotonic() - began
    # The machine is others' too: plain questions are asked before and after.
    plain = PLAIN / (before + ask_plainly(subjects[PLAIN // 2 :]))
    made = RetrievalCall.objects.filter(campaign=job.campaign, cached=False).count()
    rate = made / seconds
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told = {"plain_per_s": plain, "agents_per_s": rate, "ratio": rate / plain, "calls": made, "memory_mb": memory}
    with capsys.disabled():
        print("\n" + json.dumps({name: round(value, 3) for name, value in told.items()}))
    assert job.state == "ready", job.error
    assert Trace.objects.filter(job=job).count() == QUERIES * SYSTEMS * 2
    assert rate >= 0.8 * plain
    assert memory < 500
