"""Agents at full size on the scripted server, measured in a process of their own.

`python -m tests.benchmark.agents.measured_rate PORT LOG` prints a line of JSON for each turn, and
then one with the memory that the process took at its peak.
"""

import json
import sys
import time
from pathlib import Path

import django

from tests.memory import peak_megabytes

QUERIES, SYSTEMS, PLAIN, TURNS = 200, 4, 1000, 2
# At most 80 calls a second, which take a third of a processor: what is left of it is no matter, also beside other work.
AT_ONCE, LATENCY = 40, 0.5


class Measured:
    """The collection of a measurement, its agents, and rates of the calls that are made."""

    def __init__(self, models):
        from benchmark.agents.sampling import ensure_sample
        from benchmark.models import Run
        from tests.benchmark.agents.scripted import wings
        from tests.factories import make_document

        self.models = models
        self.collection = wings(QUERIES)
        for topic in ("alpha", "beta", "gamma"):
            for number in range(7, 5 * SYSTEMS + 1):
                make_document(self.collection, f"{topic} wing number {number}" + " lift" * number)
        for number in range(SYSTEMS):
            values = {"kind": "bm25", "state": "ready", "recipe": {"k1": 0.5 + number / 2, "b": 0.75}}
            Run.objects.create(collection=self.collection, name=f"bm25-{number}", **values)
        self.sample = ensure_sample(self.collection, per_member=QUERIES)

    def agents(self, names):
        """Calls per second of both agents with all systems, and per second of this process's processor; how many."""
        from benchmark.models import Trace
        from judges.models.retrieval import RetrievalCall
        from tests.benchmark.agents.scripted import finish, start_search

        job = start_search(
            self.collection,
            sample=self.sample,
            retrievers=[f"bm25-{number}" for number in range(SYSTEMS)],
            agents=names,
            protocol="fixed",
        )
        began, worked = time.monotonic(), time.process_time()
        job = finish(job)
        seconds, worked = time.monotonic() - began, time.process_time() - worked
        assert job.state == "ready", job.error
        assert Trace.objects.filter(job=job).count() == QUERIES * SYSTEMS * 2
        calls = RetrievalCall.objects.filter(campaign=job.campaign, cached=False).count()
        return calls / seconds, calls / worked, calls

    def plain(self, turn):
        """The same two rates of plain questions that no turn asked before."""
        from judges.conversations.requests import ConversationStep, Subject, hold_conversations
        from judges.costs.judge_records import judge_of
        from judges.prompts.agents import agent_prompt, render_question
        from judges.prompts.answers.agents import SearchTurn
        from judges.retrieval.model_requests import open_campaign

        judge = judge_of(self.make_agents(f"plain-{turn}")[0])
        campaign = open_campaign(self.collection, [judge], "plain", budget=None, max_calls=None)

        async def ask_once(conversation):
            prompt = agent_prompt(render_question(conversation.subject.text), [], answer=False)
            return await conversation.ask(ConversationStep("search", SearchTurn, judge, prompt))

        subjects = [Subject(number, f"plain question {number}") for number in range(1, PLAIN + 1)]
        began, worked = time.monotonic(), time.process_time()
        hold_conversations(campaign, subjects, ask_once, at_once=AT_ONCE)
        return PLAIN / (time.monotonic() - began), PLAIN / (time.process_time() - worked)

    def make_agents(self, *names):
        """Judges of these names, and what they say: three searches and an answer."""
        from tests.benchmark.agents.scripted import ANSWERING, answer, says, search
        from tests.engine_parts import make_judge

        turns = [says(answer("Lift [alpha-1]."), contains=ANSWERING, latency=LATENCY)]
        for shown, text in (('"round": 2,', "gamma"), ('"round": 1,', "beta"), ("", "alpha")):
            turns.append(says(search(text), contains=shown, latency=LATENCY))
        self.models.script(**dict.fromkeys(names, turns))
        return [make_judge(self.models, name) for name in names]


def shift_retrievers():
    """Give each system a number: it leaves out that many times five of the best, so that no two find alike."""
    from benchmark.agents import searching
    from benchmark.agents.retrievers import LexicalRetriever
    from corpus.search.bm25 import index_for

    class ShiftedRetriever(LexicalRetriever):
        number = 0

        def search(self, text, depth):
            return super().search(text, depth + 5 * self.number)[5 * self.number :]

    def open_shifted(collection, given, campaign, judges, tell, stopped):
        found = ShiftedRetriever(index_for(collection))
        found.number = int(given["name"].rpartition("-")[2])
        return found

    searching.open_retriever = open_shifted


def main(port, log):
    """Plain questions and agents take turns; each turn of the agents stands beside the plain ones around it."""
    from benchmark.agents import searching
    from tests.modelserver.fixtures import LocalModels

    searching.MANY = AT_ONCE
    shift_retrievers()
    measured = Measured(LocalModels(int(port), Path(log)))
    before = measured.plain(0)
    for turn in range(1, TURNS + 1):
        names = [f"reader-{turn}", f"writer-{turn}"]  # No earlier turn has their answers.
        measured.make_agents(*names)
        rate, by_processor, calls = measured.agents(names)
        after = measured.plain(turn)
        plain, plain_by_processor = (sum(rates) / 2 for rates in zip(before, after, strict=True))
        found = {"plain_per_s": plain, "agents_per_s": rate, "ratio": rate / plain, "calls": calls}
        found |= {"plain_per_cpu_s": plain_by_processor, "agents_per_cpu_s": by_processor}
        print(json.dumps(found), flush=True)
        before = after
    print(json.dumps({"peak_mb": peak_megabytes()}))


if __name__ == "__main__":
    django.setup()
    main(*sys.argv[1:])
