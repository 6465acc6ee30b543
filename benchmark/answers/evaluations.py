"""Evaluations of answers, as jobs that ask models (docs/workshop.md)."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from benchmark.answers import contexts, generation
from benchmark.answers.contexts import load_contexts
from benchmark.answers.generation import AnswerTask
from benchmark.answers.options import AnswerOptions, K
from benchmark.models import AnswerEvaluation, GeneratedAnswer, Run
from benchmark.qrels import versions
from benchmark.report.systems.chosen import ready_runs
from benchmark.runs import rankings
from corpus.errors import BadInput
from corpus.models import Collection, Query
from jobs.leases import Lease
from jobs.models import JobState
from judges.campaigns.estimates import NO_MIX, Estimate, of_calls
from judges.campaigns.token_mixes import mixes_of
from judges.model_jobs.jobs import BatchOutcome, JobPlan, ModelJobKind, Options, ask_in_batches, in_batches
from judges.prompts.answers.formats import ContextAnswer, Correctness, schema_of
from judges.prompts.conversations import CONTEXT_LIMIT, answer_prompt, correct_prompt
from judges.records import Judge
from judges.retrieval import model_requests

TOGETHER = 256  # Conversations whose answers are stored together, at least those of one query.
SAMPLED = 50  # Answers whose prompts an estimate looks at.
# Tokens of an answer and of a verdict, as estimates expect them.
LIKELY_ANSWER, LIKELY_VERDICT = 80, 10
EXPECTED_ANSWER = "x" * 4 * LIKELY_ANSWER


class Answers(ModelJobKind[AnswerEvaluation]):
    """Evaluations of answers: generators answer from the top of runs, and a judge compares with reference answers."""

    model, task, purpose = AnswerEvaluation, "benchmark.answer_queries", "answers"
    name, home = "answer_evaluation", "answers"
    title, question = gettext_lazy("Answers"), gettext_lazy("Start this evaluation?")
    heading = gettext_lazy("Evaluate answers")
    about = gettext_lazy(
        "A model answers each query from the first documents of a run, and a judge compares the answer with the "
        "reference answers. RAGAlign is the share of queries where finding a relevant document and answering correctly "
        "agree."
    )
    missing = gettext_lazy("Evaluation of answers not found.")
    record, roles = AnswerOptions, {"generator": "answer", "judge": "correct"}
    started, controlled, detail = "answers.started", "answers.control", "evaluation"

    def plan(self, collection: Collection, options: Options) -> JobPlan:
        """Find the runs and queries; a run or generator named twice counts once."""
        k, shown = options.get("k", K), options.get("contexts", contexts.DOCUMENT)
        generators = list(dict.fromkeys(options["generators"]))
        runs = [_ready_run(collection, name, k) for name in dict.fromkeys(options["systems"])]
        # Without a reference answer the judge cannot compare, and the calls would be wasted.
        queries = answered_queries(collection)
        if not queries:
            message = _("%(name)s has no query with a reference answer, so no answer can be judged")
            raise BadInput(message % {"name": collection.name})
        content = {"runs": sorted(run.pk for run in runs), "k": k, "contexts": shown, "characters": CONTEXT_LIMIT}
        writers, judge = judges_by_role(generators, options["judge"])
        return JobPlan(
            {"generators": generators, "judge": judge.name, **content},
            _distinct(writers, judge),
            # Without the qrels (ADR 0088): another version is another reading of the same answers,
            # and costs no call. Sorted, because the same models in another order make the same evaluation.
            made_of={**content, "generators": sorted(writer.id for writer in writers), "judge": judge.id},
            total=len(queries) * len(runs) * len(writers),
        )

    def shown_in(self, collection: Collection) -> dict[str, Any]:
        """Offer the finished runs, all of them preselected."""
        runs = [run.name for run in ready_runs(collection)]
        choices: dict[str, Any] = super().shown_in(collection)["choices"]
        return {"choices": {**choices, "systems": [(name, name) for name in runs]}, "initial": {"systems": runs}}

    def lacks(self, collection: Collection) -> str:
        """Return what is missing before an evaluation can start: a finished run."""
        return "" if ready_runs(collection) else _("No finished runs. Add a run first.")

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate:
        """Estimate the calls of all models. Runs with the same documents will cost less, since answers are reused."""
        options = plan.options
        runs, queries = list(Run.objects.filter(pk__in=options["runs"])), answered_queries(collection)
        # One sample of queries for all runs together, so that the time does not grow with the runs.
        sample = queries[: max(1, SAMPLED // len(runs))]
        shown = load_contexts(runs, sample, options["k"], options["contexts"])
        prompts = [answer_prompt(query.text, shown[run.pk, query.pk].shown) for query in sample for run in runs]
        checks = [correct_prompt(query.text, EXPECTED_ANSWER, query.answers) for query in sample]
        writers, judge = judges_by_role(options["generators"], options["judge"])
        mixes = mixes_of([*writers, judge])

        mix = mixes.get(judge.id, NO_MIX)
        estimate = of_calls(judge, plan.total, checks, schema_of(Correctness), LIKELY_VERDICT, mix)
        for writer in writers:
            calls = len(queries) * len(runs)
            mix = mixes.get(writer.id, NO_MIX)
            estimate += of_calls(writer, calls, prompts, schema_of(ContextAnswer), LIKELY_ANSWER, mix)
        return estimate

    def begin(self, job: AnswerEvaluation, plan: JobPlan) -> None:
        """Make the first version of the qrels if there is none, since results compare answers with it."""
        if versions.latest_version(job.collection) is None:
            versions.first_version(job.collection, job.made_by)

    def judges_of(self, job: AnswerEvaluation) -> list[Judge]:
        return _distinct(*judges_by_role(job.options["generators"], job.options["judge"]))

    def count_done(self, job: AnswerEvaluation) -> tuple[int, int]:
        queries = [query.pk for query in answered_queries(job.collection)]
        total = len(queries) * len(job.options["runs"]) * len(job.options["generators"])
        return GeneratedAnswer.objects.filter(evaluation=job, query__in=queries).count(), total

    def has_new_work(self, job: AnswerEvaluation) -> bool:
        """Return whether queries were added since, whose answers are missing."""
        done, total = self.count_done(job)
        return done < total

    def work(self, job: AnswerEvaluation, lease: Lease) -> None:
        campaign = self.campaign_of(job)
        judges = {model.name: model for model in model_requests.judges_in(campaign)}
        judge, queries, runs = judges[job.options["judge"]], answered_queries(job.collection), runs_in(job)
        cells = [(run, judges[name]) for run in runs for name in job.options["generators"]]
        rows = GeneratedAnswer.objects.filter(evaluation=job, query__in=queries)
        stored_keys = set(rows.values_list("query_id", "run_id", "generator"))
        missing = {
            query.pk: [(run, writer) for run, writer in cells if (query.pk, run.pk, writer.name) not in stored_keys]
            for query in queries
        }
        total, stored = len(queries) * len(cells), len(stored_keys)

        def answer(batch: Sequence[Query]) -> BatchOutcome:
            nonlocal stored
            shown = load_contexts(runs, batch, job.options["k"], job.options["contexts"])
            tasks = [
                AnswerTask(query, run.pk, writer, shown[run.pk, query.pk])
                for query in batch
                for run, writer in missing[query.pk]
            ]
            replies = generation.ask_answers(campaign, judge, tasks, lease, done=stored, total=total)
            answered = generation.store_answers(job, tasks, replies.answers)
            stored += answered
            return BatchOutcome(len(tasks), answered, replies.error, replies.spent, replies.stopped)

        lease.progress(stored, total)
        # In batches of queries, so that some have all their answers and can be measured if the budget ends.
        unanswered = [query for query in queries if missing[query.pk]]
        ask_in_batches(job, lease.should_stop, in_batches(unanswered, max(1, TOGETHER // len(cells))), answer, total)


ANSWERS = Answers()


def judges_by_role(generators: Sequence[str], judge: str) -> tuple[list[Judge], Judge]:
    """Return the current versions of the generators and the judge. Raises BadInput."""
    checker = model_requests.judge_for("correct", judge)
    return [model_requests.judge_for("answer", name) for name in generators], checker


def _distinct(writers: Sequence[Judge], judge: Judge) -> list[Judge]:
    # The judge may also be a generator; it is listed once.
    return [writer for writer in writers if writer.id != judge.id] + [judge]


def _ready_run(collection: Collection, name: str, k: int) -> Run:
    run = Run.objects.filter(collection=collection, name=name, is_deleted=False).first()
    if run is None or run.state != JobState.READY:
        raise BadInput(
            _("Run %(name)s does not exist or is not ready: name a finished run of %(collection)s")
            % {"name": repr(name), "collection": collection.name}
        )
    # A run of a smaller depth cannot provide k documents.
    if run.depth and run.depth < k:
        raise BadInput(
            _("The run %(run)s returns only %(depth)d documents per query. Choose k up to this number.")
            % {"run": run.name, "depth": run.depth}
        )
    return run


def answered_queries(collection: Collection) -> list[Query]:
    """Return the current queries with a reference answer, in the order of their external ids."""
    return split_queries(collection)[0]


def split_queries(collection: Collection) -> tuple[list[Query], int]:
    """Return the current queries with a reference answer, and the number of those without."""
    current = rankings.current_queries(collection)
    answered = [query for query in current if any(map(str.strip, query.answers))]
    return answered, len(current) - len(answered)


def runs_in(evaluation: AnswerEvaluation) -> list[Run]:
    """Return the evaluation's runs, by name."""
    # Including deleted runs: their answers were paid for and stay in the figures.
    return list(Run.objects.filter(pk__in=evaluation.options["runs"]).order_by("name", "pk"))
