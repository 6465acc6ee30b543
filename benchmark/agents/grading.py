"""A judge grades every answer of the agents: each aspect, and the whole against the reference answer (BRIGHT-Pro 4.2).

The judge never sees which retriever or agent an answer is from. An empty answer is not sent; a
grading that cannot be read even after its repair is stored with the reason, and left out of all means.
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
from benchmark.models import AgentJob, AnswerAssessment, ReferenceAnswer, Trace
from benchmark.report.inputs import aspects_mark
from corpus.errors import BadInput
from corpus.models import Collection, Query
from jobs.leases import Lease
from judges.campaigns.estimates import Estimate, of_calls
from judges.conversations.requests import Conversation, ConversationStep, Subject
from judges.domain.verdicts import NoVerdict
from judges.engine.plan import raise_output_limit
from judges.model_jobs.jobs import JobPlan, Options
from judges.prompts.answers.agents import AnswerGrade
from judges.prompts.answers.formats import schema_of
from judges.prompts.render import TEXT_LIMIT, step_prompt, truncated_field
from judges.records import Judge
from judges.retrieval import model_requests

LIKELY_TOKENS = 200  # Expected length of a grading, for the estimate of the cost.
SAMPLED_PROMPTS = 30  # The estimate measures the length of this many prompts.
ROLE = "assess"  # Name of the judge's role in its model calls.
NO_ANSWER = "there is no answer to grade"
NO_REFERENCE = "the query has no reference answer"


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """An answer to grade, with all that its judge is shown."""

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

    def step(self, judge: Judge) -> ConversationStep[AnswerGrade]:
        """Return the step in which the judge grades this answer."""
        # The prompt does not name the answer's system. Parts shared by all answers to the query come first.
        shared_fields = {
            **truncated_field("question", self.question, TEXT_LIMIT),
            "aspects": [aspect.in_prompt for aspect in self.aspects],
            **truncated_field("reference answer", self.reference, TEXT_LIMIT),
        }
        prompt = step_prompt("agent-assess", shared_fields, truncated_field("answer to grade", self.answer, TEXT_LIMIT))
        material = {
            "answer": self.answer,
            "reference": self.reference,
            "aspects": [{"id": aspect.id, "text": aspect.text} for aspect in self.aspects],
        }
        expected = {"aspects": [aspect.id for aspect in self.aspects]}
        return ConversationStep(ROLE, AnswerGrade, judge, prompt, expected=expected, material=material)


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
        judge = model_requests.judge_for(ROLE, options["judge"])
        references = jobs.newest_job(collection, AgentJob.Kind.REFERENCE)
        # Everything that the grades depend on: if one of these changes, it is another grading.
        dependencies: dict[str, Any] = {
            "judge": {judge.name: judge.id},
            "references": references and references.pk,
            "aspects": aspects_mark(collection),
            "prompts": jobs.prompt_hashes("agent-assess"),
        }
        # The completeness is rounded, by default with halves up.
        if options.get("halves") == EVEN:
            dependencies["halves"] = EVEN
        answers = _load_answers(search, references)
        if not answers:
            raise BadInput(_("The agents have no answers yet: wait for their job, or go on with it"))
        if not any(answer.reference for answer in answers):
            raise BadInput(_("%(name)s has no reference answers: write them first") % {"name": collection.name})
        return self.build_plan(dependencies, [judge], len(answers), answers, graded=search)

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate:
        judge = raise_output_limit(plan.judges[0])
        # Answers that cannot be graded cost nothing.
        answers = [answer for answer in plan.parts if not answer.problem]
        sample = [answer.step(judge).prompt for answer in answers[:SAMPLED_PROMPTS]]
        return of_calls(judge, len(answers), sample, schema_of(AnswerGrade), LIKELY_TOKENS)

    def judges_of(self, job: AgentJob) -> list[Judge]:
        return [jobs.judge_in(job)]

    def count_done(self, job: AgentJob) -> tuple[int, int]:
        missing, total = _missing_answers(job)
        return total - len(missing), total

    def work(self, job: AgentJob, lease: Lease) -> None:
        judge, campaign = jobs.judge_in(job), self.campaign_of(job)
        missing, total = _missing_answers(job)
        # Stored at once, without a call; otherwise every resumed job would come back to them.
        for answer in missing:
            if answer.problem:
                _store_grades(job, answer, None, answer.problem)
        # By the topic of the conversation in which an answer is graded.
        ungraded = {f"{answer.trace}/{answer.round}": answer for answer in missing if not answer.problem}
        subjects = [Subject(answer.query, answer.question, topic) for topic, answer in ungraded.items()]
        with jobs.DatabaseThread() as thread:

            async def ask(conversation: Conversation) -> str:
                """Grade an answer; return the problem if the judge must be asked again, else an empty text."""
                answer = ungraded[conversation.subject.topic]
                step = answer.step(judge)
                grade: AnswerGrade | NoVerdict | None = await conversation.ask(step)
                problem = ""
                if isinstance(grade, NoVerdict):
                    problem = conversation.problem_with(step) or grade.outcome
                    # A judge that could not be reached is asked again when the job resumes; after a grading that
                    # cannot be read it is not.
                    if grade.outcome == "error":
                        return problem
                    grade = None
                # The loop of the conversations must not wait for the database.
                await thread.run(_store_grades, job, answer, grade, problem)
                return ""

            phase = _("grading answers")
            jobs.converse(job, lease, campaign, subjects, ask, phase=phase, done=total - len(ungraded))


KIND = GRADINGS = Gradings()  # Every module of a kind of job names it KIND.


def _load_answers(search: AgentJob, references: AgentJob | None) -> list[GradedAnswer]:
    """Load every answer in the traces of a search with its reference: a written one, or the query's answers."""
    traces = list(Trace.objects.filter(job=search).order_by("retriever", "agent", "query"))
    # The traces of all retrievers and agents share their queries.
    queries = Query.objects.in_bulk({trace.query_id for trace in traces})
    # A reference answer with a problem could not be written.
    rows = ReferenceAnswer.objects.filter(job=references, problem="") if references else ReferenceAnswer.objects.none()
    reference_answers = dict(rows.values_list("query", "answer"))
    aspects = load_query_aspects(search.collection, queries)

    answers = []
    for trace in traces:
        query = queries[trace.query_id]
        # Answers imported with the query replace a missing reference: better than none.
        reference = reference_answers.get(query.pk) or "\n\n".join(query.answers)
        query_aspects = tuple(aspects.get(query.pk, ()))
        for answer in trace.answers:
            text, number = answer["answer"], answer["round"]
            answers.append(GradedAnswer(trace.pk, number, query.pk, query.text, text, reference, query_aspects))
    return answers


