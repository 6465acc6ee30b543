"""Evaluations of answers: checked, estimated, begun or joined, cancelled, resumed (docs/answers.md)."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from benchmark.answers import contexts
from benchmark.models import AnswerEvaluation, GeneratedAnswer, Run
from benchmark.qrels import versions
from benchmark.runs import limits, rankings
from corpus.errors import BadInput
from corpus.models import Collection, Query
from jobs import leases
from jobs.models import JobState
from jobs.notifications import notify
from judges.campaigns.estimates import NO_MIX, Estimate, of_calls
from judges.conversations.formats import ContextAnswer, Correctness, schema_of
from judges.costs.token_mixes import mixes_of
from judges.prompts.conversations import CONTEXT_LIMIT, answer_prompt, correct_prompt
from judges.records import Judge
from judges.retrieval import job_campaigns, model_requests

ANSWER_QUERIES = "benchmark.answer_queries"
K = 10
DEEPEST = 100
SAMPLED = 50  # Answers whose prompts an estimate looks at.
# Tokens of an answer and of a verdict, as estimates expect them.
LIKELY_ANSWER, LIKELY_VERDICT = 80, 10
EXPECTED_ANSWER = "x" * 4 * LIKELY_ANSWER


def check_options(
    collection: Collection,
    *,
    systems: Sequence[str],
    generators: Sequence[str],
    judge: str,
    k: int = K,
    kind: str = contexts.DOCUMENT,
    budget: float | None = None,
    max_calls: int | None = None,
) -> dict[str, Any]:
    """Return the options of an evaluation, completed. Raises BadInput for what is wrong before it begins."""
    if not 1 <= k <= DEEPEST:
        raise BadInput(_("k must be between 1 and %(most)d, not %(k)s.") % {"most": DEEPEST, "k": k})
    if kind not in contexts.KINDS:
        known = ", ".join(contexts.KINDS)
        raise BadInput(_("Contexts %(kind)s: choose one of %(known)s") % {"kind": repr(kind), "known": known})
    if not generators:
        raise BadInput(_("Choose at least one generator."))
    # A run that is named twice is asked about once.
    runs = [_ready_run(collection, name, k) for name in dict.fromkeys(systems)]
    if not runs:
        raise BadInput(_("Choose at least one run."))
    # Without a reference nobody can say whether an answer is right, and money would be spent for nothing.
    if not answered_queries(collection):
        raise BadInput(
            _("%(name)s has no query with a reference answer, so no answer can be judged") % {"name": collection.name}
        )
    options: dict[str, Any] = {"generators": list(dict.fromkeys(generators)), "judge": judge}
    asked = judges_of(options)
    options |= {"runs": sorted(run.pk for run in runs), "k": k, "contexts": kind, "characters": CONTEXT_LIMIT}
    given = {"budget": budget, "max_calls": max_calls}
    return options | limits.validate_limits(collection, asked, given)


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


def judges_of(options: Mapping[str, Any]) -> list[Judge]:
    """Generators and judge in their present versions, each once, the judge last. Raises BadInput."""
    judge = model_requests.judge_for("correct", options["judge"])
    writers = [model_requests.judge_for("answer", name) for name in options["generators"]]
    # The judge may also generate, and stands once.
    return [one for one in writers if one.id != judge.id] + [judge]


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


def estimate_cost(collection: Collection, options: Mapping[str, Any]) -> Estimate:
    """Estimate the calls of generators and judge. Runs that return the same documents cost less: answers are reused."""
    runs = list(Run.objects.filter(pk__in=options["runs"]))
    queries = answered_queries(collection)
    sample = queries[: max(1, SAMPLED // len(runs))]
    # A sample of queries for all runs together, so that the estimate takes as long with many runs.
    shown = contexts.load_contexts(runs, sample, options["k"], options["contexts"])
    prompts = [answer_prompt(query.text, shown[run.pk, query.pk].shown) for query in sample for run in runs]
    checks = [correct_prompt(query.text, EXPECTED_ANSWER, query.answers) for query in sample]
    calls = len(queries) * len(runs)
    writers = [model_requests.judge_for("answer", name) for name in options["generators"]]
    judge = model_requests.judge_for("correct", options["judge"])
    mixes = mixes_of([*writers, judge])

    def mix(one: Judge) -> Any:
        return mixes.get(one.id, NO_MIX)

    found = of_calls(judge, calls * len(writers), checks, schema_of(Correctness), LIKELY_VERDICT, mix(judge))
    for one in writers:
        found += of_calls(one, calls, prompts, schema_of(ContextAnswer), LIKELY_ANSWER, mix(one))
    return found


def key_of(options: Mapping[str, Any]) -> str:
    """Return the sha256 of all options that the answers depend on: runs, model versions, k, and what is shown."""
    known = {one.name: one.id for one in judges_of(options)}
    # ADR 0090: never the qrels. Another version is another reading of the same answers, and costs no call.
    parts = {
        "runs": options["runs"],
        # In an order of their own: the same models in another order are the same evaluation.
        "generators": sorted(known[name] for name in options["generators"]),
        "judge": known[options["judge"]],
        **{name: options[name] for name in ("k", "contexts", "characters")},
    }
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@transaction.atomic
def start_or_join(collection: Collection, options: Mapping[str, Any], by: str = "") -> AnswerEvaluation:
    """Begin an evaluation that waits for a worker, or go on with the same one under the limits that are given now."""
    # Answers are compared with the qrels, so there has to be a version.
    if versions.latest_version(collection) is None:
        versions.first_version(collection, by)
    total = count_wanted(collection, options)
    found, is_new = AnswerEvaluation.objects.get_or_create(
        collection=collection,
        key=key_of(options),
        defaults={"options": dict(options), "made_by": by, "total": total},
    )
    if is_new:
        transaction.on_commit(lambda: notify(ANSWER_QUERIES))
        return found
    # Its limits change only where there is something left to spend on.
    if count_missing(found):
        set_limits(found, budget=options.get("budget"), max_calls=options.get("max_calls"))
        go_on(found)
    found.refresh_from_db()
    return found


def is_answered(collection: Collection, options: Mapping[str, Any]) -> bool:
    """Return whether an evaluation of exactly these options has every answer already."""
    found = AnswerEvaluation.objects.filter(collection=collection, key=key_of(options)).first()
    return found is not None and not count_missing(found)


def set_limits(evaluation: AnswerEvaluation, *, budget: float | None, max_calls: int | None) -> None:
    """Set the evaluation's limits in all; None: no limit. Raises BadInput."""
    judges = partial(judges_of, evaluation.options)
    job_campaigns.set_job_limits(evaluation, judges, budget=budget, max_calls=max_calls)


