"""`panel NAME`: from stored votes, labels made elsewhere and reference grades to a document."""

import re

import pytest

from annotation.quality.panels.report import choose_panel
from corpus.importing.assess import import_judgments
from tests.called import call
from tests.evidence import make_assessor, make_campaign, make_judge
from tests.factories import make_collection
from tests.panel_scene import PAIRS, add_pairs, answers, cast, refer, vote

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    """One query with so many documents."""
    books = make_collection("books", grades=3, relevant_from=2)
    add_pairs(books, "q1", [f"d{n}" for n in range(PAIRS)])
    return books


@pytest.fixture
def voted(books):
    """Judges j0 to j6 and `coin` voted in one campaign; there is no reference. Returns votes and truth."""
    votes, truth = answers(1)
    vote(books, votes)
    return votes, truth


@pytest.fixture
def judged(books, voted):
    """The same, and the reference knows everything."""
    refer(books, voted[1])
    return voted


@pytest.fixture
def bring(books, tmp_path):
    """Import a judge's grades that were made elsewhere."""

    def run(name, verdicts, ids="q1,d"):
        rows = [f"{ids}{n},{3 if yes else 0}" for n, yes in enumerate(verdicts)]
        path = tmp_path / f"{name}.csv"
        path.write_text("query_id,doc_id,grade\n" + "\n".join(rows) + "\n")
        import_judgments(books, path, assessor=name, kind="judge")

    return run


def panel(*options):
    return call("panel", "books", *options, "--json").json


def refused(*options):
    done = call("panel", "books", *options, "--json")
    assert (done.code, done.out) == (2, "") and "\n" not in done.err.strip()
    return done.err


def sets_of(found: dict) -> list[set[str]]:
    return [set(one["judges"]) for one in [*found["by_mean"], *found["by_largest"]]]


def test_the_coin_is_never_proposed_and_the_copy_made_elsewhere_is_named(judged, bring):
    votes, _ = judged
    bring("gpt", votes[0])
    found = panel()
    assert found["copies"] == [["j0", "gpt"]]
    assert found["subsets"] == 21, "seven of nine: not the coin, and of the copies only one"
    assert all("coin" not in one and not {"j0", "gpt"} <= one for one in sets_of(found))
    coin = next(one for one in found["candidates"] if one["name"] == "coin")
    assert not coin["passes"] and "chance (p = " in coin["why_not"]
    assert found["proposed"] == found["by_mean"][0] and found["reason"] is None
    text = call("panel", "books").out
    assert "floor: coin" in text and "j0 and gpt are" in text and 'ensemble = ["j' in text


def test_every_figure_of_the_document(judged):
    votes, truth = judged
    found = panel("--bootstrap", "50")
    assert (found["pairs"], found["gold"]["pairs"], found["gold"]["relevant"]) == (120, 120, int(truth.sum()))
    first = next(one for one in found["candidates"] if one["name"] == "j0")
    recalls = votes[0][truth == 1].mean(), 1 - votes[0][truth == 0].mean()
    assert first["balanced_accuracy"]["value"] == pytest.approx(sum(recalls) / 2)
    assert (first["pairs"], first["relevant"]) == (120, int(votes[0].sum()))
    assert first["cost_per_pair"] == pytest.approx(0.001)
    assert first["leave_one_out"]["n"] <= 120 and first["kappa_majority"]["value"] > 0.3
    assert len(found["pairwise"]) == 28
    two = found["pairwise"][0]
    assert two["kappa"]["low"] < two["kappa"]["value"] < two["kappa"]["high"]
    best = found["proposed"]
    kappas = {frozenset((one["a"], one["b"])): one["kappa"]["value"] for one in found["pairwise"]}
    mine = [kappas[frozenset((a, b))] for n, a in enumerate(best["judges"]) for b in best["judges"][:n]]
    assert best["mean_kappa"] == pytest.approx(sum(mine) / 10)
    assert best["largest_kappa"] == pytest.approx(max(mine)) == kappas[frozenset(best["largest_between"])]
    assert best["cost_per_pair"] == pytest.approx(sum(0.001 * (int(name[1]) + 1) for name in best["judges"]))
    assert 3 < best["effective_votes"] <= 5 and best["balanced_accuracy"]["value"] > 0.9
    assert set(best["without"]) == set(best["judges"]) and best["usable"]


