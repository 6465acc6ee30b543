"""Reference answers: written by a judge from a query's aspects and their passages alone (BRIGHT-Pro appendix D)."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from benchmark.agents import jobs
from benchmark.agents.aspects import SoughtAspect, load_passages, load_query_aspects
from benchmark.models import AgentJob, ReferenceAnswer
from benchmark.report.inputs import aspects_mark
from corpus.errors import BadInput
from corpus.models import Collection, Query
from jobs.leases import Lease
from judges.campaigns.estimates import Estimate, of_calls
from judges.conversations.agents import ReferenceDraft, find_citations
from judges.conversations.formats import schema_of
from judges.conversations.requests import Conversation, Step, Subject, hold_conversations
from judges.domain.verdicts import NoVerdict
from judges.engine.plan import judges_of, raise_output_limit
from judges.prompts.agents import reference_prompt
from judges.records import Judge, Prompt
from judges.retrieval import model_requests

LIKELY = 500  # Tokens of a reference answer.
SAMPLED = 20  # Queries whose prompts an estimate looks at.
ROLE = "reference"


def start_references(collection: Collection, judge: str, *, limits: Mapping[str, Any], by: str = "") -> AgentJob:
    """Begin writing, or go on with the same. Raises BadInput where no aspect has a passage."""
    asked = model_requests.judge_for(ROLE, judge)
    # Aspects without passages are left out: an answer could cover them only from what the model remembers.
    total = len(queries_with_passages(collection))
    if not total:
        raise BadInput(
            _("%(name)s has no aspect with a passage: reference answers are written from these. Import aspects first")
            % {"name": collection.name}
        )
    depends = {
        "judge": {asked.name: asked.id},
        "prompts": jobs.prompt_hashes("agent-reference"),
        # Aspects that changed make other reference answers.
        "aspects": aspects_mark(collection),
    }
    return jobs.start_or_join(collection, AgentJob.Kind.REFERENCE, depends, [asked], total=total, limits=limits, by=by)


def queries_with_passages(collection: Collection) -> dict[int, list[SoughtAspect]]:
    """Return, by current query, the aspects that have a passage; other queries are left out."""
    keys = Query.objects.filter(collection=collection, is_current=True).values_list("pk", flat=True)
    found = load_query_aspects(collection, keys)
    kept = {query: [one for one in aspects if one.documents] for query, aspects in found.items()}
    return {query: aspects for query, aspects in kept.items() if aspects}


def estimate_references(collection: Collection, judge: str) -> Estimate:
    """Estimate the cost of writing all reference answers. Raises BadInput."""
    aspects = queries_with_passages(collection)
    texts = dict(Query.objects.filter(pk__in=aspects).values_list("pk", "text"))
    asked = raise_output_limit(model_requests.judge_for(ROLE, judge))
    sample = [_build_prompt(collection, texts[key], aspects[key])[0] for key in sorted(aspects)[:SAMPLED]]
    return of_calls(asked, len(aspects), sample, schema_of(ReferenceDraft), LIKELY)


def _build_prompt(collection: Collection, text: str, aspects: list[SoughtAspect]) -> tuple[Prompt, dict[str, Any]]:
    """The prompt about a query, and what it is made of."""
    passages = load_passages(collection, aspects)
    material = {
        "question": text,
        "aspects": [{"id": one.id, "text": one.text, "importance": one.importance} for one in aspects],
        "passages": dict(passages),
    }
    return reference_prompt(text, [one.in_prompt for one in aspects], passages), material


def count_done(job: AgentJob) -> tuple[int, int]:
    """Return the number of reference answers that are there, refused ones included, and of all."""
    return ReferenceAnswer.objects.filter(job=job).count(), job.total


def work(job: AgentJob, lease: Lease) -> None:
    """Write the answers that are missing. Raises Incomplete."""
    ((_name, version),) = job.options["judge"].items()
    judge = raise_output_limit(judges_of([version])[0])
    campaign = jobs.campaign_of(job, [judge])
    aspects = queries_with_passages(job.collection)
    have = set(ReferenceAnswer.objects.filter(job=job).values_list("query", flat=True))
    missing = Query.objects.filter(pk__in=aspects.keys() - have).order_by("external_id")
    subjects = [Subject(one.pk, one.text) for one in missing]
    lost: list[str] = []

    async def talk(conversation: Conversation) -> bool:
        step, passages = await thread.run(_build_step, job, judge, conversation.subject, aspects)
        said = await conversation.ask(step)
        if isinstance(said, NoVerdict) and said.outcome == "error":
            lost.append(conversation.problem_with(step))
            return False
        problem = conversation.problem_with(step) or said.outcome if isinstance(said, NoVerdict) else ""
        text = "" if isinstance(said, NoVerdict) else said.answer
        values = {
            "answer": text,
            "citations": find_citations(text, passages.keys())[0],
            "model": judge.model,
            "prompt_sha256": step.prompt.sha256,
            "problem": problem,
        }
        await thread.run(_store_answer, job, conversation.subject.query, values)
        return True

    before, phase = len(have), _("writing reference answers")
    lease.progress(before, before + len(subjects), phase)
    with jobs.DatabaseThread() as thread:
        found = hold_conversations(
            campaign,
            subjects,
            talk,
            stopped=lease.should_stop,
            done=lambda count: lease.note(before + count, before + len(subjects), phase),
        )
    jobs.check_end(job, found, lost)


def _build_step(
    job: AgentJob, judge: Judge, subject: Subject, aspects: Mapping[int, list[SoughtAspect]]
) -> tuple[Step[ReferenceDraft], Mapping[str, Any]]:
    """The step about a query, read off the loop, and its passages."""
    own = aspects[subject.query]
    prompt, material = _build_prompt(job.collection, subject.text, own)
    passages = material["passages"]
    # A passage may have been taken out of the collection since; what is left has to be cited.
    expected = {one.id: sorted(one.documents & passages.keys()) for one in own if one.documents & passages.keys()}
    step = Step(ROLE, ReferenceDraft, judge, prompt, expected={"passages": expected}, material=material)
    return step, passages


def _store_answer(job: AgentJob, query: int, values: Mapping[str, Any]) -> None:
    jobs.store_result(
        job, lambda: ReferenceAnswer.objects.get_or_create(job=job, query_id=query, defaults=dict(values))
    )


def load_references(job: AgentJob | None) -> dict[int, str]:
    """The reference answers of a job by query, without those that could not be written."""
    rows = ReferenceAnswer.objects.filter(job=job, problem="") if job else ReferenceAnswer.objects.none()
    return dict(rows.values_list("query", "answer"))


def describe_references(job: AgentJob) -> list[dict[str, Any]]:
    """The rows of `references.jsonl`, by query id."""
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
