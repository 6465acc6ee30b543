"""The admin pages: what they show, what they cost, and that every number opens the pairs behind it."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from annotation.agreement.grade_matrix import pairs_where
from annotation.models import Membership
from annotation.work.settings import guidelines
from corpus.models import Collection, Item
from judges.costs import counters
from judges.models import Campaign, Work
from judges.models.batches import Batch
from judges.panels.offline_panel import ensure_offline
from tests.admin_site import only_collection, people_at_work
from tests.factories import client_of, make_collection, make_item, make_member, make_pair, make_query

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    return only_collection()


@pytest.fixture
def people(books):
    return people_at_work(books)


@pytest.fixture
def charlie(people):
    return client_of(people["charlie"])


def text(response: object) -> str:
    assert response.status_code in (200, 286, 422), response.status_code
    return response.content.decode()


def listed(page: str) -> int:
    return len(re.findall(r'<a href="/c/books/pairs/\d+/"', page))


def test_every_number_on_the_home_opens_as_many_pairs_and_it_asks_for_news_while_a_campaign_runs(charlie):
    page = text(charlie.get("/c/books/"))
    wanted = {"labelled": 8, "escalated": 6, "failed": 2, "pending": 2, "settled": 1, "open": 5}
    for state, count in wanted.items():
        # With a label a pair waits for nobody, though it may be somebody's task.
        address = f"/c/books/pairs/?state={state}" + ("&amp;label=none" if state == "open" else "")
        assert address in page, state
        assert re.search(rf'href="{re.escape(address)}"\s*>\s*<strong>\s*{count}\s*</strong>', page), state
        assert listed(text(charlie.get(address.replace("&amp;", "&")))) == count, state

    assert 'hx-trigger="every 5s, ' in text(charlie.get("/c/books/"))
    part = charlie.get("/c/books/", headers={"HX-Request": "true"})
    assert part.status_code == 200
    assert "<html" not in part.content.decode()
    Campaign.objects.update(state="finished")
    assert charlie.get("/c/books/", headers={"HX-Request": "true"}).status_code == 286
    assert "every 5s" not in text(charlie.get("/c/books/"))


NARROWED = {
    "": 18, "round=1": 8, "label=none": 9, "origin=people": 1, "origin=debate%2Bensemble": 8, "gold=yes": 6,
    "gold=no": 12, "state=conflict": 1, "q=tuple": 0, "q=tupel": 4, "q=q7": 1, "q=doc-7%231": 1, "state=nonsense": 0,
    "label=nonsense": 0, "q=%27%3B+DROP+TABLE+corpus_pair": 0,
}  # fmt: skip


def test_the_list_is_narrowed_by_what_stands_in_the_url(charlie, books):
    counts = NARROWED | {
        "state=escalated&reason=conflict": Work.objects.filter(reason="conflict").count(),
        "state=labelled&verdict=1": Work.objects.filter(state="labelled", label=1).count(),
    }
    for query, count in counts.items():
        assert listed(text(charlie.get(f"/c/books/pairs/?{query}"))) == count, query
    for cell in ("agree", "disagree", "both"):  # of the agreement matrix
        page = text(charlie.get(f"/c/books/pairs/?a=alice&b=reference&cell={cell}"))
        assert listed(page) == len(pairs_where(books, "alice", "reference", cell))
    assert listed(page) == 1, "alice judged one of the pairs that have a reference grade"
    assert charlie.get("/c/books/pairs/?a=alice&b=nobody").status_code == 404


COSTS = {"/c/books/pairs/": 13, "/c/books/": 32, "/c/books/campaigns/": 14, "/c/books/members/": 16, "/": 7}


def test_a_page_costs_the_same_however_much_it_lists(books, charlie):
    def statements(address):
        charlie.get(address)
        with CaptureQueriesContext(connection) as run:
            assert charlie.get(address).status_code == 200
        return len(run)

    before = {address: statements(address) for address in COSTS}
    for number in range(5):
        query = make_query(books, external_id=f"later-{number}")
        make_item(make_pair(books, query), place=1000 + number)
        make_member(books, f"person-{number}")
        campaign = Campaign.objects.create(collection=books, policy="debate", panel="main", state="finished")
        counters.add(campaign.pk, "pairs", 1)
    for address, most in COSTS.items():
        assert statements(address) <= before[address] <= most, address


def test_an_annotator_sees_their_own_work_and_collections_and_nothing_else(people, books):
    alice = client_of(people["alice"])
    page = text(alice.get("/c/books/"))
    assert "<strong>1</strong><span>judged in total" in page
    for word in ("campaign", "escalated", "cost is unknown", "charlie", "Members", "/pairs/"):
        assert word not in page
    make_collection("secret-project")
    page = text(alice.get("/"))
    assert "/c/books/" in page and "1 judged by you" in page
    assert "secret-project" not in page and "have a label" not in page, "progress is for admins"


def test_a_pair_shows_debate_votes_label_judgments_every_attempt_and_who_judged_skipped_or_flagged(charlie):
    pair = Work.objects.filter(state="labelled").order_by("pk").first().pair
    page = text(charlie.get(f"/c/books/pairs/{pair.pk}/"))
    for word in (
        "books-judge-1@1", "not in the document", "label, from debate+ensemble", "reference", "unknown",
        "You argue one side", "prompt_tokens", "&lt;script&gt;alert(1)",
    ):  # fmt: skip
        assert word in page
    assert page.count('<details class="attempt"') == 7 and "<script>alert" not in page
    pairs_of_items = Item.objects.order_by("pk").values_list("pair", flat=True)[:3]
    seen = "".join(text(charlie.get(f"/c/books/pairs/{pk}/")) for pk in pairs_of_items)
    for word in ("alice", "18.4 s", "clear", "I cannot read this language", "two meanings"):
        assert word in seen


# Campaigns


def test_the_estimate_comes_before_the_campaign(charlie):
    form = {"panel": "offline", "policy": "debate+ensemble", "rounds": 2}

    def start(**values):
        return charlie.post("/c/books/campaigns/start/", form | values)

    ensure_offline()
    before = Campaign.objects.count()
    page = text(start())
    assert "Start this campaign?" in page and "calls are free" in page
    assert Campaign.objects.count() == before
    assert start(confirm="1")["Location"] == "/c/books/"
    started = Campaign.objects.order_by("-pk").first()
    assert (started.panel, started.state, started.work.count()) == ("offline", "running", 18)


def test_failed_pairs_are_retried_and_a_campaign_is_paused_resumed_and_cancelled(charlie):
    campaign = Campaign.objects.get()
    here = f"/c/books/campaigns/{campaign.number}"
    assert "Retrying 2 failed pairs." in text(charlie.post(f"{here}/retry-failed/", follow=True))
    assert not Work.objects.filter(state="failed").exists()
    for act, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert charlie.get(f"{here}/{act}/").status_code == 405
        assert charlie.post(f"{here}/{act}/")["Location"] == f"/c/books/campaigns/#campaign-{campaign.number}"
        campaign.refresh_from_db()
        assert campaign.state == state
    assert "Nothing was changed" in text(charlie.post(f"{here}/resume/", follow=True))


def test_a_batch_of_which_nobody_knows_is_sent_again_by_a_press_alone(charlie):
    campaign = Campaign.objects.get()
    values = {"campaign": campaign, "judge": {}, "model": "gpt", "calls": 7}
    waiting = Batch.objects.create(name="quorum-1-waits", problem="429 later", **values)
    out = Batch.objects.create(name="quorum-1-out", provider_id="batch-1", sent_at=now(), **values)
    page = text(charlie.get("/c/books/campaigns/"))
    assert "/send-again/" not in page and page.count("waiting to be sent") == 1
    lost = Batch.objects.create(name="quorum-1-lost", problem="no clear answer", sent_at=now(), **values)
    page = text(charlie.get("/c/books/campaigns/"))
    assert "/send-again/" in page and "quorum-1-lost" in page and "you pay for both" in page
    response = charlie.post(f"/c/books/campaigns/{campaign.number}/send-again/", follow=True)
    assert "Sending 1 batch again." in text(response)
    lost.refresh_from_db()
    assert (lost.sent_at, lost.problem) == (None, "")
    others = Batch.objects.filter(pk__in=[waiting.pk, out.pk]).order_by("pk")
    assert [batch.sent_at for batch in others] == [None, out.sent_at]
    assert "Sending 0 batches again." in text(
        charlie.post(f"/c/books/campaigns/{campaign.number}/send-again/", follow=True)
    )


# Members, settings, texts


def test_roles_change_and_an_admin_does_not_lock_themselves_out(charlie, people):
    page = f"/c/books/members/{people['alice'].pk}/role/"
    done = charlie.post(page, {"role": 2}, follow=True)
    assert Membership.objects.get(user__username="alice").role == 2
    assert done.context["role_before"] == 1, "so that the page offers to undo it"
    assert charlie.post(page, {"role": 1}).status_code == 422, "a smaller role is asked for twice"
    assert Membership.objects.get(user__username="alice").role == 2
    charlie.post(page, {"role": 1, "confirm": "1"})
    assert Membership.objects.get(user__username="alice").role == 1
    own = people["charlie"].pk
    for act, fields in (("role", {"role": 1, "confirm": "1"}), ("active", {"active": "0"})):
        refused = charlie.post(f"/c/books/members/{own}/{act}/", fields)
        assert "lose your own access" in text(refused)
        row = Membership.objects.get(pk=own)
        assert (row.role, row.is_active) == (3, True), "nobody takes their own access away"


def test_guidelines_and_instruction_are_kept_in_versions_previewed_and_not_overwritten(charlie, books):
    address = "/c/books/settings/guidelines/"
    assert guidelines.current(books)[0] == 0
    page = text(charlie.post(address, {"text": "Look:\n- closely\n- <b>twice</b>", "base": "0", "preview": "1"}))
    assert "<li>closely</li><li>&lt;b&gt;twice" in page
    assert guidelines.current(books)[0] == 0
    charlie.post(address, {"text": "First.", "base": "0"})
    page = text(charlie.post(address, {"text": "Mine, kept.", "base": "0"}))
    assert "saved by someone" in page and "Mine, kept." in page and guidelines.current(books) == (1, "First.\n")
    charlie.post(address, {"text": "Second.", "base": "1"})
    assert guidelines.current(books) == (2, "Second.\n")
    assert ">First." in text(charlie.get(f"{address}?version=1"))

    before = books.instruction
    assert "changes the prompts" in text(charlie.get("/c/books/settings/instruction/"))
    charlie.post("/c/books/settings/instruction/", {"text": "Only facts.", "base": "0"})
    books.refresh_from_db()
    assert books.instruction == "Only facts."
    kept = books.instruction_versions.order_by("version").values_list("version", "text")
    assert list(kept) == [(1, before), (2, "Only facts.")]


def test_settings_and_those_of_dream_by_a_click_hold_for_what_waits_already(charlie, books):
    given = {"title": "Books", "overlap": 3, "order": "query", "lease_minutes": 20, "relevant_from": 1}
    assert charlie.post("/c/books/settings/", given).status_code == 302
    books.refresh_from_db()
    assert (books.overlap, books.order, books.lease_minutes) == (3, "query", 20)
    assert set(Item.objects.filter(state="open").values_list("overlap", flat=True)) == {3}
    page = text(charlie.post("/c/books/settings/", {**given, "relevant_from": 7, "title": "Kept"}))
    assert "choose 1 to 1" in page
    assert 'value="Kept"' in page

    Collection.objects.update(overlap=1)
    Item.objects.update(overlap=1)
    assert "Use DREAM" in text(charlie.get("/c/books/settings/"))
    page = text(charlie.post("/c/books/settings/preset/", {"preset": "dream"}, follow=True))
    books.refresh_from_db()
    assert (books.overlap, books.rounds, books.pass_mark) == (3, "final", 90)
    assert "Settings saved." in page
    assert set(Item.objects.filter(state="open").values_list("overlap", flat=True)) == {3}
    assert charlie.post("/c/books/settings/preset/", {"preset": "other"}).status_code == 422
