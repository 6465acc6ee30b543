"""Access, walked: every address that the site has, as everybody who may come along (check 20)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from secrets import token_hex

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from annotation.access.permissions import ALLOWED
from annotation.models import Assignment, Guideline, Membership, Role, Study, User
from annotation.models.aspects import PassageDraft
from annotation.models.comparisons import ComparisonSet
from annotation.models.imports import FileImport, Upload
from annotation.models.judged_comparisons import ComparisonJudging
from annotation.models.pair_table import BulkAct
from annotation.models.sharing import ShareLink
from annotation.models.snapshots import QuerySplit
from annotation.models.web_search import SearchedQuery, WebSearch, WebSearchResult
from annotation.people.accounts import members
from api.models import Webhook, WebhookDelivery
from benchmark import models as bench
from benchmark.hole_filling.funnel import Funnel
from corpus.access import needed_action
from corpus.aspects import revising
from corpus.aspects.entries import Wording
from corpus.models import Assessor, Collection, Item, Judgment, Pair
from corpus.models.aspects import AspectReview
from judges.models import Campaign
from tests.evidence import make_judge
from tests.factories import make_collection, make_endpoint, make_item, make_member, make_pair, make_query, make_user
from tests.reading import holds
from tests.stages import first_quick
from training.models import CurvePoint, Job, LearningCurve, Model

pytestmark = pytest.mark.django_db

JOB = {"recipe": "prism", "base": "tiny:qwen3", "data": "/nowhere", "out": "/nowhere"}

WHO = ["visitor", "stranger", "outsider", "viewer", "annotator", "adjudicator", "admin", "owner"]
QUICK = ("visitor", "outsider", "viewer", "annotator")  # The others walk in the second stage.
"""Not signed in; signed in without any membership; admin of another collection; the roles; an owner, no member."""
ROLE = {
    "viewer": Role.VIEWER,
    "annotator": Role.ANNOTATOR,
    "adjudicator": Role.ADJUDICATOR,
    "admin": Role.ADMIN,
    "owner": Role.ADMIN,
}


@dataclass(frozen=True)
class Route:
    """An address with everything in it filled, and the action that its view names."""

    name: str
    path: str
    action: str | None


def routes(world: "World") -> Iterator[Route]:
    yield from _walk(get_resolver().url_patterns, "/", world)


def _walk(patterns: Sequence[URLPattern | URLResolver], prefix: str, world: "World") -> Iterator[Route]:
    for pattern in patterns:
        here = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if pattern.namespace != "api":  # tests/api walks it: its door is a token
                yield from _walk(pattern.url_patterns, here, world)
        elif isinstance(pattern, URLPattern):
            yield Route(pattern.name or here, world.fill(here), getattr(pattern.callback, "action", None))


SYNTHESIS = {"judge": "offline-rewriter", "writer": "offline-rewriter", "seed": 0, "dev": 0.0}
ABOUT = {"query_id": "q-1", "query": "Why do birds sing?", "type": "factual", "persona": "A listener"}
BUNDLE = {**ABOUT, "seed": {"query_id": "q"}, "answer": "", "positives": [], "negatives": []}
FUNNEL = Funnel.begun(pool=0, judged=0, candidates=0, people_labelled=0).document
COUNTS = {"queries": 0, "judged": 0, "relevant": 0, "origins": {}}

ANSWERED = {"generators": ["j"], "judge": "j", "k": 10, "contexts": "document", "characters": 4000}


def evaluation_of(pair: Pair, run: bench.Run) -> bench.AnswerEvaluation:
    """Answers to the pair's query from a run."""
    options = {**ANSWERED, "runs": [run.pk]}
    found = bench.AnswerEvaluation.objects.create(collection=pair.collection, key="k", state="ready", options=options)
    about = {"query": pair.query, "run": run, "generator": "j", "answer": "yes", "correct": True}
    about |= {"documents": [pair.document_id], "document_length": 5, "context_length": 5}
    bench.GeneratedAnswer.objects.create(evaluation=found, **about)
    return found


def run_and_qrels(collection: Collection) -> tuple[bench.Run, bench.Qrels]:
    """The run and the version of the qrels that everything of the collection's benchmark is about."""
    about = {"kind": "bm25", "state": "ready", "depth": 10}
    run, _is_new = bench.Run.objects.get_or_create(collection=collection, name="bm25", defaults=about)
    about = {"kind": "original", "counts": COUNTS}
    return run, bench.Qrels.objects.get_or_create(collection=collection, number=1, defaults=about)[0]


