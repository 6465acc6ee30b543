"""The ledger by judge, round and outcome; cost per correct label; what is unknown stays unknown (issue 4, Money)."""

import csv
import io
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, override

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import Stratum, clopper_pearson
from annotation.management.commands.ledger import describe_label_cost
from annotation.models import Role
from annotation.quality.costs.labels import JUDGES, TOGETHER, against_gold, per_label, with_people
from annotation.quality.costs.report import cost_report
from corpus.models import Collection, Item
from judges.campaigns.progress import summary_lines
from judges.campaigns.selectors import campaign_status
from judges.costs import counters
from judges.costs.accounting import Paid, of_calls
from judges.costs.collection_budgets import collection_budget
from judges.domain.routing import EscalationReason
from judges.models import Campaign, Panel
from judges.models.costs import Ledger
from tests.called import call
from tests.evidence import make_assessor, make_campaign, make_judge, make_judgment
from tests.factories import make_member
from tests.money_scene import audits, judged_books
from tests.reading import flat


def test_what_is_unknown_is_said_and_never_counted_as_nothing():
    for usd, calls, unpriced, text in (
        (1.5, 10, 0, "$1.50"), (1.5, 10, 1, "at least $1.50 (1 "), (0.0, 10, 4, "at least $0.00 (4 "),
        (0.0, 4, 4, "unknown (4 "), (0.0, 0, 0, "$0.00"),
    ):  # fmt: skip
        found = of_calls(usd, calls, unpriced).text
        assert found.startswith(text) and (found == text or unpriced)
    total = of_calls(0.0, 4, 4) + Paid(2.0)
    assert total.text == "at least $2.00 (4 calls without a price)" and total.at_least
    assert (Paid(None, ("a",)) + Paid(None, ("b",))).text == "unknown (a, b)"


def test_every_reason_of_an_escalation_is_a_word_that_is_translated():
    with override("zh-hans"):
        assert [str(reason) for reason in EscalationReason if reason and gettext(reason) == reason] == []


def test_cost_per_correct_label_is_worked_by_hand():
    """4 labels for 60 cents, 3 of 4 right: 20 cents a correct one; the ends are those of Clopper and Pearson."""
    share = against_gold([Stratum(4, 4, 3)])
    low, high = clopper_pearson(3, 4)
    assert (share.value, share.n) == (0.75, 4) and (round(low, 4), round(high, 4)) == (0.1941, 0.9937)
    found = per_label(JUDGES, "gold", 4, Paid(0.60), share, "all 4")
    assert found.cost.value == pytest.approx(0.20) and found.correct == 3
    assert found.cost.low == pytest.approx(0.15 / 0.9937, rel=1e-3)
    assert found.cost.high == pytest.approx(0.15 / 0.1941, rel=1e-3)
    assert "$0.20 ($0.15 to $0.77); 75.0%" in describe_label_cost(found)

    found = with_people(Statistic(0.75, 0.5, 1.0, 4, None), 8, 2)
    assert (found.value, found.low, found.high) == (0.8, 0.6, 1.0)
    assert with_people(Statistic(None, None, None, 0, "not measured"), 8, 2).reason == "not measured"


def test_without_gold_or_audit_it_is_not_measured_and_a_cost_with_unknown_parts_has_no_upper_end():
    strata = ([Stratum(5, 0, 0)], [Stratum(5, 5, 5), Stratum(5, 0, 0)], [Stratum(0, 0, 0)])
    unmeasured = [against_gold(rows) for rows in strata]
    assert [statistic.value for statistic in unmeasured] == [None] * 3
    assert len({statistic.reason for statistic in unmeasured if statistic.reason}) == 3, "a reason of its own each"
    none_right = per_label(JUDGES, "gold", 5, Paid(1.0), against_gold([Stratum(5, 5, 0)]), "")
    assert none_right.cost.value is None and "no compared label" in str(none_right.cost.reason)

    share = Statistic(0.5, 0.25, 0.75, 8, None)
    found = per_label(JUDGES, "gold", 10, Paid(1.0, ("3 calls without a price",)), share, "")
    assert (found.cost.value, found.cost.high) == (pytest.approx(0.2), None)
    assert "at least $0.20" in describe_label_cost(found) and "no upper bound" in describe_label_cost(found)
    unknown = per_label(JUDGES, "gold", 10, Paid(None, ("3 calls without a price",)), share, "")
    assert unknown.cost.value is None and "unknown (3 " in describe_label_cost(unknown)


@pytest.fixture
def books(db):
    return judged_books()


