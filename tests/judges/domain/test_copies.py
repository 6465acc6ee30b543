"""Samples of one model in agreement, exports and pages: apart from each other, and named as copies."""

import json
from collections import Counter
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from django.test import Client

from annotation.agreement import cached_results
from annotation.agreement import page as agreement_page
from annotation.agreement.grade_matrix import choose_assessors, known_assessors, load_grade_matrix
from annotation.agreement.report import agreement_report, build_json_document
from annotation.exports.options import ExportOptions
from annotation.exports.sets.rows import SetRow
from annotation.exports.sets.source import SetSource, read_votes
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.home.overview.collection import kappa_bar
from annotation.models import Role
from annotation.quality.label_quality import kappas, statistics
from annotation.quality.panels import independence, subsets
from annotation.quality.panels.applying import make_panel, preview_change
from annotation.quality.panels.report import choose_panel
from annotation.quality.policies.reading import panel_of
from corpus.errors import BadInput
from corpus.models import Collection
from judges.domain.ensemble import drawn_first, pair_seed
from judges.models import Campaign, JudgeVersion, Panel
from judges.panels.offline_panel import ensure_offline
from tests.evidence import make_campaign, make_judge, make_label, make_votes
from tests.factories import make_collection, make_member, make_pair
from tests.panel_scene import HONEST, PAIRS, add_pairs, answers, cast, refer, vote

pytestmark = pytest.mark.django_db
SAID = ([1, 0, 1], [0, 0, 1], [1, 1, 1], [0, 0, 0])
"""Of each pair the three votes of one judge."""


@pytest.fixture
def sampled() -> Campaign:
    """One judge sampled three times on four pairs."""
    books = make_collection("books", grades=3, relevant_from=2)
    judge = make_judge("judge", parameters={"temperature": 0.7})
    campaign = make_campaign(books, [judge] * 3, majority=2)
    for verdicts in SAID:
        pair = make_pair(books)
        make_votes(campaign, pair, [judge] * 3, list(verdicts))
        make_label(pair, 2 * (sum(verdicts) > 1), "ensemble")
    return campaign


@pytest.fixture
def admin(sampled: Campaign, client: Client) -> Client:
    client.force_login(make_member(sampled.collection, "charlie", Role.ADMIN).user)
    return client


def grades_of(books: Collection, *names: str) -> dict[str, list[int]]:
    """What each said, pair by pair; -1 where it said nothing."""
    found = load_grade_matrix(books, choose_assessors(known_assessors(books), names=names))
    return {one.name: row.tolist() for one, row in zip(found.assessors, found.grades, strict=True)}


def test_each_sample_is_an_assessor_of_its_own_and_one_ask_counts_for_the_first(sampled: Campaign) -> None:
    books = sampled.collection
    expected = {f"judge #{n + 1}": [2 * verdicts[n] for verdicts in SAID] for n in range(3)}
    assert grades_of(books) == grades_of(books, "judge") == expected
    assert grades_of(books, "judge #2") == {"judge #2": expected["judge #2"]}
    books, judge = sampled.collection, sampled.voters[0]
    (pair, *_rest) = books.pair_set.order_by("pk")
    later = Campaign.objects.create(collection=books, voters=[judge], policy="single", panel="main", state="finished")
    make_votes(later, pair, [JudgeVersion.objects.get(pk=judge)], [0])
    assert grades_of(books)["judge #1"][0] == 0
    assert grades_of(books)["judge #3"][0] == 2


def test_after_an_early_stop_only_the_samples_drawn_first_are_used(sampled: Campaign) -> None:
    Campaign.objects.filter(pk=sampled.pk).update(early_stop=True, seed=3)
    found = grades_of(sampled.collection)
    for column, pair in enumerate(sampled.collection.pair_set.order_by("pk")):
        drawn = drawn_first(3, True, pair_seed(3, pair.pk))
        assert len(drawn) == 2
        assert {name for name, row in found.items() if row[column] >= 0} == {f"judge #{n + 1}" for n in drawn}


def test_stored_figures_of_samples_keep_who_they_are(sampled: Campaign) -> None:
    books, known = sampled.collection, known_assessors(sampled.collection)
    asked = agreement_page.AgreementFilters(tuple(choose_assessors(known)), "all", "kappa", None, True)
    stored = cached_results.AGREEMENT.compute_now(books, **cached_results._build_options(asked))
    report, _second, _clusters = cached_results._restore_figures(books, asked, known, stored.values or {})
    assert [one.name for one in report.assessors] == ["judge #1", "judge #2", "judge #3"]
    assert report.copies == ((0, 1, 2),)


