"""The second person reviews every query: never their own, one at a time, own weights first, changes with a reason."""

import csv
import io
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from sklearn.metrics import cohen_kappa_score

from annotation.models import AuditEntry, Membership, Role
from annotation.work.aspects import review_figures, review_steps, reviews
from annotation.work.aspects.review_steps import Verdict
from corpus.aspects import documents, revising
from corpus.aspects.entries import Wording
from corpus.aspects.exchange import export_aspects, export_lines, import_aspects
from corpus.errors import BadInput
from corpus.models import Collection, Label, Query
from corpus.models.aspects import AspectReview, AspectRevision, ReviewStep
from tests.aspect_reviews import ACCEPTED, WHY, accept_all, decide_all, ice_document, newest
from tests.aspects_scene import ice_scene
from tests.factories import client_of, make_member


class Office:
    """Bob decomposed the first query and decided on its documents; Dana and Eve may review it."""

    def __init__(self) -> None:
        self.collection, self.query, people = ice_scene()
        self.bob, self.dana, self.charlie = people["bob"], people["dana"], people["charlie"]
        self.eve = make_member(self.collection, "eve", Role.ADJUDICATOR)
        decide_all(self.query, self.bob)

    def second_query(self) -> Query:
        query = Query.objects.get(external_id="q2")
        for text in ("Flow", "Melting"):
            revising.add_aspect(query, self.bob.assessor, Wording(text, WHY))
        return query

    def weighed(self, **weights: int) -> AspectReview:
        """Dana's review after her own weights."""
        review = reviews.claim_review(self.dana)
        review_steps.give_weights(review, self.dana, weights or {"a1": 5, "a2": 3})
        return review

    def at_documents(self) -> AspectReview:
        review = self.weighed()
        review_steps.judge_aspects(review, self.dana, ACCEPTED, {}, newest(self.query))
        return review

    def judge(self, review: AspectReview, **changed: Any) -> ReviewStep:
        """Dana's verdicts on the documents: accepted but for those that are named."""
        said = {one.key: Verdict(True) for one in review_steps.decisions_under_review(review)}
        return review_steps.judge_documents(review, self.dana, said | changed, newest(self.query))

    def key(self, number: int, aspect: str = "") -> str:
        return f"{ice_document(number).pk}-{aspect}"

    def kept(self) -> set[tuple[str, str]]:
        labels = Label.objects.filter(pair__query=self.query, aspect__is_current=True, grade__gte=1)
        return set(labels.values_list("pair__document__external_id", "aspect__external_id"))


@pytest.fixture
def office(db: None) -> Office:
    return Office()


def test_one_other_person_at_a_time_has_a_decided_query_until_the_lease_ends(office: Office) -> None:
    documents.reopen(office.query, office.bob.assessor, ice_document(0))
    states = {"all": 1, "reviewed": 0, "outdated": 0, "open": 0, "ready": 0, "undecided": 1}
    assert reviews.count_states(office.collection) == states
    with pytest.raises(BadInput):
        reviews.claim_review(office.dana)
    documents.keep(office.query, office.bob.assessor, ice_document(0), ["a1"])
    with pytest.raises(BadInput, match="another person"):
        reviews.claim_review(office.bob)
    Membership.objects.filter(pk=office.dana.pk).update(paused_at=timezone.now())
    client_of(office.dana).post("/c/ice/aspects/review/claim/")
    assert not AspectReview.objects.exists(), "she is paused"
    Membership.objects.filter(pk=office.dana.pk).update(paused_at=None)
    mine = reviews.claim_review(office.dana)
    assert reviews.claim_review(office.dana) == mine and mine.query == office.query
    with pytest.raises(BadInput):
        reviews.claim_review(office.eve)
    AspectReview.objects.filter(pk=mine.pk).update(leased_until=timezone.now() - timedelta(days=1))
    review_steps.give_weights(mine, office.dana, {"a1": 5, "a2": 3})
    mine.refresh_from_db()
    assert mine.leased_until > timezone.now(), "a lease that ended is still good where nobody took the query"
    AspectReview.objects.filter(pk=mine.pk).update(leased_until=timezone.now() - timedelta(seconds=1))
    theirs = reviews.claim_review(office.eve)
    assert theirs != mine and theirs.blind
    with pytest.raises(BadInput, match="taken over"):
        review_steps.judge_aspects(mine, office.dana, ACCEPTED, {}, newest(office.query))
    with pytest.raises(IntegrityError), transaction.atomic():
        AspectReview.objects.filter(pk=mine.pk).update(state="open")
    for _ in range(2):
        reviews.release_review(office.eve, theirs)
    assert AuditEntry.objects.filter(act="aspects.reviewed", details__did="release").count() == 1
    assert reviews.claim_review(office.dana).query == office.query


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_two_people_who_claim_at_the_same_moment_get_two_queries() -> None:
    office = Office()
    office.second_query()
    together = Barrier(6)

    def claim(member: Membership) -> int:
        together.wait()
        try:
            return reviews.claim_review(member).query_id
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(claim, [office.dana, office.eve] * 3))
    # Each presses three times and has one query; nobody has the other's.
    assert len(set(taken[::2])) == len(set(taken[1::2])) == 1 and taken[0] != taken[1]
    assert AspectReview.objects.filter(state="open").count() == 2


