"""What a collection counts is called by numbers that begin at 1 in each collection, at every door."""

import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from actions.services import Actor
from annotation.access.audit_log.recording import record
from annotation.exports.options import ExportOptions
from annotation.exports.services import create_export
from annotation.models import Membership, Role, Study
from annotation.models.comparisons import ComparisonSet
from annotation.models.imports import FileImport
from annotation.models.judged_comparisons import ComparisonJudging
from annotation.models.pair_table import BulkAct
from annotation.models.quality_control import GoldSet
from annotation.models.snapshots import Snapshot
from annotation.models.web_search import WebSearch
from api.models import Webhook
from api.tokens import make_token
from benchmark.models import AgentJob, AgentSample, AnswerEvaluation, Filling, Gate, Report, Synthesis
from corpus.collections.removal import delete_collection
from corpus.models import LastNumber
from corpus.numbered import find_numbered
from judges.models import Campaign
from tests.called import call
from tests.evidence import make_campaign
from tests.factories import client_of, make_collection, make_member, make_pair
from tests.imported_files import bring
from tests.site.test_permissions import filling_of, gate_of, report_of, run_and_qrels
from training.models import CurvePoint, Job, LearningCurve


@dataclass(frozen=True)
class NumberedKind:
    """A kind of numbered rows: how one is made, and where it is called by its number."""

    model: Any
    make: Callable[[Membership], Any]
    page: str = ""  # Its address below the collection's, with {} for the number.
    shown: str = ""  # The page that links to `page`.
    api: str = ""  # Its list in the API.


def make_simple(model: Any, **fields: Any) -> Callable[[Membership], Any]:
    return lambda admin: model._default_manager.create(collection=admin.collection, **fields)


def make_keyed(model: Any, **fields: Any) -> Callable[[Membership], Any]:
    """Of rows that are made once for all that they depend on."""
    return lambda admin: make_simple(model, key=secrets.token_hex(), **fields)(admin)


def make_of_run(make: Callable[..., Any]) -> Callable[[Membership], Any]:
    return lambda admin: make(*run_and_qrels(admin.collection))


make_gate = make_of_run(gate_of)


def make_evaluation(admin: Membership) -> AnswerEvaluation:
    run, _qrels = run_and_qrels(admin.collection)
    options = {"runs": [run.pk], "generators": ["j"], "judge": "j", "k": 10, "contexts": "document", "characters": 9}
    return make_keyed(AnswerEvaluation, options=options)(admin)


def make_agent_job(admin: Membership) -> AgentJob:
    about = {"seed": 0, "per_member": 1, "queries": {str(admin.collection.pk): []}}
    sample, _is_new = AgentSample.objects.get_or_create(collection=admin.collection, defaults=about)
    options = {"protocol": "fixed", "rounds": 1, "tokens": 2048, "tokenizer": "pieces", "agents": {}, "retrievers": []}
    return make_keyed(AgentJob, kind="search", sample=sample, options=options)(admin)


def make_judging(admin: Membership) -> ComparisonJudging:
    comparison_set = ComparisonSet.objects.create(collection=admin.collection)
    options = {"set": comparison_set.pk, "judges": ["j"], "versions": ["j@1"]}
    return make_keyed(ComparisonJudging, set=comparison_set, options=options)(admin)


HOOK = "https://ice.example/hook"
JUDGED = {"judge": "offline", "writer": "offline", "limit": None, "seed": 0, "dev": 0.0, "fetch": False}
KINDS = (
    NumberedKind(
        Campaign, lambda admin: make_campaign(admin.collection, [], policy="human", state="running"),
        "campaigns/{}/ledger/", "campaigns/", "campaigns",
    ),
    NumberedKind(
        FileImport, lambda admin: FileImport.objects.create(collection=admin.collection, owner=admin.user),
        "import/{}/", "import/", "imports",
    ),
    NumberedKind(
        Snapshot, lambda admin: create_export(Actor("alice"), admin.collection, ExportOptions(format="csv")),
        "exports/{}/manifest.json", api="exports",
    ),
    NumberedKind(
        Job, make_simple(Job, folder="/nowhere", options={"recipe": "prism", "base": "/nowhere", "export": "/nowhere"}),
        "training/jobs/{}/", "training/curves/1/", "trainings",
    ),
    NumberedKind(
        Filling, make_of_run(filling_of), "benchmark/hole-filling/{}/", "benchmark/hole-filling/", "hole-fillings",
    ),
    NumberedKind(Gate, make_gate, "benchmark/gate/{}/", "benchmark/gate/"),
    NumberedKind(Report, make_of_run(report_of), "benchmark/report/{}/", api="reports"),
    NumberedKind(AnswerEvaluation, make_evaluation, "benchmark/answers/{}/", "benchmark/answers/"),
    NumberedKind(AgentJob, make_agent_job, "benchmark/agents/{}/traces/", "benchmark/agents/"),
    NumberedKind(Synthesis, make_keyed(Synthesis, options=JUDGED), "benchmark/synthesis/{}/", "benchmark/synthesis/"),
    NumberedKind(WebSearch, make_keyed(WebSearch, options=JUDGED), "import/web/{}/", "import/web/"),
    NumberedKind(ComparisonJudging, make_judging, "comparisons/judges/{}/", "comparisons/1/"),
    NumberedKind(LearningCurve, make_simple(LearningCurve, recipe="prism"), "training/curves/{}/", "training/curves/"),
    NumberedKind(Study, make_simple(Study)),
    NumberedKind(GoldSet, make_simple(GoldSet), "gold/{}/", "gold/"),
    NumberedKind(
        BulkAct, lambda admin: make_simple(BulkAct, kind="send", state="done", pairs=[], made_by=admin.user)(admin),
        "pairs/actions/{}/", "pairs/actions/", "pair-acts",
    ),
    NumberedKind(
        Webhook, lambda admin: make_simple(Webhook, url=HOOK, events=["export.ready"], made_by=admin.user)(admin),
        "webhooks/{}/", "webhooks/", "webhooks",
    ),
)  # fmt: skip