def test_the_ledger_of_a_campaign_adds_up(books):
    found = cost_report(Campaign.objects.get())
    lines = {
        (one.judge, one.step, one.outcome): (one.calls, one.cached, one.unpriced, one.cost) for one in found.entries
    }
    assert lines == {
        ("one@1", "debate, round 1", "labelled"): (5, 0, 0, pytest.approx(0.5)),
        ("one@1", "debate, round 2", "labelled"): (5, 0, 0, pytest.approx(0.5)),
        ("one@1", "votes", "labelled"): (0, 4, 0, 0.0),
        ("two@1", "votes", "labelled"): (4, 0, 4, 0.0),
        ("two@1", "votes", "unparsed"): (4, 0, 4, 0.0),
    }
    by_judge = {"one@1": "$1.00", "two@1": "unknown (8 calls without a price)"}
    assert {one.name: one.paid.text for one in found.by_judge} == by_judge
    by_step = [("debate, round 1", 5), ("debate, round 2", 5), ("votes", 8)]
    assert [(one.name, one.calls) for one in found.by_step] == by_step
    assert found.machine.usd == pytest.approx(1.0) and found.machine.at_least
    assert found.wasted.calls == 4 and found.wasted.paid.usd is None
    assert found.pairs is not None
    assert [(one["name"], one["pairs"], one["calls"], one["paid"].usd) for one in found.pairs] == [
        ("to people: split", 1, 2, pytest.approx(0.2)),
        ("labelled", 4, 16, pytest.approx(0.8)),
    ]
    assert [(day["calls"], day["paid"].usd) for day in found.days] == [(18, pytest.approx(1.0))]
    account = collection_budget(books)
    assert (account.spent, account.today, account.budget) == (pytest.approx(1.0), pytest.approx(1.0), None)


def test_people_cost_their_time_at_the_collections_rate(books):
    """One judgment of 36 s at $100 an hour is $1; with two audits of two people each it is five of them."""
    campaign = Campaign.objects.get()
    assert cost_report(campaign).people.paid.text == "$1.00"
    audits(campaign, 1, 1)
    found = cost_report(campaign)
    assert (found.people.settling, found.people.auditing, found.people.hours) == (1, 4, pytest.approx(0.05))
    assert found.together.usd == pytest.approx(6.0) and found.together.at_least
    Collection.objects.update(hourly_rate=None)
    without = cost_report(Campaign.objects.get())
    assert without.people.paid.usd is None
    assert [text.split()[0] for text in without.together.missing] == ["8", "3"], "calls, and minutes"


def test_cost_per_correct_label_against_gold_and_by_audits(books):
    """Judges: 3 of 4 right by gold, at least 1.00 / 3. By audits 1 of 2 are: at least 1.00 / 2."""
    campaign = Campaign.objects.get()
    before = {(one.who, one.truth): one for one in cost_report(campaign).labels}
    assert before[JUDGES, "gold"].cost.value == pytest.approx(1 / 3)
    assert before[JUDGES, "audits"].cost.value is None and "not measured" in str(before[JUDGES, "audits"].cost.reason)
    assert before[TOGETHER, "gold"].cost.value is None, "the label of people has no gold"
    audits(campaign, 1, 1)
    after = {(one.who, one.truth): one for one in cost_report(campaign).labels}
    assert after[JUDGES, "audits"].cost.value == pytest.approx(1 / 2)
    # Together: 1 dollar of judges and 5 of people for 4 x 0.5 + 1 correct labels.
    assert after[TOGETHER, "audits"].cost.value == pytest.approx(6 / 3)
    assert all(one.cost.high is None for one in after.values()), "calls without a price: no upper end"
    make_judgment(Item.objects.get(reason="split").pair, make_assessor(books, "reference", "reference"), 1)
    gold = {(one.who, one.truth): one for one in cost_report(campaign).labels}
    # 3 of 4 and 1 of 1: 4 correct ones of 5, for the same 6 dollars.
    assert gold[TOGETHER, "gold"].cost.value == pytest.approx(6 / 4)


def test_the_command_prints_the_same_as_one_document(books):
    document = call("ledger", "books", "--json").json
    assert (document["cost"], document["cost_is_lower_bound"], document["calls_without_price"]) == (1.0, True, 8)
    assert document["state"] == "budget" and document["stopped_by"] == "day"
    costs = {row["name"]: row["cost"] for row in document["by_judge"]}
    assert costs == {"one@1": pytest.approx(1.0), "two@1": None}
    assert document["cost_per_correct_label"][0]["per_correct_label"]["value"] == pytest.approx(1 / 3)
    assert sum(row["calls"] for row in document["ledger"]) == document["calls"] == 18
    text = call("ledger", "books", "--campaign", document["campaign"]).out
    assert "at least $1.00 (8 " in text and "at least $0.33" in text
    status = campaign_status(books)
    lines = "\n".join(summary_lines(status))
    ended = status["labelled"] + status["escalated"] + status["failed"]
    assert f"{ended} of {status['pairs']} pairs\n" in lines and status["open"] == 0
    assert "cost at least $1.00 (8 " in lines, "and the command `status`"