def _missing_answers(job: AgentJob) -> tuple[list[GradedAnswer], int]:
    """Return the answers without grades, and the number of all answers."""
    # Every grading job grades a search.
    assert job.graded is not None
    references = AgentJob.objects.get(pk=key) if (key := job.options.get("references")) else None
    answers = _load_answers(job.graded, references)
    graded_keys = set(AnswerAssessment.objects.filter(job=job).values_list("trace", "round"))
    return [answer for answer in answers if (answer.trace, answer.round) not in graded_keys], len(answers)


def _store_grades(job: AgentJob, answer: GradedAnswer, grade: AnswerGrade | None, problem: str) -> None:
    """Store the scores of an answer, or only the problem if there is no grade."""
    values: dict[str, Any] = {"problem": problem}
    if grade is not None:
        scores: dict[str, float] = {aspect_score.id: aspect_score.score for aspect_score in grade.aspect_scores}
        importances = {aspect.id: aspect.importance for aspect in answer.aspects}
        coverage = weigh_coverage(importances, scores)
        values |= {
            "aspect_scores": scores,
            "importances": importances,
            "overall_quality": grade.overall_quality,
            # None where no aspect has an importance: there is nothing to average.
            "completeness": None if coverage is None else rate_completeness(coverage, job.options.get("halves", UP)),
            "justification": grade.justification,
        }
    key = {"job": job, "trace_id": answer.trace, "round": answer.round}
    # get_or_create, because two workers may have graded the same answer while a lease changed hands.
    jobs.store_result(job, lambda: AnswerAssessment.objects.get_or_create(**key, defaults=values))


def newest_grading(search: AgentJob) -> AgentJob | None:
    """Return the newest grading of a search, finished or not."""
    return AgentJob.objects.filter(graded=search, kind=AgentJob.Kind.GRADE).order_by("-pk").first()