def filling_of(run: bench.Run, qrels: bench.Qrels) -> bench.Filling:
    filling = bench.Filling.objects.create(collection=run.collection, depth=10, before=qrels, funnel=FUNNEL)
    filling.runs.add(run)
    return filling


def report_of(run: bench.Run, qrels: bench.Qrels) -> bench.Report:
    about = {"before": qrels, "after": qrels, "key": token_hex(), "options": {"runs": [run.pk], "k": 10, "seed": 0}}
    return bench.Report.objects.create(collection=run.collection, **about)


def gate_of(run: bench.Run, qrels: bench.Qrels) -> bench.Gate:
    """A verdict on a run, here beside itself, which unjudged documents decide."""
    values = {"old": 0.5, "new": 0.4, "change": -0.1, "low": -0.2, "high": 0.0, "least": -0.1, "most": 0.1}
    outcome = {**values, "lowest": -0.2, "highest": 0.2, "max_drop": 0.01, "is_exact": True}
    result = {
        "verdict": "cannot_tell", "cause": "unjudged", "reason": "Judge.", "run": run.name, "against": run.name,
        "measures": {"P@1": {**outcome, "verdict": "cannot_tell", "cause": "unjudged"}}, "order": ["P@1"],
        "queries": 1, "deciding_pairs": 1, "missing": {"run": 0, "against": 0}, "unmeasured": 0, "level": 0.05,
        "qrels": qrels.number, "depth": 1, "confidence": 0.95, "weights": "plain", "without_count": 0,
        "losses": {"measure": "P@1", "queries": []},
    }  # fmt: skip
    options = {"measures": "P@1", "max_drop": 0.01, "confidence": 0.95, "weights": "plain", "qrels": None}
    about = {"verdict": "cannot_tell", "options": options, "result": result}
    gate = bench.Gate.objects.create(collection=run.collection, run=run, against=run, **about)
    gate.refresh_from_db()
    return gate


def traced_by_an_agent(pair: Pair) -> tuple[bench.AgentJob, bench.Trace]:
    """What an agent searched and answered about the pair's query."""
    collection = pair.collection
    queries = {str(collection.pk): [pair.query_id]}
    sample = bench.AgentSample.objects.create(collection=collection, seed=0, per_member=1, queries=queries)
    options = {"protocol": "fixed", "rounds": 1, "tokens": 2048, "tokenizer": "pieces", "agents": {"j": 1}}
    options["retrievers"] = [{"name": "bm25", "kind": "bm25", "recipe": {}}]
    job = bench.AgentJob.objects.create(collection=collection, kind="search", key="k", sample=sample, options=options)
    rounds = [{"search": "birds", "returned": [pair.document.external_id], "truncated": []}]
    answers = [{"round": 1, "answer": "So.", "confidence": 9, "citations": [], "unknown_citations": [], "problem": ""}]
    whole = {"rounds": rounds, "answers": answers, "stop": "rounds", "searches": 1}
    return job, bench.Trace.objects.create(job=job, query=pair.query, retriever="bm25", agent="j", **whole)


def reference_study_of(pair: Pair, writer: Assessor) -> bench.StudyAnswer:
    """An open study of two queries' reference answers: a person wrote about one, and the other one is free."""
    collection = pair.collection
    job = bench.AgentJob.objects.create(collection=collection, kind="reference", key="r", state="ready")
    queries = (pair.query, make_query(collection, "Why do birds fly?"))
    written, free = (job.references.create(query=one, answer="So.", model="m") for one in queries)
    about = {"seed": 0, "references": [written.pk, free.pk]}
    study = bench.ReferenceStudy.objects.create(collection=collection, job=job, **about)
    at = dict.fromkeys(("reserved_at", "written_at"), study.created_at)
    return bench.StudyAnswer.objects.create(study=study, reference=written, writer=writer, answer="Yes.", **at)


def synthesis_of(pair: Pair) -> bench.Synthesis:
    """One synthesis with one bundle."""
    synthesis = bench.Synthesis.objects.create(collection=pair.collection, key="k", options=SYNTHESIS, total=1)
    bench.SyntheticBundle.objects.create(synthesis=synthesis, place=0, seed_id="q", seed_text="birds", bundle=BUNDLE)
    return synthesis


