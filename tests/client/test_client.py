"""The client against the site in this process: every part of a collection answers as its models say."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections

from annotation.models import Role
from api.tokens import make_token
from quorum_client import Quorum, QuorumError
from tests.factories import make_collection, make_item, make_member, make_pair, make_user
from tests.imported_files import work_off
from tests.site.test_permissions import World

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """Keep the test's transaction over requests, as Django's own client does."""
    signals = request_started, request_finished
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


def client_of(user: Any) -> Quorum:
    token = make_token(user, None, name="n", scopes=["read", "judge", "manage"], days=1)[1]
    return Quorum("http://testserver", token, transport=httpx2.WSGITransport(app=get_wsgi_application()))


def test_every_list_and_object_is_read(settings: Any) -> None:
    settings.API_PER_MINUTE = 10_000
    world = World()
    birds = client_of(world.people["admin"]).collection("birds")
    parts = [part for part in vars(birds).values() if hasattr(part, "list")]
    lists = [birds.queries, birds.documents, birds.pairs, birds.judgments, *(part.list for part in parts)]
    assert len(lists) == 33
    rows = {read: list(read()) for read in lists}
    assert sum(map(bool, rows.values())) >= 20
    assert birds.read().name == "birds" and birds.pair(world.pair.pk).number == world.pair.pk
    assert birds.members.read(world.bystander.pk).username == "bystander"
    assert birds.invitations.read(world.invitation.pk).role == "annotator"
    assert birds.campaigns.read(world.campaign.number).status["campaign"] == world.campaign.number
    assert birds.audits.read(world.campaign.number).routes == []
    assert birds.imports.read(world.file_import.number).number == world.file_import.number
    assert birds.runs.read(world.run.pk).name == "bm25"
    assert birds.reports.read(world.report.number).number == world.report.number
    assert birds.trainings.read(world.job.number).model == world.model.pk and birds.trainings.list_sets() == ()
    assert birds.models.read(world.model.pk).name == "m"
    assert birds.leaderboard.read().systems == []
    assert birds.agreement.read(judges=True)["items"] == 0 and birds.agreement.read_table().startswith("a,b,n")
    assert birds.quality().can_go_out in (True, False)
    assert birds.settings.read().overlap == world.collection.overlap
    assert birds.curves.read(world.curve.number).points[0].asked == 500
    assert birds.hole_fillings.read(world.filling.number).runs == [world.run.pk]
    assert birds.answers.read(world.evaluation.number).judge == "j"
    assert [one.answer for one in birds.answers.answers(world.evaluation.number)] == ["yes"]
    assert birds.agents.read(world.agent_job.number).kind == "search"
    assert [one.agent for one in birds.agents.traces(world.agent_job.number)] == ["j"]
    assert [one.query for one in birds.syntheses.queries(world.synthesis.number)] == ["Why do birds sing?"]
    assert [one.rank for one in birds.web_searches.results(world.web_search.number)] == [1]
    assert birds.pair_acts.read(world.bulk.number).kind == "send" and birds.prices.read(world.judge.pk).judge == "kept"
    assert birds.aspect_reviews.read(world.review.pk).mine is False
    assert [one.text for one in birds.aspects.read(world.pair.query_id).aspects] == ["item"]
    assert birds.aspects.read_totals().decomposed == 1 and birds.aspects.export().count("\n") == 1
    assert birds.attention_checks.read().standing == 0 and birds.judges.read_panel().name == "offline"
    assert [one.state for one in birds.webhooks.deliveries(world.webhook.number)] == ["failed"]
    assert birds.studies.read_effect()["studies"] and birds.label_errors.read().suspects == []
    assert birds.policies.read(world.campaign.number).document
    suites = client_of(world.people["admin"]).suites
    assert [one.name for one in suites.list()] == ["main"] and suites.read_systems(world.suite.pk).systems is not None


def test_quality_control_and_aspects_through_the_client() -> None:
    collection = make_collection("c")
    alice, bob = make_member(collection, "alice", Role.ADMIN), make_member(collection, "bob")
    pair = make_pair(collection)
    c = client_of(alice.user).collection("c")
    seen = c.quality_control.read()
    assert c.quality_control.change(checks=0.2, if_match=seen).checks == 0.2
    assert c.quality_control.write_consent("It is kept.").consent_version == 1
    assert c.members.change(bob.pk, expert=True).expert and c.members.admit(bob.pk).qualified
    with pytest.raises(QuorumError, match="Nothing to exclude"):
        c.exclusions.exclude(bob.pk, note="fast")
    assert c.settings.apply_preset("dream").overlap == 3
    why = "Without it the answer is wrong."
    found = c.aspects.act(pair.query_id, "add", text="How fast it flows", rationale=why, base=0)
    document = pair.document.external_id
    found = c.aspects.act(pair.query_id, "keep", document=document, aspects=[found.aspects[0].id])
    assert found.aspects[0].documents == [document] and found.revision == 2
    (planned,) = [c.pair_acts.plan("send", [pair.pk])]
    assert c.pair_acts.run(planned.number).state == "done" and c.pair_acts.undo(planned.number).state == "undone"
    assert "pairs.sent" in {one.act for one in c.audit_log.list(actor="alice")}
    assert c.pair_acts.hand_over_skipped() == 0


def test_a_hole_filling_and_webhooks_through_the_client() -> None:
    world = World()
    birds = client_of(world.people["admin"]).collection("birds")
    estimate = birds.hole_fillings.estimate(depth=5)
    assert (estimate.pool, estimate.candidates) == (1, 1)
    made = birds.hole_fillings.start(depth=5)
    assert made.policy == "people" and birds.hole_fillings.count_done(made) == (0, 1)
    assert birds.hole_fillings.find_end(made) is None
    ended = birds.hole_fillings.cancel(made.number)
    assert birds.hole_fillings.find_end(ended) == "cancelled"
    cancelled = birds.syntheses.cancel(world.synthesis.number)
    assert cancelled.state == "cancelled" and birds.syntheses.find_end(cancelled) == "cancelled"
    created = birds.webhooks.create("https://ice.example/mine", ["export.ready"], "mine")
    assert created.secret.startswith("whsec_")
    seen = birds.webhooks.read(created.webhook.number)
    assert birds.webhooks.change(seen.number, active=False, if_match=seen).disabled == "person"
    assert birds.webhooks.replace_secret(seen.number).secret != created.secret
    assert birds.webhooks.replay(world.webhook.number) == 1
    birds.webhooks.delete(seen.number)
    assert [one.number for one in birds.webhooks.list()] == [world.webhook.number]


def test_settings_change_only_where_nobody_changed_them_meanwhile() -> None:
    alice = make_member(make_collection("c"), "alice", Role.ADMIN)
    books = client_of(alice.user).collection("c").settings
    seen = books.read()
    changed = books.change(overlap=3, if_match=seen)
    assert changed.overlap == 3
    with pytest.raises(QuorumError) as caught:
        books.change(overlap=5, if_match=seen)
    assert caught.value.status == 412 and books.read().overlap == 3
    assert books.change(title="Books", if_match=changed).title == "Books"


def test_a_person_judges_through_the_client() -> None:
    collection = make_collection("c")
    alice = make_member(collection, "alice")
    for _ in range(3):
        make_item(make_pair(collection))
    tasks = client_of(alice.user).collection("c").tasks
    held = tasks.claim().task
    assert held is not None and held == tasks.read().task
    following = tasks.judge(held, 1, comment="Yes.", spans=[(0, 4)])
    assert following.judged_today == 1 and following.task is not None
    tasks.skip(following.task, "other")
    back = tasks.undo(held.item).task
    assert back is not None and back.item == held.item


def test_people_runs_and_reports_through_the_client(tmp_path: Path) -> None:
    collection = make_collection("c")
    alice, bob = make_member(collection, "alice", Role.ADMIN), make_member(collection, "bob")
    pair = make_pair(collection)
    c = client_of(alice.user).collection("c")
    (invited,) = c.invitations.create(["Dana"])
    c.invitations.revoke(invited.number)
    assert c.members.change(bob.pk, role="adjudicator").role == "adjudicator"
    c.members.remove(bob.pk)
    assert c.members.read(bob.pk).active is False
    file = tmp_path / "mine.run"
    file.write_text(f"{pair.query.external_id} Q0 {pair.document.external_id} 1 2.5 tag\n")
    (run,) = c.runs.import_files([file], skip_unknown=True)
    assert c.runs.download(run.number, tmp_path / "copy.run").read_text().endswith("mine\n")
    assert c.runs.estimate(name="bm").asks is False
    made = c.runs.make(name="bm", options={"b": 0.4})
    assert c.runs.cancel(made.number).state == "cancelled"
    c.runs.delete(made.number)
    assert [one.name for one in c.runs.list()] == ["mine"]


def test_files_are_imported_in_steps(tmp_path: Path) -> None:
    owner = make_user("olivia", is_owner=True)
    quorum = client_of(owner)
    books = quorum.create_collection(name="books", grades=1)
    assert [one.name for one in quorum.collections()] == ["books"]
    for name, text in (("documents.jsonl", '{"_id": "d", "text": ""}'), ("queries.jsonl", '{"_id": "q", "text": "q"}')):
        (tmp_path / name).write_text(text + "\n")
    created = books.imports.create(sorted(tmp_path.iterdir()))
    work_off()
    with pytest.raises(QuorumError, match='empty: "keep" takes such documents'):
        books.imports.wait(created.number)
    books.imports.correct(created.number, empty="keep", bm25=1)
    work_off()
    assert books.imports.wait(created.number).checked
    books.imports.start(created.number)
    work_off()
    assert books.imports.wait(created.number).imported
    assert [one.id for one in books.documents()] == ["d"]
