"""Metrics of the whole instance, read from PostgreSQL and Redis for each scrape, so every process answers the same.

Costs and calls come from the ledger (judges.models.costs), which is written in the transaction that stores a call, so
they agree to the cent at any moment. A scrape runs four statements over counters and partial indexes, and one that
counts pairs (of large collections every 15 seconds); none reads attempts. The help texts mark metrics of a single node:
its pending answers and its disk.
"""

import logging
import shutil
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from config.operating.logs import first_line
from corpus.models import Collection
from jobs import workers as job_workers
from jobs.models import BackgroundJob, LeasedJob
from jobs.notifications import redis_client
from judges.campaigns.pair_states import recent_states
from judges.engine.account_states import Account, read_account_states
from judges.engine.route_breakers import RESUMED, STOPPED
from store.sql import read_sql
from training.jobs.worker_pool import QUEUE

logger = logging.getLogger(__name__)
PATIENCE_MS = 5_000  # Time limit of each statement.

LEDGER = """
SELECT v.provider, v.base_url, v.api_key_env, v.model, l.role, l.outcome,
    sum(l.calls)::bigint, sum(l.calls_cached)::bigint, sum(l.calls_without_price)::bigint, sum(l.tokens_in)::bigint,
    sum(l.tokens_cached)::bigint, sum(l.tokens_written)::bigint, sum(l.tokens_out)::bigint,
    sum(l.tokens_reasoning)::bigint, sum(l.cost), sum(l.cost_assumed)
FROM judges_ledger l JOIN judges_judgeversion v ON v.id = l.judge_id
GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6"""

# Counters of running campaigns, and of all campaigns the routes that an audit stopped or an admin resumed.
TALLIES = """
SELECT n.name, c.number, t.key, sum(t.value)
FROM judges_tally t JOIN judges_campaign c ON c.id = t.campaign_id JOIN corpus_collection n ON n.id = c.collection_id
WHERE t.key LIKE %(stopped)s OR t.key LIKE %(resumed)s OR (c.state = 'running' AND (
    t.key IN ('pairs', 'failed', 'written') OR t.key LIKE 'labelled:%%' OR t.key LIKE 'escalated:%%'))
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""

QUEUES = read_sql(__file__, "count_queues")

JOBS = """
SELECT {kind}, state, count(*), extract(epoch FROM now() - min(lease_until) FILTER (WHERE state = '{running}'))::float8,
    extract(epoch FROM now() - min(created_at) FILTER (WHERE state = '{waiting}'))::float8