def test_a_new_text_of_the_query_ends_the_review(office: Office) -> None:
    review = office.weighed()
    Query.objects.filter(pk=office.query.pk).update(is_current=False)
    with pytest.raises(BadInput, match="newer text"):
        review_steps.judge_aspects(review, office.dana, ACCEPTED, {}, newest(office.query))
    other = office.second_query()
    assert reviews.claim_review(office.dana).query == other


def test_own_weights_come_first_are_given_once_and_hide_the_first_ones(office: Office) -> None:
    review = reviews.claim_review(office.dana)
    client = client_of(office.dana)
    page = client.get(f"/c/ice/aspects/review/{review.pk}/").text.split("<main")[1]
    assert "checked" not in page and "First person" not in page and "0.63" not in page
    desk = client.get(f"/c/ice/aspects/{office.query.pk}/")
    assert (desk.status_code, desk["Location"]) == (302, f"/c/ice/aspects/review/{review.pk}/")
    with pytest.raises(BadInput, match="not the next"):
        review_steps.judge_aspects(review, office.dana, ACCEPTED, {}, newest(office.query))
    with pytest.raises(BadInput, match="Weigh every aspect"):
        review_steps.give_weights(review, office.dana, {"a1": 5})
    review_steps.give_weights(review, office.dana, {"a1": 4, "a2": 2})
    with pytest.raises(BadInput, match="cannot be changed"):
        review_steps.give_weights(review, office.dana, {"a1": 5, "a2": 3})
    assert client.get(f"/c/ice/aspects/{office.query.pk}/").status_code == 200
    # The first ones are changed with a reason, as a revision.
    base, changed = newest(office.query), ACCEPTED | {"weights": Verdict(False, "A detail is overrated.")}
    for verdicts, weights, why in (
        (changed, {"a1": 5, "a2": 3}, "as they were"),
        (ACCEPTED, {"a1": 4, "a2": 3}, "weights differ"),
        (ACCEPTED | {"weights": Verdict(False)}, {"a1": 4}, "Give a reason"),
    ):
        with pytest.raises(BadInput, match=why):
            review_steps.judge_aspects(review, office.dana, verdicts, weights, base)
    assert newest(office.query) == base
    revision = review_steps.judge_aspects(review, office.dana, changed, {"a1": 4, "a2": 3}, base).revision
    assert revision.act == "review" and [aspect["importance"] for aspect in revision.aspects] == [4, 3]
    assert revision.author == office.dana.assessor and "overrated" in revision.note


def test_the_set_is_changed_on_its_page_and_the_criteria_must_say_so(office: Office) -> None:
    review = office.weighed()
    missing = ACCEPTED | {"coverage": Verdict(False, "Snowfall is missing.")}
    with pytest.raises(BadInput, match="as they were"):
        review_steps.judge_aspects(review, office.dana, missing, {}, newest(office.query))
    revising.add_aspect(office.query, office.dana.assessor, Wording("Snowfall", WHY, 2))
    with pytest.raises(BadInput, match="changed the aspects"):
        review_steps.judge_aspects(review, office.dana, ACCEPTED, {}, newest(office.query))
    review_steps.judge_aspects(review, office.dana, missing, {}, newest(office.query))
    revising.add_aspect(office.query, office.dana.assessor, Wording("Rock", WHY, 2))
    with pytest.raises(BadInput, match="after you judged"):
        office.judge(review)
    revising.weigh_aspects(office.query, office.bob.assessor, {"a1": 1})
    with pytest.raises(BadInput, match="Another person changed"):
        office.judge(review)


