"""The page of policies compared: what it says, what its cells open, what the simulator answers, what it costs."""

import csv
import re
from html import unescape
from io import StringIO

import pytest
from django.test import Client

from annotation.models import Role, StoredResult
from annotation.quality.label_quality import statistics
from annotation.quality.policies import cached_results, crossing, page, reading
from annotation.quality.policies.crossing import CrossingCell, SimulatedPeople, expected_error, simulate_escalation
from annotation.quality.policies.trade_offs import find_best_trade_offs
from annotation.tasks import compare_policies
from jobs import background
from jobs.models import BackgroundJob
from judges.costs import counters
from judges.models import Campaign, Work
from tests.annotation.quality.policies.policies_scene import scripted_campaign
from tests.annotation.quality.policies.test_lara import believing_campaign
from tests.called import call
from tests.evidence import make_attempt, make_campaign, make_judge
from tests.factories import client_of, make_collection, make_member, make_pair
from tests.kept_scene import built_once

pytestmark = pytest.mark.django_db


@pytest.fixture
@built_once
def campaign():
    return scripted_campaign()


@pytest.fixture
def charlie(campaign):
    return client_of(make_member(campaign.collection, "charlie", Role.ADMIN))


def get(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, address
    return response.text


def words(html: str) -> str:
    return re.sub(r" ([,.;)])", r"\1", re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html))))


BY_HAND = {
    # cell: pairs of the script, label that they keep, wrong
    "1y.5-0": ([1], 1, 0), "1y.4-1": ([2], 1, 0), "1y.3-2": ([3], 1, 1),
    "1n.0-5": ([4], 0, 0), "1n.1-4": ([5], 0, 0), "1n.3-2": ([9], 0, 1), "1n.1-3": ([10], 0, 0),
    "2n.3-2": ([6], 0, 0), "3y.5-0": ([7], 1, 0), "open.1-4": ([8], 0, 1),
}  # fmt: skip


def test_the_cross_table_counts_every_pair_once_as_by_hand_and_a_cell_opens_its_pairs(campaign, charlie):
    document = cached_results.cached_comparison(campaign.collection, campaign)["document"]
    cells = {row["key"]: page.load_cell(row) for row in document["debate_by_ensemble"]}
    assert set(cells) == set(BY_HAND)
    for key, (pairs, label, wrong) in BY_HAND.items():
        cell = cells[key]
        assert (cell.pairs, cell.label, cell.known - cell.right) == (len(pairs), label, wrong), key
    assert {key for key, cell in cells.items() if cell.escalated} == {"1n.3-2", "2n.3-2", "open.1-4"}
    assert sum(cell.pairs for cell in cells.values()) == 10

    shown = get(charlie, "/c/books/policies/")
    in_order = list(campaign.collection.pair_set.order_by("pk").values_list("pk", flat=True))
    for key, (numbers, _label, _wrong) in BY_HAND.items():
        address = f"/c/books/pairs/?campaign={campaign.number}&amp;cross={key}"
        assert address in shown
        listed = re.findall(r'href="/c/books/pairs/(\d+)/"', get(charlie, unescape(address)))
        assert [in_order.index(int(pair)) + 1 for pair in listed] == numbers, key
    for key in ("9y.5-0", "lost.5-0", "none.none", "1y.none", "x", "1y.5", "1y.5-0'", "999y.0-0"):
        shown = get(charlie, f"/c/books/pairs/?campaign={campaign.number}&cross={key}")
        assert "No pair matches" in shown, key


def test_the_simulator_answers_cost_hours_and_expected_error(campaign, charlie):
    at_first = words(get(charlie, "/c/books/policies/?seconds=20&rate=36"))
    # 9, 6 and 8 are handed over: 3 pairs, 6 judgments of 20 s; of the seven kept labels one (3) is wrong.
    assert "3 of 10 pairs (30.0%)" in at_first and "6 judgments 2 min $1.20" in at_first
    assert "automatic labels: 14.3%" in at_first
    handed = "&".join(f"hand={key}" for key in ("1y.3-2", "1n.3-2", "2n.3-2", "open.1-4"))
    asked = words(get(charlie, f"/c/books/policies/?simulate=1&seconds=3600&rate=10&{handed}"))
    assert "4 of 10 pairs (40.0%)" in asked and "8 judgments 8.0 h $80.00" in asked
    assert "automatic labels: 0.0%" in asked
    nobody = words(get(charlie, "/c/books/policies/?simulate=1"))
    assert "0 of 10 pairs (0.0%)" in nobody and "0 judgments 0 min $0.00" in nobody
    assert "automatic labels: 30.0%" in nobody
    unknown = words(get(charlie, "/c/books/policies/?seconds=abc&rate=-1&simulate=1&hand=1y.5-0&hand=nothing"))
    assert "1 of 10 pairs (10.0%)" in unknown and "hours unknown cost unknown" in unknown


