"""A judge grades every answer of the agents: each aspect, and the whole against the reference answer (BRIGHT-Pro 4.2).

The judge never sees which retriever or agent an answer is from. An answer that is none is not sent;
a grading that cannot be read after its repair is named and counted nowhere.
"""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from benchmark.agents import jobs
from benchmark.agents.aspects import SoughtAspect, load_query_aspects
from benchmark.agents.grades import EVEN, UP, rate_completeness, weigh_coverage
from benchmark.agents.jobs import AgentJobs
from benchmark.agents.options import GradeOptions
from benchmark.agents.references import load_references
from benchmark.models import AgentJob, AnswerAssessment, Trace
from benchmark.report.inputs import aspects_mark
from corpus.errors import BadInput
from corpus.models import Collection, Query
from jobs.leases import Lease
from judges.campaigns.estimates import Estimate, of_calls
from judges.conversations.agents import AnswerGrade
from judges.conversations.formats import schema_of
from judges.conversations.requests import Conversation, Step, Subject
from judges.domain.verdicts import NoVerdict
from judges.engine.plan import raise_output_limit
from judges.model_jobs.jobs import JobPlan, Options
from judges.prompts.agents import assess_prompt
from judges.records import Judge
from judges.retrieval import model_requests

LIKELY = 200  # Tokens of a grading.
SAMPLED = 30
ROLE = "assess"
NO_ANSWER = "there is no answer to grade"
NO_REFERENCE = "the query has no reference answer"


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """An answer to be graded, with all that its judge is shown."""

    trace: int
    round: int
    query: int
    question: str
    answer: str
    reference: str
    aspects: tuple[SoughtAspect, ...]

    @property
    def problem(self) -> str:
        """Return why the answer cannot be graded; "" where it can."""
        return NO_ANSWER if not self.answer else NO_REFERENCE if not self.reference else ""

    def step(self, judge: Judge) -> Step[AnswerGrade]:
        """Return the step in which the judge grades this answer."""
        prompt = assess_prompt(self.question, [one.in_prompt for one in self.aspects], self.reference, self.answer)
        material = {
            "answer": self.answer,
            "reference": self.reference,
            "aspects": [{"id": one.id, "text": one.text} for one in self.aspects],
        }
        expected = {"aspects": [one.id for one in self.aspects]}
        return Step(ROLE, AnswerGrade, judge, prompt, expected=expected, material=material)


class Gradings(AgentJobs):
    """A judge grades every answer of a search."""

    kind, record, roles = AgentJob.Kind.GRADE, GradeOptions, {"judge": ROLE}
    question, heading = gettext_lazy("Grade these answers?"), gettext_lazy("Grade answers")
    about = gettext_lazy(
        "The judge scores every aspect of the query and the answer as a whole, against the reference answer."
    )

    def plan(self, collection: Collection, options: Options) -> JobPlan:
        """Find the answers of `search`, or of the newest search by the protocol."""
        search = options.get("search") or jobs.require_search(collection, options.get("protocol"))
        asked = model_requests.judge_for(ROLE, options["judge"])
        references = jobs.newest_job(collection, AgentJob.Kind.REFERENCE)
        # Everything that would make the grades others: with one of these changed it is another grading.
        depends: dict[str, Any] = {
            "judge": {asked.name: asked.id},
            "references": references and references.pk,
            "aspects": aspects_mark(collection),
            "prompts": jobs.prompt_hashes("agent-assess"),
        }
        if options.get("halves") == EVEN:
            depends["halves"] = EVEN
        answers = _load_answers(search, references)
        if not answers:
            raise BadInput(_("The agents have no answers yet: wait for their job, or go on with it"))
        if not any(one.reference for one in answers):
            raise BadInput(_("%(name)s has no reference answers: write them first") % {"name": collection.name})
        return self.build_plan(depends, [asked], len(answers), answers, graded=search)

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate:
        asked = raise_output_limit(plan.judges[0])
        # Answers that cannot be graded cost nothing.
        answers = [one for one in plan.parts if not one.problem]
        sample = [one.step(asked).prompt for one in answers[:SAMPLED]]
        return of_calls(asked, len(answers), sample, schema_of(AnswerGrade), LIKELY)

    def judges_of(self, job: AgentJob) -> list[Judge]:
        return [jobs.judge_in(job)]

    def count_done(self, job: AgentJob) -> tuple[int, int]:
        missing, total = _missing_answers(job)
        return total - len(missing), total

    def work(self, job: AgentJob, lease: Lease) -> None:
        judge, campaign = jobs.judge_in(job), self.campaign_of(job)
        missing, total = _missing_answers(job)
        # Stored at once, without a call: they would be asked about again with every turn.
        for one in missing:
            if one.problem:
                _store_grades(job, one, None, one.problem)
        unanswered = {f"{one.trace}/{one.round}": one for one in missing if not one.problem}

        async def ask(conversation: Conversation) -> str:
            answer = unanswered[conversation.subject.topic]
            step = answer.step(judge)
            said = await conversation.ask(step)
            problem = conversation.problem_with(step) or said.outcome if isinstance(said, NoVerdict) else ""
            # A judge that could not be reached is asked again when the job goes on; a grading that
            # cannot be read is not.
            if isinstance(said, NoVerdict) and said.outcome == "error":
                return problem
            # The loop of the conversations must not wait for the database.
            await thread.run(_store_grades, job, answer, None if isinstance(said, NoVerdict) else said, problem)
            return ""

        subjects = [Subject(one.query, one.question, topic) for topic, one in unanswered.items()]
        with jobs.DatabaseThread() as thread:
            phase = _("grading answers")
            jobs.converse(job, lease, campaign, subjects, ask, phase=phase, done=total - len(unanswered))