def test_documents_are_changed_with_a_reason_and_moved(office: Office) -> None:
    review = office.at_documents()
    assert [(one.external_id, one.aspect) for one in review_steps.decisions_under_review(review)] == [
        ("Ice_sheet_0", "a1"), ("Ice_sheet_1", "a1"), ("Ice_sheet_1", "a2"), ("Ice_sheet_2", "a2"), ("Ice_sheet_3", "")
    ]  # fmt: skip
    both = {office.key(1, "a1"): Verdict(False, "Only heat.", ("a2",)), office.key(1, "a2"): Verdict(False, "No.")}
    for wrong, why in (
        ({office.key(0, "a1"): Verdict(False)}, "Give a reason"),
        ({office.key(3): Verdict(False, "It does help.")}, "Choose the aspects"),
        ({office.key(0, "a1"): Verdict(False, "Moved.", ("a9",))}, "no longer exists"),
        (both, "both keep and remove"),
    ):
        with pytest.raises(BadInput, match=why):
            office.judge(review, **wrong)
    with pytest.raises(BadInput, match="Choose “Accept”"):
        review_steps.judge_documents(review, office.dana, {}, newest(office.query))
    changed = {
        office.key(0, "a1"): Verdict(False, "It is about heat.", ("a2",)),
        office.key(2, "a2"): Verdict(False, "On topic only."),
        office.key(3): Verdict(False, "It states the rate.", ("a1",)),
    }
    step = office.judge(review, **changed)
    assert office.kept() == {
        ("Ice_sheet_0", "a2"), ("Ice_sheet_1", "a1"), ("Ice_sheet_1", "a2"), ("Ice_sheet_3", "a1")
    }  # fmt: skip
    review.refresh_from_db()
    assert (review.state, review.accepted, review.final) == ("submitted", False, step.revision)
    assert reviews.count_states(office.collection)["undecided"] == 0


def test_undo_takes_back_the_newest_step_and_appends(office: Office) -> None:
    before = office.kept()
    review = office.at_documents()
    office.judge(review, **{office.key(2, "a2"): Verdict(False, "On topic only.")})
    review_steps.undo_step(review, office.dana)
    review.refresh_from_db()
    assert (review.state, review.accepted, office.kept()) == ("open", None, before)
    office.judge(review)
    review_steps.undo_step(review, office.dana)
    review_steps.undo_step(review, office.dana)
    with pytest.raises(BadInput, match="nothing to undo"):
        review_steps.undo_step(review, office.dana)
    kinds = ["weights", "aspects", "documents", "undo", "documents", "undo", "undo"]
    assert list(ReviewStep.objects.order_by("pk").values_list("kind", flat=True)) == kinds
    assert [row.act for row in AspectRevision.objects.order_by("-number")[:2]] == ["undo", "review"]


def test_a_later_change_outdates_the_review_and_its_author_does_not_review_it(office: Office) -> None:
    before = newest(office.query)
    review = accept_all(office.dana)
    assert (review.state, review.accepted, newest(office.query)) == ("submitted", True, before)
    assert reviews.count_states(office.collection)["reviewed"] == reviews.count_reviewed(office.collection) == 1
    with pytest.raises(BadInput):
        reviews.claim_review(office.eve)
    revising.clarify_aspect(office.query, office.bob.assessor, "a1", Wording("Creep", WHY))
    assert reviews.count_states(office.collection)["outdated"] == 1
    with pytest.raises(BadInput, match="no longer be"):
        review_steps.undo_step(review, office.dana)
    with pytest.raises(BadInput):
        reviews.claim_review(office.bob)
    again = accept_all(office.dana, {"a1": 1, "a2": 1})
    assert not again.blind and again != review
    figures = review_figures.measure_reviews(office.collection)
    assert (figures["queries"], figures["weights"].percent.value) == (1, 1.0)


