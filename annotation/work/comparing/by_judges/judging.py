"""Comparisons by model judges: a model job that asks each judge about both orders of the documents.

Every answer is stored before it is used (RetrievalCall), so that no call is paid for twice, even after a kill.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from actions.errors import BadOption
from annotation.models.comparisons import Comparison, ComparisonSet, Preference
from annotation.models.judged_comparisons import ComparisonJudging, JudgedComparison
from annotation.work.comparing.by_judges.options import ComparingOptions
from annotation.work.comparing.by_judges.orders import BACKWARD, FORWARD, OrderAnswers
from corpus.models import Assessor, Collection
from jobs import leases
from jobs.leases import Lease
from judges.campaigns.estimates import NO_MIX, Estimate, of_calls
from judges.campaigns.forecasts import pair_inputs
from judges.campaigns.token_mixes import mixes_of
from judges.conversations.requests import Conversation, ConversationStep, Subject
from judges.costs.judge_records import judge_of
from judges.domain.verdicts import NoVerdict
from judges.model_jobs.jobs import (
    BatchOutcome,
    JobPlan,
    ModelJobKind,
    Options,
    ask_in_batches,
    hold_conversations,
    in_batches,
)
from judges.models import Campaign, JudgeVersion
from judges.models.retrieval import RetrievalCall
from judges.prompts.answers.formats import PairPreference, schema_of
from judges.prompts.render import prefer_prompt
from judges.records import Inputs, Judge
from judges.retrieval import model_requests

ROLE = "prefer"
BATCH = 128  # Comparisons whose answers are stored together; each call is stored as it comes.
SAMPLED = 50  # Comparisons whose prompts an estimate looks at.
LIKELY = 60  # Tokens of an answer, as estimates expect them: as of a vote.


@dataclass(frozen=True, slots=True)
class ComparisonTask:
    """A comparison for one judge, with the judge's views of both pairs."""

    comparison: Comparison
    judge: Judge
    first: Inputs
    second: Inputs

    @property
    def subject(self) -> Subject:
        """The subject that identifies this conversation within the job."""
        topic = f"{self.comparison.pk} {self.judge.name}"
        return Subject(self.comparison.first.query_id, self.first.query, topic)