KIND = GRADINGS = Gradings()


def _load_answers(search: AgentJob, references: AgentJob | None) -> list[GradedAnswer]:
    """Every answer of the job's traces, with its reference: written, or the query's own."""
    traces = list(Trace.objects.filter(job=search).order_by("retriever", "agent", "query"))
    queries = Query.objects.in_bulk({one.query_id for one in traces})
    # In bulk: traces of all retrievers and agents share their queries.
    written, aspects = load_references(references), load_query_aspects(search.collection, queries)
    found = []
    for trace in traces:
        query = queries[trace.query_id]
        # Answers that came with the query stand in for a written one: better than no reference.
        reference = written.get(query.pk) or "\n\n".join(query.answers)
        shown = (query.pk, query.text), (reference, tuple(aspects.get(query.pk, ())))
        found += [GradedAnswer(trace.pk, one["round"], *shown[0], one["answer"], *shown[1]) for one in trace.answers]
    return found


def _missing_answers(job: AgentJob) -> tuple[list[GradedAnswer], int]:
    """The answers without grades, and how many there are in all."""
    # A grading is always of a search.
    assert job.graded is not None
    references = AgentJob.objects.get(pk=key) if (key := job.options.get("references")) else None
    answers = _load_answers(job.graded, references)
    have = set(AnswerAssessment.objects.filter(job=job).values_list("trace", "round"))
    return [one for one in answers if (one.trace, one.round) not in have], len(answers)


def _store_grades(job: AgentJob, answer: GradedAnswer, grade: AnswerGrade | None, problem: str) -> None:
    values: dict[str, Any] = {"problem": problem}
    if grade is not None:
        scores: dict[str, float] = {one.id: one.score for one in grade.aspect_scores}
        importances = {one.id: one.importance for one in answer.aspects}
        coverage = weigh_coverage(importances, scores)
        values |= {
            "aspect_scores": scores,
            "importances": importances,
            "overall_quality": grade.overall_quality,
            # None where no aspect has an importance: a mean of nothing.
            "completeness": None if coverage is None else rate_completeness(coverage, job.options.get("halves", UP)),
            "justification": grade.justification,
        }
    where = {"job": job, "trace_id": answer.trace, "round": answer.round}
    # get_or_create, because two workers may hold the same answer for a moment when a lease passes on.
    jobs.store_result(job, lambda: AnswerAssessment.objects.get_or_create(**where, defaults=values))


def newest_grading(search: AgentJob) -> AgentJob | None:
    """The newest grading of a job's answers, however far it is."""
    return AgentJob.objects.filter(graded=search, kind=AgentJob.Kind.GRADE).order_by("-pk").first()
