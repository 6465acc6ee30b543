"""Reference answers, which a judge writes from a query's aspects and their passages alone (BRIGHT-Pro appendix D)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from benchmark.agents import jobs
from benchmark.agents.aspects import SoughtAspect, load_passages, load_query_aspects
from benchmark.agents.jobs import AgentJobs
from benchmark.agents.options import ReferenceOptions
from benchmark.models import AgentJob, ReferenceAnswer
from benchmark.report.inputs import aspects_mark
from corpus.errors import BadInput
from corpus.models import Collection, Query
from jobs.leases import Lease
from judges.campaigns.estimates import Estimate, of_calls
from judges.conversations.requests import Conversation, ConversationStep, Subject
from judges.domain.verdicts import NoVerdict
from judges.engine.plan import raise_output_limit
from judges.model_jobs.jobs import JobPlan, Options
from judges.prompts.agents import reference_prompt
from judges.prompts.answers.agents import ReferenceDraft, find_citations
from judges.prompts.answers.formats import schema_of
from judges.records import Judge, Prompt
from judges.retrieval import model_requests

LIKELY = 500  # Tokens of a reference answer.
SAMPLED = 20  # Queries whose prompts an estimate looks at.
ROLE = "reference"


class References(AgentJobs):
    """A judge writes a reference answer for each query whose aspects have passages."""

    kind, record, roles = AgentJob.Kind.REFERENCE, ReferenceOptions, {"judge": ROLE}
    home, started = "reference_answers", "references.started"
    question, heading = gettext_lazy("Write these reference answers?"), gettext_lazy("Write reference answers")
    about = gettext_lazy(
        "A model writes an answer that covers every aspect and cites its passages. Agents' answers are graded against "
        "it."
    )

    def plan(self, collection: Collection, options: Options) -> JobPlan:
        """Look up the judge, and find the queries whose aspects have passages."""
        judge = model_requests.judge_for(ROLE, options["judge"])
        # Aspects without passages are left out: an answer could cover them only from what the model remembers.
        aspects = queries_with_passages(collection)
        if not aspects:
            message = _(
                "%(name)s has no aspect with a passage: reference answers are written from these. Import aspects first"
            )
            raise BadInput(message % {"name": collection.name})
        depends = {
            "judge": {judge.name: judge.id},
            "prompts": jobs.prompt_hashes("agent-reference"),
            "aspects": aspects_mark(collection),
        }
        return self.build_plan(depends, [judge], len(aspects), sorted(aspects.items()))

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate:
        texts = dict(Query.objects.filter(pk__in=[query for query, _aspects in plan.parts]).values_list("pk", "text"))
        sample = [_build_prompt(collection, texts[query], aspects)[0] for query, aspects in plan.parts[:SAMPLED]]
        return of_calls(raise_output_limit(plan.judges[0]), plan.total, sample, schema_of(ReferenceDraft), LIKELY)

    def judges_of(self, job: AgentJob) -> list[Judge]:
        return [jobs.judge_in(job)]

    def count_done(self, job: AgentJob) -> tuple[int, int]:
        return ReferenceAnswer.objects.filter(job=job).count(), job.total

    def work(self, job: AgentJob, lease: Lease) -> None:
        judge, campaign = jobs.judge_in(job), self.campaign_of(job)
        aspects = queries_with_passages(job.collection)
        answered = set(ReferenceAnswer.objects.filter(job=job).values_list("query", flat=True))
        missing = Query.objects.filter(pk__in=aspects.keys() - answered).order_by("external_id")

        async def ask(conversation: Conversation) -> str:
            step, passages = await thread.run(_build_step, job, judge, conversation.subject, aspects)
            draft = await conversation.ask(step)
            problem = conversation.problem_with(step) or draft.outcome if isinstance(draft, NoVerdict) else ""
            if isinstance(draft, NoVerdict) and draft.outcome == "error":
                return problem
            text = "" if isinstance(draft, NoVerdict) else draft.answer
            values = {
                "answer": text,
                "citations": find_citations(text, passages.keys())[0],
                "model": judge.model,
                "prompt_sha256": step.prompt.sha256,
                "problem": problem,
            }
            rows, query = ReferenceAnswer.objects, conversation.subject.query
            save = partial(rows.get_or_create, job=job, query_id=query, defaults=values)
            await thread.run(jobs.store_result, job, save)
            return ""

        subjects = [Subject(query.pk, query.text) for query in missing]
        with jobs.DatabaseThread() as thread:
            phase = _("writing reference answers")
            jobs.converse(job, lease, campaign, subjects, ask, phase=phase, done=len(answered))


KIND = REFERENCES = References()


def queries_with_passages(collection: Collection) -> dict[int, list[SoughtAspect]]:
    """Return the aspects that have a passage, by current query; queries without such aspects are left out."""
    keys = Query.objects.filter(collection=collection, is_current=True).values_list("pk", flat=True)
    aspects_by_query = load_query_aspects(collection, keys)
    with_passages = {
        query: [aspect for aspect in aspects if aspect.documents] for query, aspects in aspects_by_query.items()
    }
    return {query: aspects for query, aspects in with_passages.items() if aspects}


def _build_prompt(collection: Collection, text: str, aspects: list[SoughtAspect]) -> tuple[Prompt, dict[str, Any]]:
    """Return the prompt about a query, and the material it is made of."""
    passages = load_passages(collection, aspects)
    material = {
        "question": text,
        "aspects": [{"id": aspect.id, "text": aspect.text, "importance": aspect.importance} for aspect in aspects],
        "passages": dict(passages),
    }
    return reference_prompt(text, [aspect.in_prompt for aspect in aspects], passages), material


def _build_step(
    job: AgentJob, judge: Judge, subject: Subject, aspects: Mapping[int, list[SoughtAspect]]
) -> tuple[ConversationStep[ReferenceDraft], Mapping[str, Any]]:
    """Return the step about a query, and its passages; blocks while it reads the database."""
    query_aspects = aspects[subject.query]
    prompt, material = _build_prompt(job.collection, subject.text, query_aspects)
    passages = material["passages"]
    # A passage may have been removed from the collection since; the remaining ones must be cited.
    expected = {
        aspect.id: sorted(aspect.documents & passages.keys())
        for aspect in query_aspects
        if aspect.documents & passages.keys()
    }
    step = ConversationStep(ROLE, ReferenceDraft, judge, prompt, expected={"passages": expected}, material=material)
    return step, passages


def describe_references(job: AgentJob) -> list[dict[str, Any]]:
    """Return the rows of `references.jsonl`, in the order of the query ids."""
    rows = ReferenceAnswer.objects.filter(job=job, problem="").select_related("query").order_by("query__external_id")
    return [
        {
            "query_id": row.query.external_id,
            "answer": row.answer,
            "model": row.model,
            "prompt_sha256": row.prompt_sha256,
            "citations": row.citations,
        }
        for row in rows
    ]
