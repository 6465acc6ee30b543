"""Reports whose means are weighted by a query log's counts: never mixed up with plain ones, and named everywhere."""

import numpy as np
import pytest

from annotation.models import Role
from benchmark.models import Report, Run
from benchmark.report import reports, weighting
from benchmark.report.systems.chosen import newest_report
from benchmark.suites.groups import make_suite, member_report
from corpus.errors import BadInput, BadOption
from corpus.models import Query
from jobs.models import JobState
from tests import factories
from tests.annotation.home.sharing.test_sharing import make_link, open_page
from tests.benchmark.report.test_reports import World
from tests.called import call

pytestmark = pytest.mark.django_db
COUNTS = "?weights=counts"


def counted(world: World, *counts: object) -> None:
    for query, count in zip(world.queries, counts, strict=True):
        Query.objects.filter(pk=query.pk).update(metadata={} if count is None else {"count": count})


def asked(world: World, weights: str = weighting.COUNTS) -> Report:
    return reports.ensure_report(
        world.collection, world.before, world.before, [world.one, world.two], 2, weights=weights
    )


def test_a_weighted_report_has_its_own_key_figures_and_bounds():
    """Two is right on q1 at rank 2 and has nothing for q2: asked 3 times and once, q1 counts 3/4."""
    world = World()
    plain = asked(world, "")
    counted(world, 3, None)
    assert asked(world, "").pk == plain.pk, "counts change no plain report"
    report = asked(world)
    assert report.pk != plain.pk and report.options["weights"] == weighting.COUNTS
    two, discount = report.result["systems"][1], 1 / np.log2(3)
    assert two["values"]["ndcg"]["after"] == pytest.approx(0.75 * discount)
    assert plain.result["systems"][1]["values"]["ndcg"]["after"] == pytest.approx(0.5 * discount)
    assert report.result["weights"] == {"by": "counts", "without": 1, "effective": pytest.approx(16 / 10)}
    (bounds,) = [one for one in report.result["safety"]["systems"] if one["run"] == world.two.pk]
    assert bounds["value"] == pytest.approx(0.75 * discount)
    assert reports.query_values(report, world.two, "ndcg")[1] == pytest.approx([discount, 0]), "the queries' own"
    assert newest_report(world.collection, compares=False) == plain
    assert member_report(world.collection, 2) == plain


def test_counts_that_change_make_another_report():
    world = World()
    counted(world, 10**400, "NaN")
    assert weighting.counts_of(world.collection) == {}, "what is no number above 0 is no count"
    counted(world, None, None)
    with pytest.raises(BadOption, match="count"):
        asked(world)
    counted(world, 3, "7")
    first = asked(world)
    counted(world, 3, 8)
    assert asked(world).pk != first.pk
    waiting = reports.request_report(
        world.collection, world.before, world.before, [world.one], 2, weights=weighting.COUNTS
    )
    counted(world, 4, 8)
    with pytest.raises(BadInput, match="changed"):
        reports.finish_report(waiting)
    waiting.refresh_from_db()
    assert waiting.state == JobState.FAILED and waiting.result is None