def web_search_of(pair: Pair) -> WebSearch:
    """A web search that found the pair's document."""
    options = {"judge": "offline-web-search", "limit": None, "seed": 0, "fetch": False}
    search = WebSearch.objects.create(collection=pair.collection, key="k", options=options, total=1)
    searched = SearchedQuery.objects.create(search=search, place=0, query=pair.query, answered_at=search.created_at)
    WebSearchResult.objects.create(searched=searched, rank=1, url="http://ice.example/", document=pair.document)
    return search


class World:
    """A collection with one of everything, and the people around it."""

    def __init__(self) -> None:
        self.collection = birds = make_collection("birds", lab=True)
        self.other = make_collection("stones")
        self.pair = make_pair(birds)
        self.people = {
            "stranger": make_user("stranger"),
            "outsider": make_member(self.other, "outsider", Role.ADMIN).user,
            "owner": make_user("owner", is_owner=True),
        }
        for role in ("viewer", "annotator", "adjudicator", "admin"):
            self.people[role] = make_member(birds, role, ROLE[role]).user
        admin, owner = self.people["admin"], self.people["owner"]
        self.bystander = make_member(birds, "bystander")
        self.item = make_item(self.pair)
        self.campaign = Campaign.objects.create(collection=birds, policy="debate", panel="offline")
        self.job = Job.objects.create(collection=birds, folder="/nowhere", options=JOB)
        summary = {"merge_difference": 0.0}
        self.model = Model.objects.create(collection=birds, job=self.job, name="m", folder="/nowhere", summary=summary)
        self.curve = LearningCurve.objects.create(collection=birds, recipe="prism")
        CurvePoint.objects.create(curve=self.curve, job=self.job, asked=500, labels=500, queries=50)
        self.study = Study.objects.create(collection=birds)
        about = {"set": ComparisonSet.objects.create(collection=birds), "key": "k"}
        options = {"set": 1, "judges": ["j"], "versions": ["j@1"]}
        self.judging = ComparisonJudging.objects.create(collection=birds, options=options, **about)
        self.judging.refresh_from_db()
        self.run, self.qrels = run_and_qrels(birds)
        bench.Ranking.objects.create(
            run=self.run, query=self.pair.query, documents=[self.pair.document_id], scores=[1.0]
        )
        self.filling, self.report, self.gate = (make(self.run, self.qrels) for make in (filling_of, report_of, gate_of))
        self.suite = bench.Suite.objects.create(name="main")
        bench.SuiteMember.objects.create(suite=self.suite, collection=birds, place=1)
        self.evaluation = evaluation_of(self.pair, self.run)
        self.agent_job, self.trace = traced_by_an_agent(self.pair)
        self.study_answer = reference_study_of(self.pair, self.bystander.assessor)
        self.synthesis = synthesis_of(self.pair)
        self.search = self.web_search = web_search_of(self.pair)
        about = {"pairs": [self.pair.pk], "changes": {"items": []}, "state": "done", "made_by": owner}
        self.bulk = BulkAct.objects.create(collection=birds, kind="send", **about)
        adjudicator = Membership.objects.get(user=self.people["adjudicator"])
        revision = revising.add_aspect(self.pair.query, adjudicator.assessor, Wording("item", "An answer needs it."))
        about = {"judgments": [], "reviewer": self.bystander.assessor, "blind": True}
        self.review = AspectReview.objects.create(
            query=self.pair.query, revision=revision, leased_until=revision.created_at, **about
        )
        self.endpoint = make_endpoint()
        self.version = self.judge = make_judge("kept")
        self.draft = PassageDraft.objects.create(query=self.pair.query, asked_by=adjudicator, url="http://ice.example/")
        self.file_import = FileImport.objects.create(collection=birds, owner=admin, state="ready")
        self.upload = Upload.objects.create(collection=birds, owner=admin, name="corpus.jsonl", size=9)
        QuerySplit.objects.create(collection=birds, name="fixed", query_ids=[self.pair.query.external_id])
        about = {"url": "https://ice.example/hook", "events": ["export.ready"], "made_by": admin}
        self.webhook = Webhook.objects.create(collection=birds, **about)
        about = {"event": "export.ready", "subject": "export:1", "data": {"export": 1}, "state": "failed"}
        self.delivery = WebhookDelivery.objects.create(webhook=self.webhook, **about)
        self.delivery.log.create(status=500, milliseconds=12, problem="status", answer="overloaded")
        tomorrow = timezone.now() + timedelta(days=1)
        about = {"page": "overview", "digest": "0" * 64, "made_by": admin, "expires_at": tomorrow}
        self.link = ShareLink.objects.create(collection=birds, **about)
        self.invitation = members.invite(collection=birds, role=Role.ANNOTATOR, author=owner)

    def fill(self, pattern: str) -> str:
        """An address with everything in it: rows by their number or their key, and what has neither."""
        numbered = "campaign bulk job curve study synthesis judging search filling gate report evaluation file_import"
        numbered += " webhook agent_job"
        keyed = "pair draft review invitation link item model run suite endpoint upload delivery version trace"
        values = {f"<int:{name}>": getattr(self, name).number for name in numbered.split()}
        values |= {f"<int:{name}>": getattr(self, name).pk for name in keyed.split()}
        values |= {
            "<slug:name>": "birds", "<str:name>": "birds", "<int:query>": self.pair.query_id,
            "<int:document>": self.pair.document_id, "<int:member>": self.bystander.pk,
            "<int:user>": self.bystander.user.pk, "<slug:act>": "pause", "<str:token>": self.invitation.token,
            "<int:place>": "0", "<int:number>": self.qrels.number, "<str:endpoint>": self.endpoint.name,
            "<slug:engine>": "http", "<slug:kind>": "bm25", "<slug:work>": "search", "<slug:file>": "traces",
            "<slug:resource>": "campaigns", "<str:file>": "nothing.tar", "<slug:split>": "fixed",
            "<slug:provider_id>": "sso", "(?P<uidb36>[0-9A-Za-z]+)-(?P<key>[0-9A-Za-z-]+)": "1-nothing",
        }  # fmt: skip
        others = "int:view int:session int:token int:snapshot int:exclusion int:gold_set int:pk path:file path:path"
        values |= dict.fromkeys([f"<{name}>" for name in (*others.split(), "str:filename")], "1")
        for key, value in values.items():
            pattern = pattern.replace(key, str(value))
        assert "<" not in pattern, f"tell this test what stands in {pattern}"
        return pattern.replace("/^", "/").removesuffix("$")

    def client(self, who: str) -> Client:
        client = Client(raise_request_exception=True)
        if who != "visitor":
            client.force_login(self.people[who])
        return client