def make_each(admin: Membership) -> list[Any]:
    """One row of each kind in the admin's collection."""
    return [kind.make(admin) for kind in KINDS]


@pytest.fixture
def admins(db: None) -> tuple[Membership, Membership]:
    """Admins of two collections, which have had two and one of each kind."""
    alice = make_member(make_collection("birds"), "alice", Role.ADMIN)
    bob = make_member(make_collection("stones"), "bob", Role.ADMIN)
    for admin in (alice, bob, alice):
        make_pair(admin.collection)
        make_each(admin)
    for curve in LearningCurve.objects.all():
        job = Job.objects.get(collection=curve.collection, number=curve.number)
        CurvePoint.objects.create(curve=curve, job=job, asked=500)
    return alice, bob


@pytest.mark.django_db
def test_calls_outside_campaigns_take_no_number_of_a_campaign_and_jobs_of_no_collection_have_their_own() -> None:
    terns = make_collection("terns")
    policies = ("retrieval", "ensemble", "retrieval", "single")
    numbers = [make_campaign(terns, [], policy=policy).number for policy in policies]
    assert [number for number in numbers if number < 1_000_000] == [1, 2]
    assert [number - 1_000_000 for number in numbers if number > 1_000_000] == [1, 2]
    client = client_of(make_member(terns, "terns-admin", Role.ADMIN))
    filters = dict(client.get("/c/terns/pairs/").context["choices"]["campaigns"])
    assert list(filters) == ["2", "1"], "only campaigns that have pairs"
    assert client.get(f"/c/terns/campaigns/{numbers[0]}/ledger/").status_code == 200
    assert [Job.objects.create(folder="/nowhere").number for _ in range(2)] == [1, 2]


def test_each_collection_counts_its_own(admins: tuple[Membership, Membership]) -> None:
    for kind in KINDS:
        rows: Any = kind.model._default_manager.order_by("pk")
        assert list(rows.values_list("collection__name", "number")) == [("birds", 1), ("stones", 1), ("birds", 2)]
    stones = admins[1].collection
    assert find_numbered(Campaign.objects, stones, "1") == Campaign.objects.get(collection=stones)
    for odd in (0, -1, 2, None, "x", "\u0661", "1e0", 1 << 40, "9" * 30):
        assert find_numbered(Campaign.objects, stones, odd) is None


def test_the_pages_of_a_second_collection_speak_of_its_first(admins: tuple[Membership, Membership]) -> None:
    client = client_of(admins[1])
    page = client.get("/c/stones/campaigns/").text
    assert 'id="campaign-1"' in page and "campaign-2" not in page
    assert client.post("/c/stones/campaigns/1/pause/")["Location"] == "/c/stones/campaigns/#campaign-1"
    assert Campaign.objects.get(collection__name="stones").state == "paused"
    assert Campaign.objects.filter(collection__name="birds", state="paused").count() == 0
    assert "<h1>Ledger of campaign 1" in client.get("/c/stones/campaigns/1/ledger/").text
    csv = client.get("/c/stones/campaigns/1/ledger.csv")
    assert 'filename="stones-campaign-1-ledger.csv"' in csv["Content-Disposition"]
    assert client.get("/c/stones/pairs/?campaign=1&state=open").status_code == 200
    assert 'href="/c/stones/import/1/"' in client.get("/c/stones/import/").text
    assert "<span>1</span>" in client.get("/c/stones/import/1/").text
    assert bring(client, "stones", {"docs.csv": "doc_id,text\nd1,a\n"}).number == 2
    log = client.get("/c/stones/audit-log/").text
    assert 'href="/c/stones/campaigns/#campaign-1">Campaign 1</a>' in log and "Export 1</a>" in log