FROM {table} GROUP BY 1, 2"""

ACCOUNT = ["account", "provider", "model", "purpose"]


class InstanceCollector(Collector):
    """Collects all metrics for a scrape."""

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("quorum_service_up", "1: the service answers.", labels=["service"])
        accounts: set[Account] = set()
        try:
            rows = read_database()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("metrics cannot be read from PostgreSQL: %s", first_line(error))
            connection.close()
            up.add_metric(["postgresql"], 0)
        else:
            up.add_metric(["postgresql"], 1)
            accounts = {(provider, url, key) for provider, url, key, *_ in rows["ledger"] if provider != "offline"}
            yield from ledger_metrics(rows["ledger"])
            yield from campaign_metrics(rows["tallies"])
            yield from queue_metrics(rows["queues"], rows["jobs"])
            yield from pair_metrics()
        try:
            yield from redis_metrics(accounts)
            up.add_metric(["redis"], 1)
        except (RedisError, OSError):
            up.add_metric(["redis"], 0)
        yield from node_metrics()
        yield up


def read_database() -> dict[str, list[Any]]:
    """Return the rows of all statements, each with a time limit."""
    routes = {"stopped": f"{STOPPED}%", "resumed": f"{RESUMED}%"}
    statements = {"ledger": (LEDGER, None), "tallies": (TALLIES, routes), "queues": (QUEUES, None)}
    job_statements = []
    for model in apps.get_models():
        if issubclass(model, LeasedJob):
            kind = "kind" if model is BackgroundJob else f"'{model._meta.label_lower}'"
            table = connection.ops.quote_name(model._meta.db_table)
            statement = JOBS.format(kind=kind, table=table, running=model.RUNNING, waiting=model.WAITING)
            job_statements.append(f"({statement})")
    statements["jobs"] = (" UNION ALL ".join(job_statements), None)
    rows = {}
    # In one transaction, so that the time limit ends with it and does not stay with a pooled connection.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {PATIENCE_MS}")
        for name, (statement, values) in statements.items():
            cursor.execute(statement, values)
            rows[name] = cursor.fetchall()
    return rows


def account_name(account: Account) -> str:
    """Return the name of an account on pages and in logs."""
    return " ".join(part for part in account if part)


def ledger_metrics(rows: list[Any]) -> Iterator[Metric]:
    """Yield calls, tokens and costs of all campaigns that still exist."""
    calls = CounterMetricFamily("quorum_calls", "Calls sent to models.", labels=[*ACCOUNT, "outcome"])
    cached = CounterMetricFamily("quorum_calls_cached", "Calls answered by an earlier, equal one.", labels=ACCOUNT)
    unpriced = CounterMetricFamily("quorum_calls_without_price", "Calls of unknown cost.", labels=ACCOUNT)
    tokens = CounterMetricFamily(
        "quorum_tokens",
        "Tokens: input (with cached and written ones), output (with reasoning).",
        labels=[*ACCOUNT, "kind"],
    )
    cost = CounterMetricFamily("quorum_cost_usd", "USD of the calls whose cost is known.", labels=ACCOUNT)
    assumed = CounterMetricFamily("quorum_cost_assumed_usd", "USD at most of the others.", labels=ACCOUNT)
    kinds = ("input", "cached_input", "written_input", "output", "reasoning_output")
    sums: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0] * 9)
    for provider, url, key, model, role, outcome, call_count, *counts in rows:
        labels = (account_name((provider, url, key)), provider, model, role)
        calls.add_metric([*labels, outcome], call_count)
        sums[labels] = [total + float(count) for total, count in zip(sums[labels], counts, strict=True)]
    for account, (cached_calls, unpriced_calls, *token_counts, known_cost, assumed_cost) in sums.items():
        cached.add_metric(account, cached_calls)
        unpriced.add_metric(account, unpriced_calls)
        for kind, count in zip(kinds, token_counts, strict=True):
            tokens.add_metric([*account, kind], count)
        cost.add_metric(account, known_cost)
        assumed.add_metric(account, assumed_cost)
    yield from (calls, cached, unpriced, tokens, cost, assumed)


def campaign_metrics(rows: list[Any]) -> Iterator[Metric]:
    """Yield the progress of running campaigns, and the routes that audits stopped."""
    pairs = GaugeMetricFamily("quorum_campaign_pairs", "Pairs.", labels=["collection", "campaign", "state"])
    waiting_pairs = GaugeMetricFamily("quorum_pairs_waiting", "Pairs of running campaigns without an outcome yet.")
    alarms = GaugeMetricFamily(
        "quorum_audit_alarms", "Routes to a label that an audit stopped and no admin let go on.", labels=["collection"]
    )
    states: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    routes: dict[tuple[str, int, str], dict[str, bool]] = defaultdict(dict)
    for collection, campaign, key, value in rows:
        name, _colon, rest = key.partition(":")
        if f"{name}:" in (STOPPED, RESUMED):
            routes[collection, campaign, rest][f"{name}:"] = value > 0
        else:
            states[collection, campaign][name] += value
    for (collection, campaign), counts in states.items():
        # Workers write the shards of a counter while they are read, so the difference could be negative.
        total = counts.pop("pairs", 0.0)
        counts["waiting"] = max(0.0, total - sum(counts.values()))
        for state, count in counts.items():
            pairs.add_metric([collection, str(campaign), state], count)
    # Also without a running campaign, because autoscalers treat a missing metric as an error.
    waiting_pairs.add_metric([], sum(counts["waiting"] for counts in states.values()))
    alarm_counts: dict[str, int] = defaultdict(int)
    for (collection, _campaign, _route), flags in routes.items():
        alarm_counts[collection] += flags.get(STOPPED, False) and not flags.get(RESUMED, False)
    for collection, count in alarm_counts.items():
        alarms.add_metric([collection], count)
    yield from (pairs, waiting_pairs, alarms)


def pair_metrics() -> Iterator[Metric]:
    """Yield every collection's pairs by state: the figures of the page Overview and of the command `status`."""
    pairs = GaugeMetricFamily("quorum_pairs", "Pairs, by people or models.", labels=["collection", "state"])
    names = dict(Collection.objects.order_by("name").values_list("pk", "name"))
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {PATIENCE_MS}")
            states = recent_states(names)
    except DatabaseError as error:  # All other metrics are still valid.
        logger.warning("pairs cannot be counted: %s", first_line(error))
        return
    for key, name in names.items():
        for state, count in states[key].counts.items():
            pairs.add_metric([name, state.value], count)
    yield pairs