def test_every_board_offers_weighted_means_where_there_are_counts(client):
    """The leaderboard, and the pages that show means beside it: two has all of its value from q1, one half or 3/4."""
    world = World()
    alice = factories.make_member(world.collection, "alice", Role.ADMIN)
    client.force_login(alice.user)
    here = f"/c/{world.collection.name}/benchmark/"
    recipe = {"endpoint": "shop", "settings": {"base_url": "http://x"}}
    Run.objects.filter(pk=world.two.pk).update(kind="search", recipe=recipe)
    suite = make_suite(name="alone", collections=[world.collection])
    pages = [
        f"/suites/{suite.pk}/",
        *(f"{here}{part}/" for part in (f"runs/{world.two.pk}", "hole-filling", "search/shop")),
    ]

    def texts(weights=""):
        """Compute what is missing, and return the page of each board."""
        assert client.post(f"{here}compute/{weights}").status_code == 302
        return [client.get(f"{page}{weights}").text for page in pages]

    texts()
    plain = client.get(here).context["board"]
    assert not client.get(f"{here}{COUNTS}").context["means"].weights, "no counts: plain means"
    counted(world, 0, "often")
    assert not any("Weighted by" in text for text in texts(COUNTS)), "no counts above 0, no choice"
    with pytest.raises(BadOption, match="has a count"):
        weighting.counts_mark(world.collection)
    counted(world, 5, 5)
    missing = client.get(f"{here}{COUNTS}").context
    assert missing["state"].is_missing and missing["board"] is None, "a plain report is never shown as weighted"
    for page in texts():
        assert "Weighted by the query log" in page and "(weighted)" not in page and "0.5000" in page
    assert all("0.5000" in page and "(weighted)" in page for page in texts(COUNTS))
    counted(world, 3, 1)
    assert client.get(here).context["means"].has_counts and client.get(here).context["board"]["rows"] == plain["rows"]
    for page in texts(COUNTS):
        assert "0.7500" in page and "(weighted)" in page
        assert "query log" in page.replace("Weighted by the query log", ""), "it names its source"
    board = client.get(f"{here}{COUNTS}").context["board"]
    assert board["label"] == "nDCG@10 (weighted)" and board["weights_words"]
    values = {row["name"]: row["value"] for row in board["rows"]}
    assert values["two"] == pytest.approx(0.75 * plain["rows"][1]["value"] / 0.5)
    assert "nDCG@10 (weighted)" in client.get(f"{pages[1]}{COUNTS}&table=values&as=csv").text
    token = make_link(alice, "leaderboard").token
    assert "(weighted)" not in open_page(token).text
    assert "nDCG@10 (weighted)" in client.get(f"/shared/{token}/{COUNTS}").text
    compared = client.get(f"{here}compare/{COUNTS}&a={world.one.pk}&b={world.two.pk}").context["comparison"]
    assert compared["second"]["mean"] == values["two"] and compared["weights_words"]
    assert "weights=counts" in compared["asked"] and "weighted" in compared["chart"].source


def test_the_choice_says_where_a_sample_by_pptss_would_weigh_the_traffic_twice(client):
    world = World()
    counted(world, 3, 1)
    client.force_login(factories.make_member(world.collection, "alice", Role.ADMIN).user)
    page, words = f"/c/{world.collection.name}/benchmark/", "counts would weigh it twice"
    client.post(f"{page}compute/")
    assert words not in client.get(page).text
    Query.objects.filter(pk=world.queries[0].pk).update(metadata={"count": 3, "sampled_by": "head-torso-tail"})
    assert words not in client.get(page).text
    Query.objects.filter(pk=world.queries[1].pk).update(metadata={"count": 1, "sampled_by": "pptss"})
    for address in (page, f"{page}?weights=counts"):
        assert words in " ".join(client.get(address).text.split()), address


def test_commands_and_programs_choose_the_weights(client, tmp_path):
    world = World()
    name = world.collection.name
    refused = call("report", name, "--weights", "counts")
    assert refused.code == 2 and refused.err.startswith("--weights: ")
    options = ("--run", "one", "--against", "two", "--measures", "nDCG@2", "--max-drop", 0.01)
    refused = call("gate", name, *options, "--weights", "counts")
    assert refused.code == 2 and refused.err.startswith("--weights: "), "a gate as well"
    counted(world, 3, 1)
    finished = call("report", name, "--weights", "counts", "--k", 2, "--out", tmp_path)
    assert finished.code == 0 and "weighted by the query log's counts" in finished.out, finished.err
    assert "nDCG@2 (weighted)" in (tmp_path / "leaderboard.csv").read_text()


def test_a_suite_weighs_the_queries_of_each_member_by_its_own_counts():
    books, films = World(), World()
    make_suite(name="both", collections=[books.collection, films.collection])

    def report(weights):
        return call("suite", "report", "both", "--k", 2, "--json", "--weights", weights)

    counted(books, 3, 1)
    refused = report("counts")
    assert refused.code == 2 and refused.err.startswith("--weights: ") and films.collection.name in refused.err
    counted(films, 7, 7)
    plain, weighted = report("plain").json, report("counts").json
    assert (plain["weights"], weighted["weights"]) == ("plain", "counts")
    before, after = (document["systems"][1]["values"] for document in (plain, weighted))
    name, other = books.collection.name, films.collection.name
    assert after[name]["after"] == pytest.approx(1.5 * before[name]["after"])
    assert after[other] == before[other], "equal counts are plain means"
    counted(books, 7, 7)
    equal = report("counts").json
    assert [system["tests"] for system in equal["systems"]] == [system["tests"] for system in plain["systems"]]
    printed = call("suite", "report", "both", "--k", 2, "--weights", "counts").out
    assert "weighted by the counts of its query log" in printed
