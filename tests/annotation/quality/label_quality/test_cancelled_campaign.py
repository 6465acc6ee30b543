"""A second campaign that is started and cancelled changes nothing: no figure, no page, no byte of an export."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from annotation.exports.formats import ALL_FORMATS
from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.models import Membership
from annotation.models.snapshots import Snapshot
from annotation.quality.policies.report import answered_campaigns
from api.tokens import make_token
from corpus.models import Collection, Label, Pair
from judges.campaigns import lifecycle
from judges.campaigns.selectors import debate_of
from judges.costs import counters
from judges.models import Campaign, Work
from tests.admin_site import audited, only_collection, people_at_work
from tests.called import call
from tests.evidence import make_attempt, make_campaign, make_judge, make_turn
from tests.judged_books import export, make_books
from tests.reading import flat

pytestmark = pytest.mark.django_db
PAGES = ("", "quality/", "exports/", "statistics/", "pairs/", "pairs/?state=labelled", "pairs/?state=failed&sort=state",
         "policies/", "members/", "canaries/", "quality/over-time/")  # fmt: skip
OPERATIONS = ("quality", "agreement", "audits", "members", "exports")
FORMATS = ("qrels", "csv", "judgments", "debates", "prism")
# What a moment and a request change.
MOMENT = re.compile(
    r"as of [\d:]+ \w+|\d{4}-\d\d-\d\d[T ,]+\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?|\b[A-Za-z0-9]{64}\b|\d\d:\d\d:\d\d"
)


def second_campaign(books: Collection, *, asked: bool) -> Campaign:
    """Another panel over all pairs, cancelled; with `asked` its judges could not be reached, but for one turn."""
    others = [make_judge(f"other-{n}") for n in range(5)] + [make_judge("books-judge-1", version=2)]
    campaign = make_campaign(books, others, policy="debate+ensemble", state="running", panel="others")
    pairs = list(Pair.objects.filter(collection=books).order_by("pk"))
    states = ["failed", "pending", "running"] if asked else ["pending"]
    for place, pair in enumerate(pairs):
        Work.objects.create(campaign=campaign, pair=pair, state=states[place % len(states)], reason="error")
    counters.add(campaign.pk, "pairs", len(pairs))
    if asked:
        counters.add(campaign.pk, "failed", len(pairs[::3]))
        make_attempt(campaign, pairs[0], others[0], None, outcome="error", counts=False)
        make_turn(campaign, pairs[0], others[0], "for", 1, 1)
    lifecycle.cancel(campaign=campaign)
    return campaign


class Site:
    """All that speaks of a collection, as an admin reads it."""

    def __init__(self, books: Collection, admin: Membership, folder: Path) -> None:
        self.books, self.folder, self.client = books, folder, Client()
        self.client.force_login(admin.user)
        self.token = make_token(admin.user, None, name="test", scopes=("read",), days=1)[1]

    def page(self, path: str) -> str:
        answer = self.client.get(f"/c/{self.books.name}/{path}")
        # The menu counts campaigns, and the filter of pairs offers them: there is one more.
        _menu, _main, shown = flat(answer.content.decode()).partition("<main")
        shown = re.sub(r'<select id="campaign".*?</select>', "", shown)
        return f"{answer.status_code} {MOMENT.sub('', shown)}"

    def operation(self, path: str) -> str:
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = Client().get(f"/api/v1/collections/{self.books.name}/{path}", headers=headers)
        return f"{answer.status_code} {MOMENT.sub('', answer.content.decode())}"

    def export(self, name: str, number: int) -> dict[str, bytes]:
        target = self.folder / f"{name}-{number}"
        options = {"teacher": "labels"} if ALL_FORMATS[name].is_set else {}
        if options:
            export(self.books, name, target, **options)
        else:
            write_snapshot(create_snapshot(self.books, ExportOptions(format=name), target))
        Snapshot.objects.all().delete()  # the page lists exports, which is not what is compared
        return {one.name: one.read_bytes() for one in target.iterdir() if one.name != "manifest.json"}

    def metrics(self) -> list[str]:
        lines = Client().get("/metrics").text.splitlines()
        return [line for line in lines if line.startswith(("quorum_pairs{", "quorum_tasks", "quorum_pairs_waiting"))]

    def everything(self, number: int) -> dict[str, Any]:
        name = self.books.name
        return {
            **{f"page {path}": self.page(path) for path in PAGES},
            **{f"api {path}": self.operation(path) for path in OPERATIONS},
            **{f"export {one}": self.export(one, number) for one in FORMATS},
            "status": call("status", name, "--json").json,
            "agreement": call("agreement", name, "--json").json,
            "metrics": self.metrics(),
            "collections": MOMENT.sub("", flat(self.client.get("/").content.decode())),
        }


@pytest.mark.parametrize("asked", [False, True], ids=["never asked", "not reached"])
def test_a_cancelled_second_campaign_changes_nothing(tmp_path, asked):
    books = only_collection()
    admin = people_at_work(books)["charlie"]
    first = audited(books, right=20, wrong=2)
    for work in Work.objects.filter(state="labelled", pair__labels=None):
        Label.objects.create(pair=work.pair, grade=1, origin=first.policy)
    Campaign.objects.filter(pk=first.pk).update(state="finished")
    site = Site(books, admin, tmp_path)
    before = site.everything(1)
    assert before["status"]["labelled"] == 30 and before["status"]["audits"] == 22, before["status"]
    assert all(before[f"page {path}"].startswith("200 ") for path in PAGES[:7]) and before["metrics"]
    second_campaign(books, asked=asked)
    after = site.everything(2)
    assert [name for name, value in before.items() if after[name] != value] == []
    assert after["status"]["campaign"] == first.number
    assert answered_campaigns(books).first() == first


def test_each_pair_keeps_its_own_last_complete_votes(tmp_path):
    books = make_books(queries=4)
    before = export(books, "prism", tmp_path / "before", teacher="votes")
    judges = [make_judge(f"late-{n}") for n in range(3)]
    broken = make_campaign(books, judges, state="cancelled")
    for pair in Pair.objects.filter(collection=books):
        make_attempt(broken, pair, judges[0], 0)
        make_attempt(broken, pair, judges[1], None, place=1)
    after = export(books, "prism", tmp_path / "after", teacher="votes")
    assert before["counts"] == after["counts"]
    for name in ("train.jsonl", "dev.jsonl"):
        assert (tmp_path / "before" / name).read_bytes() == (tmp_path / "after" / name).read_bytes()


def test_a_broken_debate_takes_no_place_of_a_finished_one(tmp_path):
    books = only_collection()
    admin = people_at_work(books)["charlie"]
    site = Site(books, admin, tmp_path)
    pair = Pair.objects.filter(collection=books, work__state="labelled").order_by("pk")[0]
    debate, exported = debate_of(pair), site.export("debates", 1)
    other = make_judge("late")
    broken = make_campaign(books, [other, other], policy="debate+ensemble", state="cancelled")
    Work.objects.create(campaign=broken, pair=pair, state="running")
    make_turn(broken, pair, other, "for", 1, 0)
    make_attempt(broken, pair, other, 0)
    assert debate_of(pair) == debate != [] and site.export("debates", 2) == exported
    votes = site.client.get(f"/c/{books.name}/pairs/{pair.pk}/").context["evidence"]["votes"]
    assert len(votes) == 5 and broken.pk not in {vote.campaign_id for vote in votes}