def html_pages(world: World, who: str) -> Iterator[tuple[str, str]]:
    """(address, HTML) of every page that this person gets with GET, signed in again after what may end a session."""
    client = world.client(who)
    for route in routes(world):
        if route.action == "public":
            client = world.client(who)
        answer = client.get(route.path)
        if not answer.streaming and answer.get("Content-Type", "").startswith("text/html"):
            yield route.path, answer.text


def test_every_address_names_its_action_and_neither_the_admin_nor_open_sign_up_is_mounted(world: World) -> None:
    addresses = list(routes(world))
    assert [route.path for route in addresses if route.action is None] == []
    assert not any(route.path.startswith("/admin") for route in addresses)
    left_out = {"index", "account_email", "account_set_password", "socialaccount_signup", "mfa_add_webauthn"}
    assert left_out.isdisjoint(route.name for route in addresses)


def expected(route: Route, who: str, method: str) -> set[int]:
    """Statuses with which the door answers; {0} stands for: the door lets them in."""
    action = route.action
    if action in (None, "public"):
        return {0}
    if who == "visitor":
        return {302}
    if action == "site":
        return {0}
    if action == "own-site":
        return {0} if who == "owner" else {403}
    if who in ("stranger", "outsider"):
        return {404}
    if who == "owner":
        return {403} if action in ("judge", "adjudicate") else {0}
    if action == "own":
        return {403}
    return {0} if ROLE[who] in ALLOWED[needed_action(action, method.upper())] else {403}


def check_headers(response: HttpResponse, route: Route, who: str) -> None:
    """Every answer forbids scripts that it does not bring and frames; those for members are kept by no cache."""
    policy = response["Content-Security-Policy"]
    assert "unsafe" not in policy and "*" not in policy, route.path
    for source in ("default-src 'none'", "script-src 'self'", "base-uri 'none'", "form-action 'self'"):
        assert source in policy, route.path
    assert response["X-Frame-Options"] == "DENY" and "frame-ancestors 'none'" in policy, route.path
    assert all("\r" not in value and "\n" not in value for value in response.headers.values()), route.path
    if who != "visitor" and route.action not in (None, "public") and response.status_code == 200:
        assert "no-store" in response.get("Cache-Control", ""), route.path