CELLS = [CrossingCell("1y", "5-0", 900, 1, False, 90, 90), CrossingCell("1y", "3-2", 100, 1, False, 20, 10)]
PRICED = SimulatedPeople(overlap=2, seconds=30.0, hourly_rate=None)


def test_an_expected_error_weights_cells_by_their_sizes_and_leaves_out_what_nobody_measured():
    error = expected_error(CELLS)
    assert error.value == pytest.approx(0.1 * 10 / 20), "a plain mean of the measured pairs would be 10 of 110"
    assert error.low < error.value < error.high and error.n == 110
    dark = CrossingCell("2y", "3-2", 50, 1, False, 0, 0)
    found = simulate_escalation([*CELLS, dark, CrossingCell("open", "2-2", 7, None, True, 3, 0)], {"1y.3-2"}, PRICED)
    assert [found.pairs, found.escalated, found.judgments, found.unmeasured] == [1057, 107, 214, 50]
    assert found.error.value == 0.0 and found.error.high > 0.0
    assert found.hours == pytest.approx(214 * 30 / 3600) and found.cost is None
    assert simulate_escalation([dark], set(), PRICED).error.value is None


def test_the_frontier_is_what_no_other_policy_beats():
    def one(name: str, right: float | None, load: float, available: bool = True) -> dict:
        return {"name": name, "available": available, "escalation": load,
                "own": {"balanced_accuracy": {"value": right}}}  # fmt: skip

    policies = [one("a", 0.9, 0.1), one("b", 0.9, 0.2), one("c", 0.95, 0.2), one("d", 0.8, 0.0), one("e", 0.7, 0.05),
                one("f", None, 0.0), one("twin", 0.9, 0.1)]  # fmt: skip
    assert [trade_off.name for trade_off in find_best_trade_offs(policies)] == ["a", "c", "d", "twin"]


def test_the_page_names_what_is_not_available_and_serves_its_charts(campaign, charlie, django_assert_max_num_queries):
    with django_assert_max_num_queries(17):
        shown = words(get(charlie, "/c/books/policies/"))
    assert f"10 pairs of campaign {campaign.number} (debate+ensemble), 10 of them" in shown
    assert "lara 3.5% not available: no judge" in shown
    csv = charlie.get(f"/c/books/policies/?campaign={campaign.number}&chart=frontier&as=csv").text
    assert re.search(r'^"debate, 2 rounds",debate,20.0,73.33', csv, re.MULTILINE), csv
    assert charlie.get("/c/books/policies/?chart=frontier&as=svg").headers["Content-Type"].startswith("image/svg+xml")
    assert charlie.get("/c/books/policies/?chart=nothing").status_code == 404
    assert charlie.get("/c/books/policies/?campaign=999999").status_code == 404


def test_tables_and_those_of_the_debate_study_are_saved_by_who_settles_the_rest(campaign, charlie, tmp_path):
    """DREAM tables 1, 2, 9 to 15: the eighth pair alone is open after three rounds, and a judge says yes, rightly."""
    assert "rest by a judge" not in get(charlie, "/c/books/policies/")
    eighth = campaign.collection.pair_set.order_by("pk")[7]
    make_attempt(campaign, eighth, make_judge("senior"), 1, role="adjudicate", round=3, milliseconds=0)
    shown = get(charlie, "/c/books/policies/")
    assert "rest by a judge" in shown
    table = list(csv.DictReader(StringIO(charlie.get("/c/books/policies/?table=policies&as=csv").text)))
    row = {one["policy"]: one for one in table}["debate, 3 rounds"]
    judged = [value for name, value in row.items() if name.endswith("the rest completed by an adjudicating judge")]
    assert list(map(float, judged)) == pytest.approx([4 / 5, 4 / 5, 4 / 5])  # wrong on 3 and on 9
    assert [row[f"recall of {name}, own labels"] for name in ("not relevant", "relevant")] == ["0.8", "0.75"]
    assert (float(row["escalation"]), row["calls"]) == (0.1, "30")
    latencies = [value for name, value in row.items() if "latency" in name]
    assert (latencies[0], *latencies[2:]) == ("250.0", "375.0", "225.0"), "median, means in sequence and in parallel"
    assert b"booktabs" in charlie.get("/c/books/policies/?table=policies&as=tex").content
    assert charlie.get("/c/books/policies/?table=other&as=csv").status_code == 404
    said = call("evaluate_policies", "books", "--out", tmp_path)
    assert "80.0% by an adjudicating" in said.out and "80.0% by the reference" in said.out
    assert list(csv.DictReader(StringIO((tmp_path / "policies.csv").read_text()))) == table

    shown = words(get(charlie, "/c/books/policies/study/"))
    assert "debate on books" in shown and "83.3%" not in shown
    study = "/c/books/policies/study/?as=csv&table="
    debates = list(csv.reader(StringIO(charlie.get(f"{study}debates").text)))
    # The third round, by the figures by hand in test_policies.
    assert [row[2] for row in debates[1:]] == ["1", "2", "3"]
    assert list(map(float, debates[3][3:])) == pytest.approx([4 / 5, 3 / 4, (3 / 4 + 4 / 5) / 2, 1 / 10, 10])
    settled = list(csv.reader(StringIO(charlie.get(f"{study}settled").text)))
    assert [(row[2], row[3], *map(float, row[4:])) for row in settled[1:]] == [
        ("3", "an adjudicating judge", 0.8, 0.8, 0.8), ("3", "the reference", 0.8, 0.8, 0.8),
    ]  # fmt: skip
    assert charlie.get(f"{study}orders").status_code == 404  # one campaign alone compares no orders
    said = call("debate_study", "books", "--out", tmp_path / "study")
    assert "80.0% relevant, 80.0% not; bAcc 80.0%" in said.out
    names = sorted(path.name for path in (tmp_path / "study").iterdir())
    assert names == ["debates.csv", "debates.tex", "settled.csv", "settled.tex"]


