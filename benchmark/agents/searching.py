"""Searches by agents: each agent with each retriever writes a trace for each sampled query."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from benchmark.agents import jobs, sampling
from benchmark.agents.cutting import LONGEST, Cut, describe_tokenizer, open_cut
from benchmark.agents.jobs import AgentJobs
from benchmark.agents.options import SearchOptions
from benchmark.agents.protocol import FIXED, MOST, ROUNDS, AgentTrace, SearchingAgent, with_room
from benchmark.agents.retrievers import SEARCHING, RetrieverTool, check_retriever, embedders_of, open_retriever
from benchmark.agents.traces import DOCUMENTS_PER_SEARCH
from benchmark.models import AgentJob, Run, Trace
from benchmark.report.systems.chosen import ready_runs
from benchmark.runs.model_folders import offered_folders
from corpus.errors import BadOption
from corpus.models import Collection, Document, Query
from jobs.leases import Lease
from judges.campaigns.estimates import Estimate, of_calls
from judges.conversations.requests import Conversation, Subject
from judges.costs.judge_records import judges_of
from judges.errors import Unreachable
from judges.model_jobs.jobs import JobPlan, Options
from judges.prompts.agents import (
    agent_prompt,
    document_fields,
    evidence_prompt,
    render_evidence,
    render_question,
    render_round,
)
from judges.prompts.answers.agents import SearchTurn
from judges.prompts.answers.formats import schema_of
from judges.records import Judge, Prompt
from judges.retrieval import model_requests

MANY = 128  # Concurrent conversations: each step waits for the one before, so it takes many to use the rate limit.
EXAMPLES = 5  # Questions whose prompts an estimate looks at.
LIKELY = 250  # Tokens of a turn, over searches and answers.
EXPECTED_SEARCHES = 6  # Of an adaptive agent, for estimates (BRIGHT-Pro table 4: 5.1 to 7).


class Searches(AgentJobs):
    """Agents search: a trace for each query of the sample, retriever and agent."""

    kind, record, roles = AgentJob.Kind.SEARCH, SearchOptions, {"agents": "search"}
    question, heading = gettext_lazy("Start these agents?"), gettext_lazy("Start agents")
    about = gettext_lazy(
        "Each agent searches with each retriever for a fixed sample of queries: 25, drawn once for this collection."
    )

    def shown_in(self, collection: Collection) -> dict[str, Any]:
        """Offer the retrievers that can search for any text, all preselected, and the tokenizers of this site."""
        runs = [run.name for run in ready_runs(collection) if run.kind in SEARCHING]
        retrievers = list(dict.fromkeys([str(Run.Kind.BM25), *runs]))
        tokenizers = offered_folders(lambda folder: (folder / "tokenizer.json").is_file())
        choices: dict[str, Any] = super().shown_in(collection)["choices"]
        choices["retrievers"] = [(name, name) for name in retrievers]
        choices["tokenizer"] = [("", _("word pieces of 5 letters")), *((name, name) for name in tokenizers)]
        return {"choices": choices, "initial": {"retrievers": retrievers}}

    def prepare(self, collection: Collection, options: Options) -> Options:
        """Draw the collection's sample, unless the options name one or it was drawn before."""
        return options if options.get("sample") else {**options, "sample": sampling.ensure_sample(collection)}

    def plan(self, collection: Collection, options: Options) -> JobPlan:
        """Complete the options; the queries are those of `sample`, or `queries` where the search is only estimated."""
        settings: dict[str, Any] = {name: options.get(name) for name in ("protocol", "rounds", "tokenizer")}
        depends, judges = describe_search(collection, options["retrievers"], options["agents"], **settings)
        sample, queries = options.get("sample"), options.get("queries")
        if sample is not None:
            queries = [query.pk for query in sampling.sampled_queries(sample, collection)]
        elif queries is None:
            queries = sampling.preview_sample(collection)[str(collection.pk)]
        total = len(queries) * len(depends["retrievers"]) * len(depends["agents"])
        return self.build_plan(depends, judges, total, queries, sample=sample)

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate:
        """Estimate the cost of the agents' calls, without those for vectors of searches."""
        depends, queries = dict(plan.options), plan.parts
        is_fixed = depends["protocol"] == FIXED
        texts = list(Query.objects.filter(pk__in=queries[:EXAMPLES]).values_list("text", flat=True))
        searches = depends["rounds"] if is_fixed else min(EXPECTED_SEARCHES, depends["rounds"])
        steps = _example_steps(collection, texts, searches, open_cut(depends), is_fixed=is_fixed)
        # Fixed: a search and an answer in each round. Adaptive: the searches, and the turn that answers.
        calls = len(queries) * len(depends["retrievers"]) * (2 * searches if is_fixed else searches + 1)
        schema = schema_of(SearchTurn)
        judges = [with_room(judge, answer=False) for judge in judges_of(depends["agents"].values())]
        first, *others = [of_calls(judge, calls, steps, schema, LIKELY) for judge in judges]
        total = sum(others, first)
        if is_fixed:
            return total
        message = _("an adaptive agent is expected to search %(likely)d times a query; its limit is %(most)d")
        note = message % {"likely": searches, "most": depends["rounds"]}
        return replace(total, notes=(*total.notes, note))

    def judges_of(self, job: AgentJob) -> list[Judge]:
        return [*judges_of(job.options["agents"].values()), *embedders_of(job.options["retrievers"])]

    def count_done(self, job: AgentJob) -> tuple[int, int]:
        assert job.sample is not None
        queries = len(sampling.sampled_queries(job.sample, job.collection))
        cells = len(job.options["retrievers"]) * len(job.options["agents"])
        return Trace.objects.filter(job=job).count(), queries * cells

    def work(self, job: AgentJob, lease: Lease) -> None:
        """Write the missing traces.

        1. Open the retrievers, which may embed all documents first.
        2. Hold a conversation for each cell (retriever and agent) and query without a trace.
        3. Store each trace as soon as it ends, so that it survives a stop of the job.
        """
        assert job.sample is not None
        agents = dict(zip(job.options["agents"], judges_of(job.options["agents"].values()), strict=True))
        protocol, rounds = str(job.options["protocol"]), int(job.options["rounds"])
        campaign = self.campaign_of(job)
        judges, cut = model_requests.judges_in(campaign), open_cut(job.options)
        with jobs.DatabaseThread() as thread:
            tools: dict[str, RetrieverTool] = {}
            for options in job.options["retrievers"]:
                retriever = open_retriever(job.collection, options, campaign, judges, lease.progress, lease.should_stop)
                # Embedding all documents may take an hour, in which the job can be cancelled.
                if retriever is None:
                    return
                tools[str(options["name"])] = RetrieverTool(job.collection, retriever, thread, cut)

            cells = {f"{tool}/{agent}/{protocol}": (tool, agent) for tool in tools for agent in job.options["agents"]}
            finished = set(Trace.objects.filter(job=job).values_list("query", "retriever", "agent"))
            subjects = [
                Subject(query.pk, query.text, topic)
                for topic, cell in cells.items()
                for query in sampling.sampled_queries(job.sample, job.collection)
                if (query.pk, *cell) not in finished
            ]

            async def ask(conversation: Conversation) -> str:
                tool, agent = cells[conversation.subject.topic]
                searching = SearchingAgent(conversation, agents[agent], tools[tool].find)
                try:
                    trace = await (searching.run_fixed(rounds) if protocol == FIXED else searching.run_adaptive(rounds))
                except Unreachable as error:
                    return str(error)
                await thread.run(_store_trace, job, conversation.subject.query, tool, agent, trace)
                return ""

            phase = _("agents search")
            jobs.converse(job, lease, campaign, subjects, ask, phase=phase, done=len(finished), at_once=MANY)