@pytest.mark.parametrize("who", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in WHO])
@pytest.mark.parametrize("method", ["get", "post"])
def test_every_address_as_everybody(world: World, who: str, method: str) -> None:
    wrong, client = [], world.client(who)
    for route in routes(world):
        if method == "post" and route.name in {"invitation", "join_as_owner", "start_by_hand"}:
            continue  # they would make a member of a stranger or of the owner, rightly
        if route.action in ("public", "site"):
            client = world.client(who)  # some of these end a session
        response = getattr(client, method)(route.path)
        check_headers(response, route, who)
        want = expected(route, who, method)
        inside = response.status_code in {200, 301, 302, 303, 400, 404, 409, 410, 422}
        redirect_to_sign_in = response.status_code == 302 and response["Location"].startswith("/accounts/login/")
        if response.status_code == 405:
            fine = method == "post" or want == {0}  # who takes no POST may say so before asking who comes
        elif want == {302}:
            fine = redirect_to_sign_in
        elif want == {0}:
            fine = inside and not (redirect_to_sign_in and who != "visitor" and route.action != "public")
        else:
            fine = response.status_code in want
        if not fine:
            wrong.append((method, route.path, response.status_code, want))
    assert wrong == []


@pytest.mark.parametrize("who", first_quick(["viewer", "annotator", "visitor", "stranger", "outsider"]))
def test_a_refused_post_changes_nothing(world: World, who: str) -> None:
    before, client = _state(world), world.client(who)
    for route in routes(world):
        if route.action in ("admin", "results", "adjudicate", "own-site", "own") or (who, route.action) == (
            "viewer",
            "judge",
        ):
            client.post(route.path, {"role": 3, "active": "0", "text": "mine now", "name": "mine", "grades": 1})
    assert _state(world) == before


def _state(world: World) -> list[object]:
    return [
        list(Membership.objects.order_by("pk").values_list("pk", "role", "is_active")),
        list(User.objects.order_by("pk").values_list("pk", "password")),
        list(Campaign.objects.order_by("pk").values_list("pk", "state")),
        list(members.open_invitations(world.collection).values_list("pk", flat=True)),
        Guideline.objects.count(),
        Judgment.objects.count(),
    ]


SECRETS = {"gold": 7_531, "other": 8_642}


def hidden_evidence(world: World) -> None:
    """A reference grade and another person's judgment on the pair that an annotator is about to get."""
    reference = Assessor.objects.create(collection=world.collection, kind="reference", name="secret-reference")
    Judgment.objects.create(pair=world.pair, assessor=reference, step="import", grade=SECRETS["gold"])
    Item.objects.filter(pk=world.item.pk).update(overlap=3, taken=1, done=1)
    about = {"step": "final", "grade": SECRETS["other"], "comment": "bystander-comment"}
    judgment = Judgment.objects.create(pair=world.pair, assessor=world.bystander.assessor, item=world.item, **about)
    at = dict.fromkeys(("lease_until", "ended_at"), "2026-01-01T00:00:00Z")
    Assignment.objects.create(item=world.item, membership=world.bystander, state="done", judgment=judgment, **at)


@pytest.mark.parametrize("who", first_quick(["annotator", "outsider"]))
def test_pages_of_annotators_hold_no_gold_and_nothing_of_others(world: World, who: str) -> None:
    hidden_evidence(world)
    client = world.client(who)
    client.post("/c/birds/judge/next/")
    seen = [client.get(route.path).content.decode() for route in routes(world)]
    seen += [client.post(f"/c/birds/judge/{part}/").content.decode() for part in ("next", "submit", "skip", "undo")]
    words = ("secret-reference", str(SECRETS["gold"]), str(SECRETS["other"]), "bystander")
    assert [word for word in words if any(holds(page, word) for page in seen)] == []
    if who == "annotator":
        assert any(world.pair.document.text in page for page in seen), "the annotator did get the pair"


def test_an_admin_of_one_collection_does_not_reach_rows_of_another_through_it(world: World) -> None:
    client = world.client("outsider")
    member, campaign = f"members/{world.bystander.pk}", world.campaign.number
    for path in (
        f"pairs/{world.pair.pk}/", f"{member}/role/", f"{member}/active/", f"campaigns/{campaign}/pause/",
        f"invitations/{world.invitation.pk}/revoke/", f"pairs/?campaign={campaign}",
    ):  # fmt: skip
        path = f"/c/stones/{path}"
        assert {client.get(path).status_code, client.post(path).status_code} <= {404, 405}, path
    assert Pair.objects.filter(collection=world.other).count() == 0