def test_figures_equal_scikit_learns_and_are_taken_away(office: Office) -> None:
    office.second_query()
    review = office.weighed(a1=4, a2=3)
    review_steps.judge_aspects(review, office.dana, ACCEPTED, {}, newest(office.query))
    office.judge(review, **{office.key(2, "a2"): Verdict(False, "On topic only.")})
    accept_all(office.dana, {"a1": 3, "a2": 1})
    rows = {row["key"]: row["statistic"] for row in review_figures.measure_reviews(office.collection)["rows"]}
    first, own = [5, 3, 3, 3], [4, 3, 3, 1]
    for name in ("linear", "quadratic"):
        expected = cohen_kappa_score(first, own, labels=[1, 2, 3, 4, 5], weights=name)
        assert rows[f"weights_{name}"].value == pytest.approx(expected)
    assert rows["decisions_kappa"].value == pytest.approx(cohen_kappa_score([1, 1, 1, 1, 0], [1, 1, 1, 0, 0]))
    assert (rows["kept"].value, rows["kept"].n, rows["discarded"].value) == (0.75, 4, 1.0)
    assert (rows["granularity"].value, rows["granularity"].n) == (1.0, 2)
    client, home = client_of(office.dana), "/c/ice/aspects/review/"
    page = client.get(home).text
    assert "2 of 2 queries reviewed" in page and f"{rows['decisions_kappa'].value:.3f}" in page
    table = list(csv.DictReader(io.StringIO(client.get(f"{home}?as=csv").text)))
    assert next(row for row in table if row["measure"] == "kept")["value"] == "0.75"
    document = client.get(f"{home}?as=json").json()
    assert [row["measure"] for row in document["reviews"]] == list(rows)
    assert r"\toprule" in client.get(f"{home}?as=tex").text
    assert client.get(f"{home}?as=exe").status_code == 404
    quality = client_of(office.charlie).get("/c/ice/quality/").text
    assert "/c/ice/aspects/review/" not in quality  # Aspects belong to the Lab.
    Collection.objects.update(lab=True)
    quality = client_of(office.charlie).get("/c/ice/quality/").text
    assert "/c/ice/aspects/review/" in quality and f"{rows['decisions_kappa'].value:.3f}" in quality


def test_the_aspects_file_says_what_became_of_the_review(office: Office, tmp_path: Any) -> None:
    def lines() -> list[dict[str, Any]]:
        return [json.loads(line) for line in export_lines(office.collection)]

    assert all("review" not in line for line in lines())
    accept_all(office.dana, {"a1": 4, "a2": 3})
    said = [line["review"] for line in lines()]
    assert said == [
        {"status": "accepted", "first_importance": 5, "second_importance": 4},
        {"status": "accepted", "first_importance": 3, "second_importance": 3},
    ]
    export_aspects(office.collection, tmp_path / "out")
    assert import_aspects(office.collection, tmp_path / "out")["changed"] == 0
    revising.add_aspect(office.query, office.bob.assessor, Wording("Rock", WHY, 2))
    assert lines()[0]["review"]["status"] == "outdated"
    assert lines()[2]["review"] == {"status": "outdated", "first_importance": None, "second_importance": None}


def test_a_whole_review_by_plain_forms_keeps_what_was_typed(office: Office) -> None:
    client = client_of(office.dana)
    home = client.post("/c/ice/aspects/review/claim/")["Location"]
    assert client.post(home, {"step": "weights", "w-a1": 5}).status_code == 422
    assert client.post(home, {"step": "weights", "w-a1": 5, "w-a2": 2}).status_code == 302
    criteria = {f"v-{name}": "accept" for name in ACCEPTED}
    weights = {"w-a1": 5, "w-a2": 2}
    wrong = client.post(home, {"step": "aspects", "base": newest(office.query), **criteria, **weights})
    assert wrong.status_code == 422 and "weights differ" in wrong.text
    reason = {"v-weights": "change", "r-weights": "Heat is a detail."}
    client.post(home, {"step": "aspects", "base": newest(office.query), **criteria, **weights, **reason})
    review = AspectReview.objects.get()
    said = {f"v-{one.key}": "accept" for one in review_steps.decisions_under_review(review)}
    said |= {f"v-{office.key(2, 'a2')}": "change"}
    wrong = client.post(home, {"step": "documents", "base": newest(office.query), **said})
    assert wrong.status_code == 422 and "Give a reason" in wrong.text
    said |= {f"r-{office.key(2, 'a2')}": "On topic only."}
    assert client.post(home, {"step": "documents", "base": newest(office.query), **said}).status_code == 302
    page = client.get(home).text
    assert "Review submitted." in page and "Heat is a detail." in page and "On topic only." in page
    assert "accepted with changes" in page
    late = client.post(home, {"step": "documents", "base": newest(office.query), **said})
    assert late.status_code == 409
    other = client_of(office.eve)
    assert "Heat is a detail." in other.get(home).text
    assert other.post(f"{home}undo/").status_code == 404
    client.post(f"{home}undo/")
    assert AspectReview.objects.get().state == "open"
    acts = AuditEntry.objects.filter(act="aspects.reviewed").order_by("pk")
    assert [one.details["did"] for one in acts] == ["claim", "weights", "aspects", "documents", "undo"]
