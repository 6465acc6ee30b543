"""GET /metrics: who may read it, that it agrees with the ledger to the cent, and what else it tells."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from django.db import OperationalError, connection
from django.db.models import Sum
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from annotation.models import Role
from config.operating import instance_metrics
from jobs.models import BackgroundJob
from judges.costs import counters
from judges.models import Attempt, Campaign, Work
from judges.models.costs import Ledger
from tests.config.test_serving import serve
from tests.engine_parts import _standing_worker as _standing_worker
from tests.engine_parts import collection_of, judge, make_panel, worker
from tests.factories import client_of, make_collection, make_item, make_member, make_pair
from tests.instances import ROOT, Instance
from tests.money_scene import judged_books

__all__ = ["_standing_worker", "worker"]

pytestmark = pytest.mark.django_db
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: str) -> Samples:
    """Samples by name and labels, read by Prometheus' own parser."""
    families = list(text_string_to_metric_families(text))
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def scrape(**headers: str) -> Samples:
    answer = Client().get("/metrics", headers=headers)
    assert answer.status_code == 200 and answer["Content-Type"].startswith("text/plain")
    return read(answer.text)


def total(samples: Samples, name: str, **labels: str) -> float:
    """The sum of a metric's samples with these labels."""
    wanted = frozenset(labels.items())
    return sum(value for (known, given), value in samples.items() if known == name and wanted <= given)


def status(remote: str = "127.0.0.1", **headers: str) -> int:
    return Client(REMOTE_ADDR=remote).get("/metrics", headers=headers).status_code


def test_without_a_token_this_machine_alone_reads_it_and_with_one_whoever_shows_it(settings: Any) -> None:
    assert status() == 200 and status("::1") == 200
    assert status("10.0.0.7") == 401 and status("") == 401
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        assert status(**{name: "127.0.0.1"}) == 401, "a proxy on this machine is not its visitor"
    assert status(Host="rebound.example") == 400
    settings.PRODUCTION = True
    assert status() == 401
    settings.METRICS_TOKEN = "a-long-token"
    assert status() == 401 and status(Authorization="Bearer a-wrong-token") == 401
    assert status(Authorization="Basic a-long-token") == 401 and status(Authorization="Bearer ü") == 401
    assert status("10.0.0.7", Authorization="Bearer a-long-token", Host="10.0.0.8:8000") == 200
    refused = Client().get("/metrics")
    assert refused["WWW-Authenticate"] == "Bearer" and "QUORUM_METRICS_TOKEN" in refused.text
    assert Client().post("/metrics").status_code == 404


def agrees(samples: Samples) -> None:
    """Calls, tokens and money of every account, model and purpose are the ledger's."""
    rows = Ledger.objects.values("judge__provider", "judge__model", "role").annotate(
        *(Sum(name) for name in ("calls", "calls_cached", "calls_without_price", "tokens_in", "tokens_out", "cost"))
    )
    assert rows
    for row in rows:
        labels = {"provider": row["judge__provider"], "model": row["judge__model"], "purpose": row["role"]}
        for name in ("calls", "calls_cached", "calls_without_price"):
            assert total(samples, f"quorum_{name}_total", **labels) == row[f"{name}__sum"]
        assert total(samples, "quorum_tokens_total", kind="input", **labels) == row["tokens_in__sum"]
        assert total(samples, "quorum_tokens_total", kind="output", **labels) == row["tokens_out__sum"]
        assert total(samples, "quorum_cost_usd_total", **labels) == pytest.approx(row["cost__sum"], abs=1e-9)


def test_it_is_the_ledger_by_account_model_and_purpose_in_few_statements_that_read_no_attempts() -> None:
    judged_books()
    with CaptureQueriesContext(connection) as queries:
        samples = scrape()
    statements = [query["sql"] for query in queries]
    assert len([sql for sql in statements if sql.lstrip().startswith(("SELECT", "("))]) == 7, "pairs and names too"
    assert not any("judges_attempt" in sql or "corpus_judgment" in sql for sql in statements)
    agrees(samples)
    assert round(total(samples, "quorum_cost_usd_total"), 2) == 1.00
    assert total(samples, "quorum_calls_total", outcome="unparsed") == 4


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_scraped_during_a_campaign_it_lies_between_the_ledger_before_and_after(model_server, worker, instance) -> None:
    collection_of(150)
    slow = "yes+latency=0.1"
    make_panel(model_server, debate=(slow, slow), votes=(slow,) * 5)
    seen: list[tuple[float, float, float]] = []
    over = Event()

    def look() -> None:
        def booked() -> float:
            return float(Ledger.objects.aggregate(cost=Sum("cost"))["cost"] or 0.0)

        while not over.wait(0.1):
            seen.append((booked(), total(scrape(), "quorum_cost_usd_total"), booked()))
        connection.close()

    watcher = Thread(target=look)
    watcher.start()
    try:
        judge(check=True)
    finally:
        over.set()
        watcher.join()
    assert len({scraped for _, scraped, _ in seen}) > 3, "some while it went on"
    assert all(before - 1e-9 <= scraped <= after + 1e-9 for before, scraped, after in seen)
    samples = scrape()
    agrees(samples)
    paid = Attempt.objects.aggregate(cost=Sum("cost"))["cost"]
    assert round(total(samples, "quorum_cost_usd_total"), 2) == round(paid, 2) > 0