def queue_metrics(queues: list[Any], jobs: list[Any]) -> Iterator[Metric]:
    """Yield waiting tasks and jobs, leases, and expired leases."""
    campaigns = GaugeMetricFamily("quorum_campaigns", "Campaigns.", labels=["state"])
    tasks = GaugeMetricFamily("quorum_tasks", "Tasks of people.", labels=["collection", "state"])
    leases = GaugeMetricFamily("quorum_leases", "Pairs, jobs and tasks that are held.", labels=["kind"])
    overdue = GaugeMetricFamily(
        "quorum_lease_overdue_seconds", "Seconds since the first lease ran out that nobody renewed.", labels=["kind"]
    )
    states = GaugeMetricFamily("quorum_jobs", "Background jobs.", labels=["kind", "state"])
    waiting_times = GaugeMetricFamily("quorum_job_wait_seconds", "Age of the oldest waiting job.", labels=["kind"])
    lease_counts = {"job": 0}
    overdue_seconds = {"job": 0.0}
    for row_kind, first, second, count, seconds in queues:
        if row_kind == "campaign":
            campaigns.add_metric([first], count)
        elif row_kind == "task":
            tasks.add_metric([first, second], count)
        else:
            lease_counts[first], overdue_seconds[first] = count, seconds or 0.0
    for kind, state, count, seconds, waited in jobs:
        states.add_metric([kind, state], count)
        if seconds is not None:
            lease_counts["job"] += count
            overdue_seconds["job"] = max(overdue_seconds["job"], seconds)
        if waited is not None:
            waiting_times.add_metric([kind], max(0.0, waited))
    for kind in lease_counts:
        leases.add_metric([kind], lease_counts[kind])
        overdue.add_metric([kind], max(0.0, overdue_seconds[kind]))
    yield from (campaigns, tasks, leases, overdue, states, waiting_times)


def redis_metrics(accounts: set[Account]) -> Iterator[Metric]:
    """Yield live workers, waiting messages, and the states of models' accounts. Raises RedisError."""
    workers = GaugeMetricFamily("quorum_workers", "Workers that say that they live.", labels=["queue"])
    slots = GaugeMetricFamily("quorum_worker_slots", "What they do at once.", labels=["queue"])
    messages = GaugeMetricFamily("quorum_queue_messages", "Messages that no worker has taken.", labels=["queue"])
    for queue in (settings.CELERY_TASK_DEFAULT_QUEUE, QUEUE):
        live = job_workers.live_workers(queue)
        workers.add_metric([queue], len(live))
        slots.add_metric([queue], sum(worker.slots for worker in live))
        messages.add_metric([queue], int(redis_client().llen(f"{settings.PREFIX}:{queue}")))
    yield from (workers, slots, messages)
    calls_in_flight = GaugeMetricFamily("quorum_account_calls_in_flight", "Calls that are out.", labels=["account"])
    errors = GaugeMetricFamily("quorum_account_errors_in_a_row", "Errors since the last answer.", labels=["account"])
    circuits = GaugeMetricFamily("quorum_account_circuit_open", "1: one call at a time tries it.", labels=["account"])
    pause = GaugeMetricFamily("quorum_account_wait_seconds", "Until it is asked again.", labels=["account"])
    for state in read_account_states(accounts).values():
        calls_in_flight.add_metric([state.name], state.calls_in_flight)
        errors.add_metric([state.name], state.errors)
        circuits.add_metric([state.name], int(state.is_open))
        pause.add_metric([state.name], max(state.pause_seconds, state.open_seconds))
    yield from (calls_in_flight, errors, circuits, pause)


def node_metrics() -> Iterator[Metric]:
    """Yield the metrics of this machine: answers that wait for PostgreSQL, and disk space."""
    sizes = []
    for path in (settings.VAR / "spool").glob("*.jsonl"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:  # Committed in the meantime.
            continue
    yield GaugeMetricFamily(
        "quorum_pending_answer_bytes", "Answers on this node that are not committed yet.", value=sum(sizes)
    )
    usage = shutil.disk_usage(settings.VAR)
    yield GaugeMetricFamily("quorum_disk_free_bytes", "Room for QUORUM_VAR on this node.", value=usage.free)
    yield GaugeMetricFamily("quorum_disk_size_bytes", "Of the disk of QUORUM_VAR on this node.", value=usage.total)
