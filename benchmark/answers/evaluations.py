"""Evaluations of answers as jobs that ask models: their content (docs/workshop.md)."""

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
from benchmark.runs import rankings
from benchmark.systems.chosen import ready_runs
from corpus.errors import BadInput
from corpus.models import Collection, Query
from jobs.leases import Lease
from jobs.models import JobState
from judges.campaigns.estimates import NO_MIX, Estimate, of_calls
from judges.conversations.formats import ContextAnswer, Correctness, schema_of
from judges.costs.token_mixes import mixes_of
from judges.model_jobs.jobs import BatchOutcome, JobPlan, ModelJobKind, Options, ask_in_batches, in_batches
from judges.prompts.conversations import CONTEXT_LIMIT, answer_prompt, correct_prompt
from judges.records import Judge
from judges.retrieval import model_requests

TOGETHER = 256  # Conversations between two stores of rows, at least one query's.
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
        """Find runs and queries; a run or generator named twice is asked about once."""
        k, shown = options.get("k", K), options.get("contexts", contexts.DOCUMENT)
        generators = list(dict.fromkeys(options["generators"]))
        runs = [_ready_run(collection, name, k) for name in dict.fromkeys(options["systems"])]
        # Without a reference nobody can say whether an answer is right, and money would be spent for nothing.
        queries = answered_queries(collection)
        if not queries:
            told = _("%(name)s has no query with a reference answer, so no answer can be judged")
            raise BadInput(told % {"name": collection.name})
        kept = {"runs": sorted(run.pk for run in runs), "k": k, "contexts": shown, "characters": CONTEXT_LIMIT}
        writers, judge = judges_by_role(generators, options["judge"])
        return JobPlan(
            {"generators": generators, "judge": judge.name, **kept},
            _distinct(writers, judge),
            # ADR 0088: never the qrels. Another version is another reading of the same answers, and
            # costs no call. Generators in an order of their own: the same models in another order
            # are the same evaluation.
            made_of={**kept, "generators": sorted(one.id for one in writers), "judge": judge.id},
            total=len(queries) * len(runs) * len(writers),
        )

    def shown_in(self, collection: Collection) -> dict[str, Any]:
        """Offer the finished runs, all of them chosen."""
        runs = [run.name for run in ready_runs(collection)]
        choices: dict[str, Any] = super().shown_in(collection)["choices"]
        return {"choices": {**choices, "systems": [(name, name) for name in runs]}, "initial": {"systems": runs}}

    def lacks(self, collection: Collection) -> str:
        """Say that there is no run to choose."""
        return "" if ready_runs(collection) else _("No finished runs. Add a run first.")

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate:
        """Estimate the calls of all models. Runs that return the same documents cost less: answers are reused."""
        options = plan.options
        runs, queries = list(Run.objects.filter(pk__in=options["runs"])), answered_queries(collection)
        # A sample of queries for all runs together, so that the estimate takes as long with many runs.
        sample = queries[: max(1, SAMPLED // len(runs))]
        shown = load_contexts(runs, sample, options["k"], options["contexts"])
        prompts = [answer_prompt(query.text, shown[run.pk, query.pk].shown) for query in sample for run in runs]
        checks = [correct_prompt(query.text, EXPECTED_ANSWER, query.answers) for query in sample]
        writers, judge = judges_by_role(options["generators"], options["judge"])
        mixes = mixes_of([*writers, judge])

        def mix(one: Judge) -> Any:
            return mixes.get(one.id, NO_MIX)

        found = of_calls(judge, plan.total, checks, schema_of(Correctness), LIKELY_VERDICT, mix(judge))
        for one in writers:
            calls = len(queries) * len(runs)
            found += of_calls(one, calls, prompts, schema_of(ContextAnswer), LIKELY_ANSWER, mix(one))
        return found

    def begin(self, job: AnswerEvaluation, plan: JobPlan) -> None:
        """Make the first version of the qrels if there is none: answers are compared with them."""
        if versions.latest_version(job.collection) is None:
            versions.first_version(job.collection, job.made_by)

    def judges_of(self, job: AnswerEvaluation) -> list[Judge]:
        return _distinct(*judges_by_role(job.options["generators"], job.options["judge"]))

    def count_done(self, job: AnswerEvaluation) -> tuple[int, int]:
        queries = [query.pk for query in answered_queries(job.collection)]
        total = len(queries) * len(job.options["runs"]) * len(job.options["generators"])
        return GeneratedAnswer.objects.filter(evaluation=job, query__in=queries).count(), total

    def has_new_work(self, job: AnswerEvaluation) -> bool:
        """Return whether queries came since, whose answers are missing."""
        done, total = self.count_done(job)
        return done < total

    def work(self, job: AnswerEvaluation, lease: Lease) -> None:
        campaign = self.campaign_of(job)
        judges = {one.name: one for one in model_requests.judges_in(campaign)}
        judge, queries, runs = judges[job.options["judge"]], answered_queries(job.collection), runs_in(job)
        cells = [(run, judges[name]) for run in runs for name in job.options["generators"]]
        rows = GeneratedAnswer.objects.filter(evaluation=job, query__in=queries)
        there = set(rows.values_list("query_id", "run_id", "generator"))
        missing = {
            query.pk: [cell for cell in cells if (query.pk, cell[0].pk, cell[1].name) not in there] for query in queries
        }
        total, stored = len(queries) * len(cells), len(there)

        def answer(batch: Sequence[Query]) -> BatchOutcome:
            nonlocal stored
            shown = load_contexts(runs, batch, job.options["k"], job.options["contexts"])
            tasks = [
                AnswerTask(query, run.pk, writer, shown[run.pk, query.pk])
                for query in batch
                for run, writer in missing[query.pk]
            ]
            found = generation.ask_answers(campaign, judge, tasks, lease, done=stored, total=total)
            answered = generation.store_answers(job, tasks, found.answers)
            stored += answered
            return BatchOutcome(len(tasks), answered, found.error, found.spent, found.stopped)

        lease.progress(stored, total)
        # By whole queries: one that has all its answers can be measured when the budget ends.
        waiting = [query for query in queries if missing[query.pk]]
        ask_in_batches(job, lease.should_stop, in_batches(waiting, max(1, TOGETHER // len(cells))), answer, total)


ANSWERS = Answers()


def judges_by_role(generators: Sequence[str], judge: str) -> tuple[list[Judge], Judge]:
    """Return generators and judge in their present versions. Raises BadInput."""
    checker = model_requests.judge_for("correct", judge)
    return [model_requests.judge_for("answer", name) for name in generators], checker


def _distinct(writers: Sequence[Judge], judge: Judge) -> list[Judge]:
    # The judge may also generate, and stands once.
    return [one for one in writers if one.id != judge.id] + [judge]


def _ready_run(collection: Collection, name: str, k: int) -> Run:
    run = Run.objects.filter(collection=collection, name=name, is_deleted=False).first()
    if run is None or run.state != JobState.READY:
        raise BadInput(
            _("Run %(name)s does not exist or is not ready: name a finished run of %(collection)s")
            % {"name": repr(name), "collection": collection.name}
        )
    # Below its depth a run says nothing: k documents cannot be shown.
    if run.depth and run.depth < k:
        raise BadInput(
            _("The run %(run)s returns only %(depth)d documents per query. Choose k up to this number.")
            % {"run": run.name, "depth": run.depth}
        )
    return run


def answered_queries(collection: Collection) -> list[Query]:
    """The current queries with a reference answer, by external id."""
    return split_queries(collection)[0]


def split_queries(collection: Collection) -> tuple[list[Query], int]:
    """The current queries with a reference answer, and how many have none."""
    current = rankings.current_queries(collection)
    answered = [query for query in current if any(map(str.strip, query.answers))]
    return answered, len(current) - len(answered)


def runs_in(evaluation: AnswerEvaluation) -> list[Run]:
    """Return the evaluation's runs by name, deleted ones too."""
    # Deleted runs too: their answers were paid for and stay in the figures.
    return list(Run.objects.filter(pk__in=evaluation.options["runs"]).order_by("name", "pk"))