def go_on(evaluation: AnswerEvaluation) -> bool:
    """Ask for what is missing of one that was cancelled, failed, or got new queries. False in any other state."""
    # New queries make a finished one incomplete: as failed it can be taken up again.
    if evaluation.state == JobState.READY and count_missing(evaluation):
        AnswerEvaluation.objects.filter(pk=evaluation.pk, state=JobState.READY).update(state=JobState.FAILED)
    went = leases.resume(evaluation)
    if went:
        transaction.on_commit(lambda: notify(ANSWER_QUERIES))
    return went


def cancel(evaluation: AnswerEvaluation) -> bool:
    """Cancel an evaluation; answers stay, and `go_on` asks for the rest. Returns False when it is over already."""
    return leases.cancel(evaluation, **progress_of(evaluation))


def count_wanted(collection: Collection, options: Mapping[str, Any]) -> int:
    """Count the answers that these options ask for."""
    return len(answered_queries(collection)) * len(options["runs"]) * len(options["generators"])


def count_missing(evaluation: AnswerEvaluation) -> int:
    """Count the answers that are still to be asked for."""
    wanted = [query.pk for query in answered_queries(evaluation.collection)]
    there = GeneratedAnswer.objects.filter(evaluation=evaluation, query__in=wanted).count()
    return count_wanted(evaluation.collection, evaluation.options) - there


def progress_of(evaluation: AnswerEvaluation) -> dict[str, int]:
    """Return `done` and `total` of an evaluation that nobody works on."""
    total = count_wanted(evaluation.collection, evaluation.options)
    return {"done": total - count_missing(evaluation), "total": total}