@pytest.fixture
def charlie(books, client):
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    return client


def test_the_page_shows_the_ledger_and_serves_it_as_csv(books, charlie):
    campaign = Campaign.objects.get()
    page = charlie.get(reverse("ledger", args=["books", campaign.number])).text
    for word in ("at least $1.00", "(8 calls without a price)", "unknown", "debate, round 2", "to people: split"):
        assert word in page
    assert "limit reached: the collection" in page and "daily budget (UTC)" in page
    got = charlie.get(reverse("ledger_csv", args=["books", campaign.number]))
    assert got["Content-Type"].startswith("text/csv") and "ledger.csv" in got["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(got.text)))
    assert len(rows) == 5 and sum(int(row["calls"]) for row in rows) == 18
    assert {row["usd"] for row in rows if row["judge"] == "two@1"} == {""}, "unknown is empty, not 0"
    assert [row["usd"] for row in rows if row["round"] == "1"] == ["0.5"]
    svg = charlie.get(reverse("ledger", args=["books", campaign.number]) + "?chart=spending&as=svg")
    assert svg["Content-Type"].startswith("image/svg")


def test_the_page_takes_few_statements_however_much_there_is(books, charlie, django_assert_max_num_queries):
    campaign, judge = Campaign.objects.get(), make_judge("three")
    audits(campaign, 1, 1)
    same = {"campaign": campaign, "shard": 0, "judge": judge, "role": "vote", "outcome": "labelled", "calls": 1}
    for number in range(60):
        Ledger.objects.create(**same, day=timezone.now().date() - timedelta(number), round=number)
    with django_assert_max_num_queries(20):
        assert charlie.get(reverse("ledger", args=["books", campaign.number])).status_code == 200


def test_the_campaigns_page_and_the_home_say_at_least_and_which_cap_and_the_ledger_what_the_caps_leave(books, charlie):
    campaigns = charlie.get(reverse("campaigns", args=["books"])).text
    assert "at least $1.00 (8 " in campaigns
    assert "daily budget (UTC)" in campaigns and "midnight UTC" in campaigns
    home = flat(charlie.get(reverse("collection", args=["books"])).text)
    assert "at least $1.00" in home and "at least $2.00" in home, "judges, and together with people"
    ledger = reverse("ledger", args=["books", Campaign.objects.get().number])
    assert ledger in home
    Collection.objects.update(budget=12.5, daily_budget=2)
    page = charlie.get(ledger).text
    assert "$11.50 of " in page and "; $1.00 of $2.00" in page


def test_before_a_start_the_page_says_what_it_will_cost_and_what_the_caps_leave(books, charlie):
    """Judge one has a price and is the whole panel; nothing is sent before it was confirmed."""
    Panel.objects.create(name="dear", ensemble=["one"], majority=1)
    Collection.objects.update(budget=1.0 + 1e-6)
    start = {"panel": "dear", "policy": "ensemble", "rounds": "2", "stance_order": "relevant-first"}
    asked = charlie.post(reverse("start_campaign", args=["books"]), start)
    assert asked.context["exceeds_budget"] and "Remaining: $0.00" in asked.text
    wanted = {"write-writer": "one", "write-measure": ""}
    asked = charlie.post(reverse("write_evidence", args=["books"]), wanted)
    assert asked.context["short"] and "estimate (USD; $" in asked.text
    unknown = charlie.post(reverse("write_evidence", args=["books"]), {**wanted, "write-measure": "two"})
    assert "at least $" in unknown.text and "known for two" in unknown.text
    assert Campaign.objects.count() == 1
    refused = charlie.post(reverse("write_evidence", args=["books"]), {**wanted, "write-writer": "two", "confirm": "1"})
    assert refused.status_code == 422 and "needs a price" in refused.text
    done = charlie.post(reverse("write_evidence", args=["books"]), {**wanted, "confirm": "1"})
    assert done.status_code == 302 and Campaign.objects.count() == 2


def test_the_overview_and_the_ledger_say_the_same_of_a_correct_label(books, charlie):
    """What people did in an earlier campaign is no cost of this one's labels."""
    campaign = Campaign.objects.get()
    audits(campaign, 1, 1)
    earlier = make_campaign(books, [], pk=campaign.pk - 1)
    counters.add(earlier.pk, "settled", 50)
    page = charlie.get(f"/c/books/?campaign={campaign.number}")
    found = page.context["board"]["per_label"]
    ledger = {(one.who, one.truth): one for one in cost_report(campaign).labels}
    assert (found.who, found.cost.value) == (TOGETHER, pytest.approx(ledger[TOGETHER, "audits"].cost.value))
    assert "at least $2.00" in " ".join(page.text.split())