def test_a_collection_without_a_campaign_or_without_debates_says_so(campaign, charlie):
    Campaign.objects.filter(pk=campaign.pk).update(policy="ensemble")
    assert "No debates yet" in get(charlie, "/c/books/policies/study/")
    charlie.force_login(make_member(make_collection("films"), "ada", Role.ADMIN).user)
    assert charlie.get("/c/films/policies/").context["campaign"] is None
    assert charlie.post("/c/films/policies/compare/").status_code == 302


@pytest.fixture
def is_large(campaign, monkeypatch):
    """So that a worker compares, which is there."""
    monkeypatch.setattr(statistics, "SMALL", 5)
    counters.add(campaign.pk, "calls", 6)
    monkeypatch.setattr("jobs.workers.live_workers", lambda *_: ["one"])


def test_a_large_collection_shows_what_a_worker_compared(campaign, charlie, is_large):
    assert "Not compared yet" in get(charlie, "/c/books/policies/")
    response = charlie.get("/c/books/policies/study/")
    assert response.context["is_large"] and response.context["tables"] == []
    statistics.STATISTICS.compute_now(campaign.collection)
    charlie.post("/c/books/policies/compare/")
    assert "In progress" in get(charlie, "/c/books/policies/")
    compare_policies()
    shown = get(charlie, "/c/books/policies/")
    assert "As of" in shown and "2 rounds, 3 of 5" in shown
    statistics.STATISTICS.compute_now(campaign.collection)
    kinds = set(StoredResult.objects.values_list("kind", flat=True))
    assert kinds == {"label-quality", "policies"}, "one does not wipe out the other"
    assert charlie.get("/c/books/").status_code == 200


def test_a_comparison_whose_row_is_gone_ends_with_the_others(campaign, charlie, is_large):
    cached_results.POLICIES.refresh(campaign.collection, campaign=campaign.pk)
    background.enqueue(cached_results.POLICIES.task, StoredResult.objects.get().pk + 1)
    compare_policies()
    assert not BackgroundJob.objects.exclude(state="ready").exists()
    assert charlie.get("/c/books/").status_code == 200, "the home asks for no comparison"


def test_a_single_judge_of_a_larger_panel_labels_its_pairs_without_a_debate():
    books = make_collection("alone")
    judge = make_judge("judge")
    alone = make_campaign(books, [judge], policy="single", majority=3)
    for verdict in (1, 1, 0, None):
        pair = make_pair(books)
        make_attempt(alone, pair, judge, verdict, outcome="labelled" if verdict is not None else "refused")
        Work.objects.create(campaign=alone, pair=pair, state="labelled", label=verdict or 0, claims=1)
    found = crossing.cross_tabulate(reading.panel_of(alone), reading.read_answers(alone), "none")
    assert {cell.key: (cell.pairs, cell.label, cell.escalated) for cell in found} == {
        "none.1-0": (2, 1, False),
        "none.0-1": (1, 0, False),
        "none.0-0": (1, None, True),
    }


def test_lara_is_replayed_on_request_where_it_takes_long_and_another_campaign_can_be_chosen(monkeypatch, client):
    first, _, _ = believing_campaign(12)
    client.force_login(make_member(first.collection, "charlie", Role.ADMIN).user)
    page = words(get(client, "/c/books/policies/"))
    assert "lara 25.0%: sure" in page and "Include LARA" not in page
    monkeypatch.setattr(cached_results, "QUICK", 11)
    assert client.get("/c/books/policies/").context["left_out"]
    assert "Use this campaign" not in page, "one campaign leaves no choice"
    second = make_campaign(first.collection, [make_judge("other")])
    asked = get(client, f"/c/books/policies/?campaign={first.number}&lara=1")
    assert "lara 25.0%: sure" in words(asked)
    assert f'<option value="{first.number}" selected>' in asked and f'<option value="{second.number}">' in asked