def test_the_dashboard_names_each_model_that_is_there_several_times(sampled: Campaign) -> None:
    books = sampled.collection
    other = make_judge("other", parameters={"temperature": 0.7})
    make_votes(make_campaign(books, [other] * 2), books.pair_set.order_by("pk")[0], [other] * 2, [1, 0])
    found = next(kappas.measure_kappas(books, kappas.read_binary_votes(books)))
    assert found.copies == (("judge #1", "judge #2", "judge #3"), ("other #1", "other #2"))
    assert (statistics.cached_statistics(books).kappas or ())[0] == found, "computed while the page waits"
    detail = kappa_bar(found).detail
    assert "; judge #1, judge #2, judge #3 " in detail and "; other #1, other #2 " in detail
    assert detail.count("the same model") == 2


def test_exports_keep_the_samples_apart(sampled: Campaign, tmp_path: Path) -> None:
    books = sampled.collection
    write_snapshot(create_snapshot(books, ExportOptions(format="judgments"), tmp_path / "out"))
    rows = [json.loads(line) for line in (tmp_path / "out" / "judgments.jsonl").read_text().splitlines()]
    told = sorted((row["doc_id"], row["assessor"], row["grade"]) for row in rows)
    pairs = books.pair_set.select_related("document").order_by("pk")
    assert told == sorted(
        (pair.document.external_id, f"judge #{n + 1}", 2 * verdicts[n])
        for pair, verdicts in zip(pairs, SAID, strict=True)
        for n in range(3)
    )
    assert set(SetSource(books).judges.values()) == {"judge #1", "judge #2", "judge #3"}
    assert list(read_votes([pairs[0].pk])[pairs[0].pk].values()) == list(SAID[0])


@pytest.mark.parametrize(
    ("panel", "cast", "share"), [(5, 5, 0.6), (5, 4, None), (3, 3, 1.0), (3, 2, None), (1, 1, 1.0), (7, 5, None)]
)
def test_the_share_of_votes_needs_all_votes_of_the_panel(panel: int, cast: int, share: float | None) -> None:
    row = SetRow("books", "q", "d", 1, 1, 1, 1, "ensemble", True, yes=min(cast, 3), votes=cast, panel=panel)
    assert row.annotated_score == share


def test_a_judge_alone_gives_no_share_of_a_panels_votes(sampled: Campaign) -> None:
    Campaign.objects.filter(pk=sampled.pk).update(policy="single")
    rows = SetSource(sampled.collection).rows(ExportOptions(format="prism", teacher="labels"), Counter())
    assert {row.annotated_score for row in rows} == {None}
    Campaign.objects.filter(pk=sampled.pk).update(policy="ensemble")
    rows = SetSource(sampled.collection).rows(ExportOptions(format="prism", teacher="votes"), Counter())
    assert sorted(row.target_score for row in rows if row.target_score is not None) == [0, 1 / 3, 2 / 3, 1]


def test_pages_show_each_sample_and_whose_kappa_is_of_one_model_with_itself(sampled: Campaign, admin: Client) -> None:
    pair = sampled.collection.pair_set.order_by("pk")[0]
    text = admin.get(f"/c/books/pairs/{pair.pk}/").text
    for number in (1, 2, 3):
        assert f'class="nowrap">judge #{number}</th>' in text
    campaigns = admin.get("/c/books/campaigns/").text
    assert "3 of them are samples of m-judge" in campaigns
    assert panel_of(sampled).judges == ("judge #1", "judge #2", "judge #3")
    books = sampled.collection
    other = make_judge("other", parameters={"temperature": 0.7})
    make_votes(make_campaign(books, [other]), books.pair_set.order_by("pk")[0], [other], [1])
    report = agreement_report(books, choose_assessors(known_assessors(books)))
    told = build_json_document(report)
    assert told["copies"] == [["judge #1", "judge #2", "judge #3"]]
    marked = {(one["a"], one["b"]): one.get("copies", False) for one in told["pairwise"]}
    assert marked["judge #1", "judge #3"] and not marked["judge #1", "other"]
    rows = list(agreement_page.csv_rows(report))
    assert {row[:2]: row[-1] for row in rows}["judge #1", "judge #2"] == "yes"
    text = admin.get("/c/books/quality/").text
    assert "judge #1, judge #2, judge #3 are one model with the same parameters. Their agreement shows" in text
    assert "judge #1 and judge #2: " in text and ", same model" in text
    two = admin.get("/c/books/agreement/two/", {"a": "judge #1", "b": "judge #2"}).text
    assert "how consistent" in two
    out = StringIO()
    call_command("agreement", "books", stdout=out)
    assert "(same model)" in out.getvalue()


