"""Checks of the work: keys, accounts, workers, queues, leases, jobs, campaigns."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.models import Count, Max, Min, Q
from django.db.models.functions import Now
from django.utils import timezone

from config.doctor.findings import Finding, ok, problem, warn
from corpus.collections.secrets import read_secret
from corpus.errors import BadInput
from jobs.models import LeasedJob
from jobs.notifications import redis_client
from jobs.workers import live_workers
from judges.engine.account_states import read_account_states
from judges.engine.pending_answers import orphaned_files
from judges.models import Campaign, JudgeVersion, Panel, Work
from judges.models.keys import StoredKey
from judges.stored_keys import STORED, decrypt_key
from training.jobs.worker_pool import QUEUE

MOST = 5
MANY_MESSAGES = 1_000
LATE_S = 300  # Seconds after which a waiting job or an expired lease counts as stuck.
START = "start a worker: `manage.py serve --judge-workers 1`, or `docker compose up -d worker`"
START_GPU = "start one: `manage.py serve --gpu-workers 1`, or `docker compose --profile training up -d`"


def check_keys() -> Iterator[Finding]:
    """Check that the API keys that judges name are in this environment."""
    judges_by_key: dict[str, set[str]] = {}
    panels = Panel.objects.values_list("debate", "ensemble", "adjudicator")
    members = {name for debate, ensemble, other in panels for name in (*debate, *ensemble, other)}
    for judge in JudgeVersion.objects.filter(is_current=True).exclude(Q(api_key_env="") | Q(provider="offline")):
        judges_by_key.setdefault(judge.api_key_env, set()).add(judge.name)
    unset = 0
    for name, judges in sorted(judges_by_key.items()):
        try:
            if name.startswith(STORED):
                row = StoredKey.objects.filter(name=name).first()
                is_set = bool(decrypt_key(row.ciphertext if row else "", name, row.address if row else ""))
            else:
                is_set = bool(read_secret(name))
        except BadInput as error:
            remedy = "set it, or enter the key again" if name.startswith(STORED) else "let this user read the file"
            yield problem("keys", str(error), remedy)
            unset += 1
            continue
        if not is_set:
            unset += 1
            panel_judges = sorted(judges & members)
            says = f"{name} is not set here, the key of {', '.join(sorted(judges)[:MOST])}"
            remedy = f"set {name}, {name}_FILE or QUORUM_SECRETS where workers run, and run doctor there"
            yield (problem if panel_judges else warn)("keys", says, remedy)
    if not unset:
        yield ok(
            "keys", f"all {len(judges_by_key)} that judges name are set here" if judges_by_key else "no judge needs one"
        )


def check_accounts() -> Iterator[Finding]:
    """Check that the accounts of judges answer, and that no campaign is paused because of one."""
    problem_count = 0
    rows = JudgeVersion.objects.filter(is_current=True).exclude(provider="offline")
    for state in read_account_states(rows.values_list("provider", "base_url", "api_key_env")).values():
        if state.is_open:
            problem_count += 1
            yield problem(
                "accounts",
                f"{state.name} does not answer: {state.errors} errors in a row",
                "run `manage.py check_judges`, then mend the account; workers go on by themselves",
            )
    for campaign in Campaign.objects.filter(state=Campaign.State.PAUSED).exclude(paused_because="")[:MOST]:
        problem_count += 1
        name = campaign.collection.name
        yield problem(
            "accounts",
            f"campaign {campaign.number} of {name} is not moving: {campaign.paused_because[:200]}",
            f"mend the account, then run `manage.py campaign {name} resume`",
        )
    if not problem_count:
        yield ok("accounts", "none is in trouble")


def check_workers() -> Iterator[Finding]:
    """Check that workers are running if there is work."""
    running = Campaign.objects.filter(state=Campaign.State.RUNNING).exclude(policy=Campaign.Policy.LARA).count()
    workers = live_workers()
    waiting_jobs = sum(_count_unstarted(model) for model in _job_models() if model._meta.app_label != "training")
    says = f"{len(workers)} for judging with {sum(worker.slots for worker in workers)} processes"
    if workers:
        yield ok("workers", says)
    elif running or waiting_jobs:
        yield problem("workers", f"none answers, and {running} campaigns and {waiting_jobs} jobs wait", START)
    else:
        yield warn("workers", "none answers, and nothing waits", START)
    trainings = sum(_count_unstarted(model) for model in _job_models() if model._meta.app_label == "training")
    if trainings and not live_workers(QUEUE):
        yield problem("workers", f"no trainer answers, and {trainings} trainings wait", START_GPU)
    for queue in (settings.CELERY_TASK_DEFAULT_QUEUE, QUEUE):
        length: Any = redis_client().llen(f"{settings.PREFIX}:{queue}")
        if length > MANY_MESSAGES:
            yield warn("workers", f"{length:,} messages wait in the queue {queue}", START)


def _job_models() -> list[type[LeasedJob]]:
    return [model for model in apps.get_models() if issubclass(model, LeasedJob)]


def _count_unstarted(model: type[LeasedJob]) -> int:
    return int(model._default_manager.filter(state=model.WAITING).count())


def check_leases() -> Iterator[Finding]:
    """Check that no lease expired long ago."""
    # Only in running campaigns, because nobody claims pairs of others, and their leases are released.
    leased = Work.objects.filter(state=Work.State.RUNNING, campaign__state=Campaign.State.RUNNING)
    overdue = leased.aggregate(
        count=Count("pk", filter=Q(lease_until__lt=Now())), first=Min("lease_until"), at=Max(Now())
    )
    stuck_count = 0
    if overdue["count"] and (seconds := (overdue["at"] - overdue["first"]).total_seconds()) > LATE_S:
        stuck_count += 1
        yield problem(
            "leases",
            f"{overdue['count']:,} pairs are held by workers that are gone, the first for {seconds / 60:.0f} minutes",
            f"{START}; it takes them up",
        )
    for model in _job_models():
        for job in model._default_manager.filter(state=model.RUNNING, lease_until__lt=Now())[:MOST]:
            seconds = (timezone.now() - job.lease_until).total_seconds() if job.lease_until else 0.0
            if seconds > LATE_S:
                stuck_count += 1
                yield problem(
                    "leases",
                    f"{job.log_name} is held by a worker that is gone since {seconds / 60:.0f} minutes",
                    f"{START_GPU if model._meta.app_label == 'training' else START}; it continues from what is stored",
                )
    if not stuck_count:
        yield ok("leases", "none ran out long ago")


def check_jobs() -> Iterator[Finding]:
    """Check that no job has been waiting for long, and that none has failed today."""
    problem_count = 0
    for model in _job_models():
        for job in model._default_manager.filter(state=model.WAITING).order_by("created_at")[:1]:
            seconds = (timezone.now() - job.created_at).total_seconds()
            if seconds > LATE_S:
                problem_count += 1
                yield warn(
                    "jobs",
                    f"{job.log_name} waits for {seconds / 60:.0f} minutes",
                    "more workers, or wait for what runs",
                )
        for job in model._default_manager.filter(state=model.FAILED).order_by("-pk")[:1]:
            if job.ended_at is not None and (timezone.now() - job.ended_at).days < 1:
                problem_count += 1
                reason = (job.error.splitlines() or ["no reason is known"])[0][:200]
                yield warn(
                    "jobs", f"{job.log_name} failed: {reason}", "mend what it names, and start it again on its page"
                )
    if not problem_count:
        yield ok("jobs", "none waits for long, none failed today")


def check_pending_answers() -> Iterator[Finding]:
    """Check that no paid answers are left in the files of dead workers."""
    with orphaned_files(settings.VAR / "spool") as files:
        nonempty = [path for path in files if path.stat().st_size]
    if nonempty:
        yield warn(
            "answers", f"{len(nonempty)} files of answers are left by workers that are gone", f"{START}; it stores them"
        )
    else:
        yield ok("answers", "none waits in a file of a worker that is gone")