def test_every_kind_is_shown_and_found_by_its_number(admins: tuple[Membership, Membership]) -> None:
    client = client_of(admins[1])
    assert 'id="study-1-h"' in client.get("/c/stones/debate-effect/").text
    for kind in KINDS:
        if not kind.page:
            continue
        address = f"/c/stones/{kind.page.format(1)}"
        assert client.get(address).status_code == 200, address
        assert not kind.shown or f'"{address}' in client.get(f"/c/stones/{kind.shown}").text, kind.shown
        assert client.get(f"/c/stones/{kind.page.format(2)}").status_code == 404, address
        assert client.get(f"/c/birds/{kind.page.format(2)}").status_code == 404, address
    for act, detail, link in (
        ("training.control", "job", 'training/jobs/1/">Training job 1</a>'),
        ("agents.control", "job", 'benchmark/agents/">Agent job 1</a>'),
        ("synthesis.control", "synthesis", 'benchmark/synthesis/1/">Synthesis 1</a>'),
        ("answers.control", "evaluation", 'benchmark/answers/1/">Evaluation 1</a>'),
    ):
        record(admins[1].user, act, admins[1].collection, **{detail: 1, "what": "cancel"})
        assert f'href="/c/stones/{link}' in client.get("/c/stones/audit-log/").text, act


def test_a_number_of_another_collection_is_not_found(admins: tuple[Membership, Membership]) -> None:
    client = client_of(admins[1])
    for path in ("pairs/?campaign=2", "?campaign=2"):
        assert client.get(f"/c/stones/{path}").status_code == 404, path
        assert client.get(f"/c/birds/{path}").status_code == 404, path
    cancels = (f"{room}/2/cancel/" for room in ("campaigns", "import", "training/jobs"))
    for path in (*cancels, "audits/2/to-people/?route=r1.m5.y"):
        assert client.post(f"/c/stones/{path}").status_code == 404, path
    assert not Campaign.objects.filter(state="cancelled").exists()


def test_commands_take_and_print_the_number(admins: tuple[Membership, Membership]) -> None:
    status = call("status", "stones", "--campaign", "1", "--json").json
    assert (status["collection"], status["campaign"], status["policy"]) == ("stones", 1, "human")
    assert call("campaign", "stones", "pause").out.startswith("campaign 1 is paused")
    assert call("ledger", "stones", "--campaign", "1", "--json").json["campaign"] == 1
    refused = call("status", "stones", "--campaign", "2")
    assert refused.code == 2 and "campaign 2" in refused.err


def test_the_api_lists_and_finds_by_the_number(client: Client, admins: tuple[Membership, Membership]) -> None:
    about = {"name": "t", "scopes": ("read",), "days": 1}
    tokens = {admin.collection.name: make_token(admin.user, None, **about)[1] for admin in admins}

    def read(collection: str, path: str, of: str = "") -> Any:
        headers = {"Authorization": f"Bearer {tokens[of or collection]}"}
        return client.get(f"/api/v1/collections/{collection}/{path}", headers=headers)

    for kind in filter(None, (one.api for one in KINDS)):
        assert [one["number"] for one in read("stones", kind).json()["items"]] == [1], kind
        first = read("birds", f"{kind}?limit=1").json()
        assert (first["items"][0]["number"], first["next"]) == (1, 1), kind
        assert [one["number"] for one in read("birds", f"{kind}?after=1").json()["items"]] == [2], kind
        assert read("birds", f"{kind}?after={(1 << 63) - 1}").json()["items"] == [], kind
        assert read("stones", f"{kind}/1").status_code == 200
        for path, of in ((f"{kind}/2", "stones"), (f"{kind}/{1 << 62}", "stones"), (f"{kind}/1", "birds")):
            assert read("stones", path, of).status_code == 404, (path, of)
    assert read("stones", "campaigns/1").json()["status"]["campaign"] == 1


def test_a_number_is_not_given_again_and_goes_with_its_collection(admins: tuple[Membership, Membership]) -> None:
    alice, bob = admins
    FileImport.objects.get(collection=alice.collection, number=2).delete()
    assert make_each(alice)[1].number == 3, "a page that is still open must not start another import"
    deleted = delete_collection(bob.collection)
    assert "last numbers" not in deleted and not LastNumber.objects.filter(collection=bob.collection_id).exists()


@pytest.mark.django_db(transaction=True)
def test_rows_that_are_made_at_once_get_numbers_of_their_own() -> None:
    alice = make_member(make_collection("birds"), "alice", Role.ADMIN)
    make_pair(alice.collection)
    token = make_token(alice.user, None, name="t", scopes=("read", "manage"), days=1)[1]
    gate, codes = threading.Barrier(6), []

    def make(place: int) -> None:
        gate.wait()
        try:
            if place % 2:
                make_each(alice)
            else:  # In a transaction of one view (REPEATABLE READ), which sees no number that was given meanwhile.
                headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": str(place)}
                path, body = "/api/v1/collections/birds/exports", {"format": "csv"}
                codes.append(Client().post(path, body, content_type="application/json", headers=headers).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(make, range(6)))
    assert codes == [201, 201, 201]
    assert sorted(Snapshot.objects.values_list("number", flat=True)) == [1, 2, 3, 4, 5, 6]
    for kind in KINDS:
        if kind.model is not Snapshot:
            assert sorted(kind.model._default_manager.values_list("number", flat=True)) == [1, 2, 3], kind
