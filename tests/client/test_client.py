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
    assert len(lists) == 15
    rows = {read: list(read()) for read in lists}
    assert sum(map(bool, rows.values())) >= 9
    assert birds.read().name == "birds" and birds.pair(world.pair.pk).number == world.pair.pk
    assert birds.members.read(world.bystander.pk).username == "bystander"
    assert birds.invitations.read(world.invitation.pk).role == "annotator"
    assert birds.campaigns.read(world.campaign.pk).status["campaign"] == world.campaign.pk
    assert birds.audits.read(world.campaign.pk).routes == []
    assert birds.imports.read(world.file_import.pk).number == world.file_import.pk
    assert birds.runs.read(world.run.pk).name == "bm25"
    assert birds.reports.read(world.report.pk).number == world.report.pk
    assert birds.trainings.read(world.job.pk).model == world.model.pk and birds.trainings.list_sets() == ()
    assert birds.models.read(world.model.pk).name == "m"
    assert birds.leaderboard.read().systems == []
    assert birds.agreement.read(judges=True)["items"] == 0 and birds.agreement.read_table().startswith("a,b,n")
    assert birds.quality().can_go_out in (True, False)
    assert birds.settings.read().overlap == world.collection.overlap


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