class ComparisonJudgings(ModelJobKind[ComparisonJudging]):
    """Comparisons by judges: two calls for each comparison and judge, in both orders of the documents."""

    model, task, purpose = ComparisonJudging, "annotation.compare_documents", "comparisons by judges"
    name, home = "comparison_judging", "comparisons"
    title, question = gettext_lazy("A or B"), gettext_lazy("Ask these judges for their preferences?")
    note = gettext_lazy("The queries and both documents of each comparison are sent to the judges' providers.")
    heading = gettext_lazy("Compare by judges")
    about = gettext_lazy(
        "Each judge sees both documents of a comparison twice, once in each order. It prefers a document if it does so "
        "both times; answers that change with the order count as equal."
    )
    missing = gettext_lazy("Comparisons by judges not found.")
    record, roles = ComparingOptions, {"judges": ROLE}
    started, controlled, detail = "comparisons.judges", "comparisons.judges-control", "number"

    def plan(self, collection: Collection, options: Options) -> JobPlan:
        """Find the set and the judges; a judge named twice counts once."""
        comparison_set = ComparisonSet.objects.filter(collection=collection, number=options["set"]).first()
        if comparison_set is None:
            raise BadOption("set", _("There is no set %(number)s.") % {"number": options["set"]})
        if comparison_set.ended_at is not None:
            raise BadOption("set", _("Set %(number)s has ended.") % {"number": comparison_set.number})
        judges = [model_requests.judge_for(ROLE, name) for name in dict.fromkeys(options["judges"])]
        versions = JudgeVersion.objects.in_bulk([judge.id for judge in judges])
        names = {"judges": [judge.name for judge in judges], "versions": [str(versions[judge.id]) for judge in judges]}
        return JobPlan(
            {"set": comparison_set.number, **names},
            judges,
            # Sorted, because the same judges in another order are the same job.
            made_of=[comparison_set.pk, sorted(versions)],
            total=comparison_set.comparisons.count() * len(judges),
            columns={"set": comparison_set},
        )

    def shown_in(self, collection: Collection) -> dict[str, Any]:
        sets = ComparisonSet.objects.filter(collection=collection, ended_at=None).order_by("-number")
        titles = [(row.number, f"{row.number} · {row.title}" if row.title else str(row.number)) for row in sets]
        return {"choices": {**super().shown_in(collection)["choices"], "set": titles}}

    def lacks(self, collection: Collection) -> str:
        """Return what is missing before judges can be asked: a judge that can compare documents."""
        return "" if model_requests.judges_for(ROLE) else _("No model can compare documents. Add one first.")

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate:
        """Estimate the calls for the comparisons that each judge has not answered yet."""
        comparisons = read_comparisons(plan.columns["set"])
        tasks = [comparison_task(collection, comparison, plan.judges[0]) for comparison in comparisons[:SAMPLED]]
        prompts, schema = [prefer_prompt(task.first, task.second) for task in tasks], schema_of(PairPreference)
        mixes, estimates = mixes_of(plan.judges), []
        for judge, version in zip(plan.judges, plan.options["versions"], strict=True):
            calls = 2 * comparisons.exclude(pk__in=answered_by(version)).count()
            estimates.append(of_calls(judge, calls, prompts, schema, LIKELY, mixes.get(judge.id, NO_MIX)))
        return sum(estimates[1:], estimates[0])

    def judges_of(self, job: ComparisonJudging) -> list[Judge]:
        """Return the versions that were planned, which the job's options name."""
        versions = {str(row): row for row in JudgeVersion.objects.filter(name__in=job.options["judges"])}
        return [judge_of(versions[name]) for name in job.options["versions"]]

    def count_done(self, job: ComparisonJudging) -> tuple[int, int]:
        assessors = {"assessor__kind": Assessor.Kind.JUDGE, "assessor__name__in": job.options["versions"]}
        return JudgedComparison.objects.filter(comparison__set=job.set_id, **assessors).count(), job.total

    def work(self, job: ComparisonJudging, lease: Lease) -> None:
        campaign, comparisons = self.campaign_of(job), read_comparisons(job.set)
        judges = dict(zip(job.options["versions"], model_requests.judges_in(campaign), strict=True))
        missing = [
            (version, comparison)
            for version in judges
            for comparison in comparisons.exclude(pk__in=answered_by(version)).values_list("pk", flat=True)
        ]
        stored = job.total - len(missing)

        def compare(batch: Sequence[tuple[str, int]]) -> BatchOutcome:
            nonlocal stored
            rows = comparisons.in_bulk([comparison for _version, comparison in batch])
            tasks = [comparison_task(campaign, rows[comparison], judges[version]) for version, comparison in batch]
            replies = ask_judges(campaign, tasks, lease, done=stored, total=job.total)
            versions = [version for version, _comparison in batch]
            answered = store_answers(job, campaign, list(zip(versions, tasks, replies.answers, strict=True)))
            stored += answered
            return BatchOutcome(len(tasks), answered, replies.error, replies.spent, replies.stopped)

        lease.progress(stored, job.total)
        ask_in_batches(job, lease.should_stop, in_batches(missing, BATCH), compare, job.total)


COMPARISON_JUDGINGS = ComparisonJudgings()


def read_comparisons(comparison_set: ComparisonSet) -> QuerySet[Comparison]:
    """Return the comparisons of a set in order, with their texts."""
    texts = [f"{side}__{part}" for side in ("first", "second") for part in ("query", "document")]
    return Comparison.objects.filter(set=comparison_set).select_related(*texts).order_by("seq")