def test_only_pairs_that_all_candidates_judged_are_compared_and_who_judged_too_few_is_left_out(judged, bring, books):
    votes, truth = judged
    bring("few", [1] * 19)
    made = panel()
    assert [(row["name"], *re.findall(r"\d+", row["reason"])) for row in made["left_out"]] == [("few", "19", "20")]
    assert "fewer than 20 pairs" in refused("--candidates", "few,j0")
    refer(books, [1 - truth[0], *truth[1:]], name="second")
    assert panel()["gold"]["pairs"] == 119, "of references that differ the pair has no gold"
    bring("half", votes[0][:60])
    assert panel()["pairs"] == 60 and panel("--candidates", "j0,j1,j2")["pairs"] == 120
    add_pairs(books, "q2", [f"e{n}" for n in range(30)])
    bring("late", [n % 2 for n in range(30)], "q2,e")
    assert "The 10 candidates share 0 pairs, and 20 are needed. Without late the others share 60" in refused()


def test_an_old_version_of_a_judge_is_left_out_unless_named(judged, books):
    votes, _ = judged
    newer = make_judge("j0", version=2)
    cast(make_campaign(books, [newer]), newer, votes[1])
    found = panel()
    assert found["left_out"] == [{"name": "j0@1", "reason": "an older version"}]
    named = panel("--candidates", "j0@1,j1,j2")
    old = next(one for one in named["candidates"] if one["name"] == "j0@1")
    assert re.findall(r"\d", old["note"]) == ["1", "2"] and old["usable"], "the version that voted, and the current one"


def test_an_import_is_usable_only_where_a_judge_of_its_name_is_configured(judged, bring):
    votes, _ = judged
    bring("elsewhere", votes[2])
    bring("ready", votes[3])
    make_judge("ready")
    notes = {one["name"]: (one["usable"], one["note"]) for one in panel()["candidates"]}
    assert not notes["elsewhere"][0] and "no judge of" in notes["elsewhere"][1]
    assert notes["ready"][0] and "m-ready is configured" in notes["ready"][1]
    assert notes["j1"] == (True, None)


def test_the_price_of_a_vote_counts_failed_tries_and_forgets_the_cache(books):
    votes, _ = answers(2)
    judges = [make_judge(name) for name in ("paid", "cached", "unknown")]
    campaign = make_campaign(books, judges)
    cast(campaign, judges[0], votes[0], 0, cost=0.002)
    cast(campaign, judges[0], votes[0], 0, cost=0.001, counts=False, number=9)
    cast(campaign, judges[1], votes[1], 1, cost=0.0, cached=True)
    cast(campaign, judges[2], votes[2], 2, cost=None)
    found = choose_panel(books).material
    assert {one.name: one.cost for one in found.candidates} == {
        "paid": pytest.approx(0.003),
        "cached": None,
        "unknown": None,
    }


def test_bad_input_is_said_in_one_line(judged, books):
    make_assessor(books, "alice")
    for options, words in (
        (["--candidates", "qrels,j0"], "--candidates: "),  # people and the reference are no candidates
        (["--candidates", "nobody"], "No assessor named nobody"),
        (["--candidates", "j0,j0"], "--candidates names a judge twice"),
        (["--candidates", "j0"], "only j0 did"),
        (["--floor", "2"], "--floor 2.0: balanced accuracy and kappa are numbers up to 1"),
        (["--floor", "nan"], "--floor nan"),
        (["--bootstrap", "-1"], "cannot be negative"),
    ):
        assert words in refused(*options)
    make_collection("films")
    empty = call("panel", "films")
    assert empty.code == 2 and "import labels" in empty.err