KIND = SEARCHES = Searches()


def describe_search(
    collection: Collection,
    retrievers: Sequence[str],
    agents: Sequence[str],
    protocol: str,
    rounds: int | None = None,
    tokenizer: str | None = None,
) -> tuple[dict[str, Any], list[Judge]]:
    """Return all that the traces depend on besides the sample, and every judge asked. Raises BadInput."""
    rounds = ROUNDS[protocol] if rounds is None else rounds
    if rounds > MOST[protocol]:
        message = _("The %(protocol)s protocol takes 1 to %(most)d rounds.")
        raise BadOption("rounds", message % {"protocol": protocol, "most": MOST[protocol]})
    agent_judges = {name: model_requests.judge_for("search", name) for name in dict.fromkeys(agents)}
    checked_retrievers = [check_retriever(collection, name) for name in dict.fromkeys(retrievers)]
    # By version and hash, so that the same request finds the same job.
    depends = {
        "protocol": protocol,
        "rounds": rounds,
        "retrievers": checked_retrievers,
        "agents": {name: judge.id for name, judge in agent_judges.items()},
        "top": DOCUMENTS_PER_SEARCH,
        "tokens": LONGEST,
        **describe_tokenizer(tokenizer),
        "prompts": jobs.prompt_hashes("agent-search", "agent-evidence" if protocol == FIXED else "agent-answer"),
    }
    return depends, [*agent_judges.values(), *embedders_of(checked_retrievers)]


def _example_steps(
    collection: Collection, questions: Sequence[str], searches: int, cut: Cut, *, is_fixed: bool
) -> list[Prompt]:
    """Return the prompts of all steps for some questions, filled with the collection's first documents."""
    # The estimate needs texts of the usual length, not the right ones.
    rows = Document.objects.filter(collection=collection, is_current=True).order_by("pk").values_list("text", flat=True)
    texts = [cut(text) for text in rows[: DOCUMENTS_PER_SEARCH * searches]]
    steps = []
    for question in questions:
        fences: list[str] = []
        evidence: list[str] = []
        for number in range(searches if is_fixed else searches + 1):
            steps.append(agent_prompt(render_question(question), fences, answer=number == searches))
            part = texts[DOCUMENTS_PER_SEARCH * number : DOCUMENTS_PER_SEARCH * (number + 1)]
            documents = [
                document_fields(f"document-{position}", text, is_cut=is_cut)
                for position, (text, is_cut) in enumerate(part)
            ]
            fences.append(render_round(number + 1, question, documents))
            evidence.append(render_evidence(documents))
            # The fixed protocol answers after each round, so these prompts are paid for too.
            if is_fixed:
                steps.append(evidence_prompt(render_question(question), evidence))
    return steps


def _store_trace(job: AgentJob, query: int, retriever: str, agent: str, trace: AgentTrace) -> None:
    values = {
        "rounds": trace.rounds,
        "answers": trace.answers,
        "stop": trace.stop,
        "searches": trace.searches,
        "early_answers": trace.early_answers,
        "several_searches": trace.several_searches,
    }
    row = Trace(job=job, query_id=query, retriever=retriever, agent=agent, **values)
    # A trace that another worker stored first is the same trace.
    jobs.store_result(job, lambda: Trace.objects.bulk_create([row], ignore_conflicts=True))