# --- choosing a panel of another size ---


@pytest.fixture
def candidates() -> Collection:
    books = make_collection("books", grades=3, relevant_from=2)
    add_pairs(books, "q1", [f"d{n}" for n in range(PAIRS)])
    verdicts, truth = answers(1)
    vote(books, verdicts)
    refer(books, truth)
    return books


@pytest.mark.parametrize(("size", "sets", "majority"), [(3, 35, 2), (5, 21, 3), (7, 1, 4)])
def test_a_panel_of_each_size_is_chosen(candidates: Collection, size: int, sets: int, majority: int) -> None:
    chosen = choose_panel(candidates, size=size)
    assert (chosen.panels.panel_count, chosen.majority) == (sets, majority)
    assert chosen.panels.proposed is not None and len(chosen.panels.proposed.members) == size
    assert chosen.panels.proposed.effective_votes is not None and 1 <= chosen.panels.proposed.effective_votes <= size
    out = StringIO()
    call_command("panel", "books", "--size", str(size), stdout=out)
    assert f" of {size} judges is " in out.getvalue()


def test_a_size_that_no_panel_has_and_one_judge_under_two_names_are_refused(candidates: Collection) -> None:
    with pytest.raises(BadInput, match="Choose 3, 5, 7 or 9 judges"):
        choose_panel(candidates, size=4)
    assert [subsets.most_candidates(size) for size in (3, 5, 7, 9)] == [40, 40, 26, 22]
    make_judge("again", model=f"m-{HONEST[0]}")
    for ask in (
        lambda names: preview_change(candidates, names),
        lambda names: make_panel(collection=candidates, judges=names),
    ):
        with pytest.raises(BadInput, match=f"{HONEST[0]}, again are one model"):
            ask([HONEST[0], HONEST[1], "again"])
    assert not Panel.objects.filter(name="books:chosen").exists()
    assert preview_change(candidates, [HONEST[1], HONEST[2], "again"])["majority"] == 2


def test_the_page_chooses_a_size_and_the_panel_gets_its_majority(candidates: Collection, client: Client) -> None:
    client.force_login(make_member(candidates, "charlie", Role.ADMIN).user)
    text = client.get("/c/books/panel/", {"size": "3"}).text
    assert "2 of 3 votes" in text and "<option selected>3</option>" in text
    assert "3 of 5 votes" in client.get("/c/books/panel/", {"size": "4"}).text
    asked = client.get("/c/books/panel/use/", {"judge": HONEST[:3]}).text
    assert "2 of 3 votes" in asked
    make_panel(collection=candidates, judges=HONEST[:3])
    made = Panel.objects.get(name="books:chosen")
    assert (made.ensemble, made.majority) == (HONEST[:3], 2)
    make_panel(collection=candidates, judges=HONEST[:7])
    assert Panel.objects.get(name="books:chosen").majority == 4


def test_candidates_known_to_be_one_model_are_copies_whatever_they_answered() -> None:
    verdicts, truth = answers(1)
    kappas_of = np.zeros((len(verdicts), len(verdicts)))
    found = independence.group_copies(verdicts.astype(np.int8), truth.astype(np.int8), kappas_of, [(0, 3)])
    assert (0, 3) in found


def test_of_samples_of_one_model_one_sits_on_a_proposed_panel(candidates: Collection) -> None:
    judge = make_judge("again", parameters={"temperature": 1})
    campaign = make_campaign(candidates, [judge] * 3)
    verdicts, _ = answers(5)
    for place in range(3):
        cast(campaign, judge, [int(one) for one in verdicts[place]], place, cost=0.0001)
    chosen = choose_panel(candidates, size=3)
    names = [chosen.names(group) for group in chosen.measures.copy_groups]
    assert ["again #1", "again #2", "again #3"] in names
    assert chosen.panels.proposed is not None
    assert sum(name.startswith("again") for name in chosen.names(chosen.panels.proposed.members)) <= 1


def test_a_panel_of_which_nobody_can_be_asked_is_bad_input(db: None) -> None:
    ensure_offline()
    Panel.objects.create(name="arguing", debate=["offline-for", "offline-against"], ensemble=[], majority=1)
    make_collection("quiet")
    err = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("panel", "quiet", "--self-check", "--panel", "arguing", stdout=StringIO(), stderr=err)
    assert ended.value.code == 2 and "Nobody of panel" in err.getvalue()