def test_it_tells_of_campaigns_tasks_leases_alarms_and_jobs() -> None:
    books = judged_books()
    campaign = Campaign.objects.get()
    Campaign.objects.update(state="running")
    for name, count in (("stopped:r1.m5.y", 1), ("stopped:r1.m5.n", 1), ("resumed:r1.m5.n", 1), ("pairs", 3)):
        counters.add(campaign.pk, name, count)
    pair = make_pair(books)
    make_item(pair)
    make_item(pair, "split", state="conflict")
    late, hour = timezone.now() - timedelta(seconds=90), timezone.now() - timedelta(hours=1)
    Work.objects.create(campaign=campaign, pair=pair, state="running", lease_until=late)
    BackgroundJob.objects.create(kind="exports.write", subject=1, created_at=hour)
    BackgroundJob.objects.create(kind="exports.write", subject=2, state="running", lease_until=hour)
    BackgroundJob.objects.create(kind="exports.write", subject=3, state="failed")
    samples = scrape()
    number = str(campaign.number)
    assert total(samples, "quorum_campaigns", state="running") == 1
    assert total(samples, "quorum_campaign_pairs", campaign=number, state="labelled") == 4
    assert total(samples, "quorum_campaign_pairs", campaign=number, state="waiting") == 3
    assert total(samples, "quorum_pairs_waiting") == 3
    assert total(samples, "quorum_audit_alarms", collection="books") == 1
    for state in ("open", "conflict"):
        assert total(samples, "quorum_tasks", collection="books", state=state) == 1
    assert total(samples, "quorum_leases", kind="pair") == 1
    assert 89 < total(samples, "quorum_lease_overdue_seconds", kind="pair") < 150
    for state in ("waiting", "running", "failed"):
        assert total(samples, "quorum_jobs", kind="exports.write", state=state) == 1
    assert 3599 < total(samples, "quorum_job_wait_seconds", kind="exports.write") < 3700
    assert 3599 < total(samples, "quorum_lease_overdue_seconds", kind="job") < 3700
    assert total(samples, "quorum_leases", kind="job") == 1


def test_without_redis_it_says_so_and_tells_the_rest(redis_is_unavailable: None) -> None:
    judged_books()
    samples = scrape()
    assert total(samples, "quorum_service_up", service="redis") == 0
    assert total(samples, "quorum_service_up", service="postgresql") == 1
    agrees(samples)


def test_without_postgresql_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise OperationalError("away")

    monkeypatch.setattr(instance_metrics, "read_database", away)
    monkeypatch.setattr(connection, "close", lambda: None)
    samples = scrape()
    assert total(samples, "quorum_service_up", service="postgresql") == 0
    assert total(samples, "quorum_service_up", service="redis") == 1


def test_requests_are_counted_by_view_and_not_by_what_stands_in_the_address() -> None:
    client = client_of(make_member(make_collection("books"), "alice", Role.ADMIN))
    name = "django_http_responses_total_by_status_view_method_total"
    before = scrape()
    for address in ("/c/books/", "/c/other/", "/nowhere/7/", "/nowhere/8/"):
        client.get(address)
    client.generic("BREW", "/c/books/")
    after = scrape()

    def more(**labels: str) -> float:
        return total(after, name, **labels) - total(before, name, **labels)

    assert more(view="collection", status="200") == 1 and more(view="collection", status="404") == 1
    assert more(view="<unnamed view>", status="404") == 2 and more(method="<invalid method>") == 1
    name = "django_http_requests_latency_seconds_by_view_method_count"
    assert more(method="<invalid method>") == 1 and more(method="BREW") == 0


@pytest.mark.slow
def test_each_process_of_a_served_site_answers_for_all_of_them(make_instance: Callable[..., Instance]) -> None:
    _, ready = serve(make_instance(QUORUM_WEB_PROCESSES="2").migrated(), "--judge-workers", "0")
    name = "django_http_responses_total_by_status_view_method_total"
    for _ in range(40):
        urlopen(f"{ready['url']}/accounts/login/", timeout=60).close()
    for _ in range(10):
        with urlopen(f"{ready['url']}/metrics", timeout=60) as answer:
            samples = read(answer.read().decode())
        assert total(samples, name, view="first_owner", status="200") == 40
    assert total(samples, "quorum_service_up") == 2


def test_every_expression_of_the_dashboard_and_the_alerts_names_metrics_and_labels_that_there_are() -> None:
    judged_books()
    Client().get("/accounts/login/")
    families = list(text_string_to_metric_families(Client().get("/metrics").text))
    known = {name for family in families for name in (family.name, f"{family.name}_total", f"{family.name}_bucket")}
    panels = json.loads((ROOT / "docker" / "grafana" / "quorum.json").read_text())["panels"]
    alerts = yaml.safe_load((ROOT / "docker" / "alerts.yml").read_text())
    expressions = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    expressions += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    names = [set(re.findall(r"\b(?:quorum|django)_\w+", expression)) for expression in expressions]
    assert len(expressions) > 30 and all(names)
    shown = set().union(*names)
    assert shown - known == set()
    counted = {family.name for family in families if family.name.startswith("quorum_")}
    ours = {name.removesuffix("_total").removesuffix("_bucket") for name in shown}
    assert counted - ours == set(), "a metric that no panel shows"
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)
    (job,) = yaml.safe_load((ROOT / "docker" / "prometheus.yml").read_text())["scrape_configs"]
    assert job["metrics_path"] == "/metrics" and job["authorization"]["type"] == "Bearer"