def answered_by(version: str) -> QuerySet[JudgedComparison, int]:
    """Return the keys of the comparisons that a version of a judge has answered, with or without a preference."""
    rows = JudgedComparison.objects.filter(assessor__kind=Assessor.Kind.JUDGE, assessor__name=version)
    return rows.values_list("comparison", flat=True)


def comparison_task(owner: Collection | Campaign, comparison: Comparison, judge: Judge) -> ComparisonTask:
    """Return a comparison for a judge. `owner`: as of `pair_inputs`."""
    first, second = (pair_inputs(owner, pair.query, pair.document) for pair in (comparison.first, comparison.second))
    return ComparisonTask(comparison, judge, first, second)


def ask_judges(
    campaign: Campaign, tasks: Sequence[ComparisonTask], lease: Lease, *, done: int, total: int
) -> model_requests.Replies[OrderAnswers | str | None]:
    """Ask for both orders of all comparisons.

    A reply is the reason, as text, if the judge's answer is no verdict even after a repair; then the other order is
    not asked. It is None if the judge was unreachable or the limits were reached.
    """
    by_topic = {task.subject.topic: task for task in tasks}
    errors: list[str] = []

    async def hold(conversation: Conversation) -> OrderAnswers | str | None:
        task, outcomes = by_topic[conversation.subject.topic], []
        orders = ((task.first, task.second, FORWARD), (task.second, task.first, BACKWARD))
        for number, (first, second, meanings) in enumerate(orders):
            material = {"first": first, "second": second}
            prompt = prefer_prompt(first, second)
            step = ConversationStep(ROLE, PairPreference, task.judge, prompt, number, material=material)
            reply = await conversation.ask(step)
            if isinstance(reply, NoVerdict):
                if reply.outcome == "error":
                    errors.append(conversation.problem_with(step))
                    return None
                return f"{reply.outcome}: {conversation.problem_with(step) or task.judge.name}"
            outcomes.append(meanings[reply.preference])
        return OrderAnswers(*outcomes)

    replies = hold_conversations(campaign, [task.subject for task in tasks], hold, lease, done=done, total=total)
    replies.error = errors[-1] if errors else ""
    return replies


@transaction.atomic
def store_answers(
    job: ComparisonJudging, campaign: Campaign, replies: Sequence[tuple[str, ComparisonTask, OrderAnswers | str | None]]
) -> int:
    """Store answers, each once, with the preferences that follow from them; return their number.

    `replies`: the judge's version, the comparison and the reply. Raises LeaseLost if another worker took over.
    """
    leases.lock_held(job)
    # Another job may have the same judge: its answers are not stored a second time.
    ComparisonSet.objects.select_for_update(no_key=True).get(pk=job.set_id)
    versions = {version for version, _task, reply in replies if reply is not None}
    find_assessor = partial(Assessor.objects.get_or_create, collection=job.collection, kind=Assessor.Kind.JUDGE)
    assessors = {version: find_assessor(name=version)[0] for version in sorted(versions)}
    stored = {version: set(answered_by(version).filter(comparison__set=job.set_id)) for version in versions}
    calls = RetrievalCall.objects.filter(campaign=campaign, role=ROLE, sample=0, outcome="labelled").filter(
        topic__in=[task.subject.topic for _version, task, _reply in replies]
    )
    call_of = dict(calls.order_by("id").values_list("topic", "pk"))
    judged, preferences = [], []
    for version, task, reply in replies:
        if reply is None or task.comparison.pk in stored[version]:
            continue
        row = JudgedComparison(comparison=task.comparison, assessor=assessors[version])
        if isinstance(reply, str):
            row.problem = reply
        else:
            row.forward, row.backward = reply
            call = call_of.get(task.subject.topic)
            answer = {"comparison": task.comparison, "assessor": assessors[version], "call_id": call}
            preferences.append(Preference(**answer, outcome=reply.outcome))
        judged.append(row)
    JudgedComparison.objects.bulk_create(judged, batch_size=500)
    Preference.objects.bulk_create(preferences, batch_size=500)
    return sum(reply is not None for _version, _task, reply in replies)
