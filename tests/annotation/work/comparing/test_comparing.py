"""Comparisons: drawing a set, people at work on it once each, undo, control, results; and their pages."""

import re
import threading
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone

from annotation.models import AuditEntry, Membership, Role
from annotation.models.comparisons import Comparison, ComparisonLease, ComparisonSet, Preference
from annotation.models.snapshots import QuerySplit
from annotation.work.comparing import selectors, services
from annotation.work.comparing.options import ComparisonOptions
from corpus.collections.removal import delete_collection
from corpus.errors import BadInput, BadOption, StateConflict
from corpus.models import Collection, Label
from tests.comparing_scene import SHELL, answer, draw, make_relevant, prefer
from tests.factories import client_of, make_collection, make_member

pytestmark = pytest.mark.django_db


def held(member: Membership) -> list[Comparison]:
    """Comparisons that are open for a member, in the order in which they are shown."""
    shown = [(view.set, view.seq) for view in selectors.open_comparisons(member)]
    return [
        Comparison.objects.get(set__number=number, set__collection=member.collection, seq=seq) for number, seq in shown
    ]


# Drawing


def test_a_set_connects_the_relevant_documents_of_each_query_alone(collection: Collection) -> None:
    pairs = make_relevant(collection, queries=2, documents=4)
    Label.objects.filter(pair=pairs[0]).update(grade=0)
    drawn = draw(collection, opponents=2)
    assert drawn.number == 1
    rows = list(drawn.comparisons.select_related("first", "second").order_by("seq"))
    assert all(row.first.query_id == row.second.query_id for row in rows)
    assert pairs[0].pk not in {pair for row in rows for pair in (row.first_id, row.second_id)}
    assert [row.seq for row in rows] == list(range(1, 3 + 4 + 1))
    for pair, score in zip(pairs[4:], (0.1, 0.9, None, 0.8), strict=True):
        type(pair).objects.filter(pk=pair.pk).update(teacher_score=score)
    row = draw(collection, documents="pool", per_query=2).comparisons.latest("seq")
    assert {row.first_id, row.second_id} == {pairs[5].pk, pairs[7].pk}, "the pool is taken by reranker score"
    Label.objects.filter(pair__in=pairs[1:]).update(grade=0)
    for options, name in (({}, "documents"), ({"query_list": "gone"}, "query_list")):
        with pytest.raises(BadOption) as refusal:
            draw(collection, **options)
        assert refusal.value.problems[0][0] == name


@pytest.mark.parametrize(
    ("options", "queries", "documents"),
    [
        ({}, 3, 9),
        ({"queries": 2}, 2, 6),
        ({"query_list": "fixed"}, 1, 3),
        ({"per_query": 2}, 3, 6),
        ({"documents": "judged"}, 3, 12),
        ({"documents": "pool", "per_query": 5}, 3, 15),
    ],
)
def test_options_choose_queries_and_documents(collection, options, queries, documents):
    pairs = make_relevant(collection, queries=3, documents=5)
    Label.objects.filter(pair__in=[pair for place, pair in enumerate(pairs) if place % 5 == 0]).delete()
    Label.objects.filter(pair__in=[pair for place, pair in enumerate(pairs) if place % 5 == 1]).update(grade=0)
    QuerySplit.objects.create(collection=collection, name="fixed", query_ids=["q1"])
    estimate = selectors.estimate_set(SHELL, collection, ComparisonOptions.read(options))
    assert (estimate["queries"], estimate["documents"]) == (queries, documents)
    assert draw(collection, **options).comparisons.count() == estimate["comparisons"]


def test_minutes_are_assumed_until_thirty_answers_have_a_time(collection: Collection, alice: Membership) -> None:
    make_relevant(collection, documents=3)
    row = draw(collection).comparisons.get(seq=1)
    options = ComparisonOptions.read({"people": 2})
    before = selectors.estimate_set(SHELL, collection, options)
    assert (before["answers"], before["is_assumed"], before["minutes"]) == (6, True, 3)
    for _ in range(30):
        Preference.objects.create(comparison=row, assessor=alice.assessor, outcome="first", seconds=60)
    after = selectors.estimate_set(SHELL, collection, options)
    assert (after["is_assumed"], after["minutes"]) == (False, 6)


# People at work


def test_a_person_has_two_open_and_gets_the_next_with_each_answer(collection: Collection, alice: Membership) -> None:
    Collection.objects.update(min_judgment_ms=300)
    make_relevant(collection, documents=4)
    draw(collection)
    services.claim(alice)
    services.claim(alice)
    first, second = held(alice)
    with pytest.raises(BadInput):
        answer(alice, first, "left", seconds=0.1)
    for side in ("left", "right"):  # a second press is stored once
        answer(alice, first, side, seconds=3.5)
    assert [row.seq for row in held(alice)] == [second.seq, 3]
    progress = selectors.own_progress(alice)
    assert (progress.answered, progress.total) == (1, 6)
    preference = Preference.objects.get()
    lease = ComparisonLease.objects.get(comparison=first, membership=alice)
    assert preference.outcome == ("second" if lease.swapped else "first")
    assert (preference.assessor, preference.swapped, preference.seconds) == (alice.assessor, lease.swapped, 3.5)


def test_nobody_gets_a_comparison_twice_and_no_more_people_than_wanted(collection, alice, bob):
    make_relevant(collection, documents=2)
    charlie = make_member(collection, "charlie")
    (row,) = draw(collection, people=2).comparisons.all()
    for member in (alice, bob, charlie):
        services.claim(member)
    assert [len(held(member)) for member in (alice, bob, charlie)] == [1, 1, 0]
    answer(alice, row, "left")
    services.claim(alice)
    assert held(alice) == []
    with pytest.raises(StateConflict):
        answer(charlie, row, "left")
    # What expired goes to somebody else.
    ComparisonLease.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    services.claim(charlie)
    answer(charlie, row, "equal")
    with pytest.raises(StateConflict):
        answer(bob, row, "left")
    assert set(Preference.objects.values_list("assessor", flat=True)) == {alice.assessor_id, charlie.assessor_id}


@pytest.mark.django_db(transaction=True)
def test_eight_people_who_claim_at_the_same_moment_take_nothing_above_its_people() -> None:
    collection = make_collection("books")
    make_relevant(collection, queries=4, documents=4)
    drawn = draw(collection, people=2)
    members = [make_member(collection, f"person-{n}") for n in range(8)]
    barrier = threading.Barrier(len(members))

    def work(member: Membership) -> None:
        try:
            barrier.wait()
            services.claim(member)
            while rows := held(member):
                answer(member, rows[0], "left")
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for row in drawn.comparisons.all():
        assert row.taken == row.leases.count() == row.preferences.count() == 2
    leases = ComparisonLease.objects.count()
    assert leases * 0.2 < ComparisonLease.objects.filter(swapped=True).count() < leases * 0.8, "sides are random"


def test_undo_appends_a_withdrawal_and_the_new_answer_counts(collection, alice, bob):
    make_relevant(collection, documents=4)
    drawn = draw(collection)
    services.claim(alice)
    row = held(alice)[0]
    answer(alice, row, "equal")
    with pytest.raises(StateConflict):
        services.undo(bob)
    services.undo(alice)
    assert held(alice)[0] == row, "it is shown before the others"
    assert selectors.outcomes_of(drawn) == []
    answer(alice, row, "both_bad")
    assert list(Preference.objects.order_by("pk").values_list("outcome", flat=True)) == ["equal", "", "both_bad"]
    (outcome,) = selectors.outcomes_of(drawn)
    assert (outcome.outcome, outcome.kind, outcome.assessor_id) == ("both_bad", "person", alice.assessor_id)


# Control


def test_a_paused_set_assigns_nothing_until_it_is_resumed_and_an_ended_one_takes_nothing(collection, alice, bob):
    make_relevant(collection)
    drawn = draw(collection)
    services.pause_set(SHELL, drawn)
    services.claim(alice)
    assert held(alice) == []
    services.resume_set(SHELL, drawn)
    services.claim(alice)
    acts = AuditEntry.objects.filter(act="comparisons.control").order_by("pk").values_list("details", flat=True)
    assert [details["state"] for details in acts] == ["paused", "resumed"]
    row, other = held(alice)
    answer(alice, row, "left")
    services.end_set(SHELL, drawn)
    with pytest.raises(StateConflict):
        answer(alice, other, "left")
    with pytest.raises(StateConflict):
        services.undo(alice)
    with pytest.raises(BadInput):
        services.resume_set(SHELL, drawn)


def test_who_is_paused_untested_or_elsewhere_gets_none(collection, alice, bob):
    make_relevant(collection)
    draw(collection)
    Membership.objects.filter(pk=alice.pk).update(paused_at=timezone.now())
    services.claim(alice)
    services.claim(make_member(make_collection("stones"), "dora"))
    Collection.objects.filter(pk=collection.pk).update(qualification=True)
    services.claim(bob)
    assert not ComparisonLease.objects.exists()


def test_only_a_set_without_answers_is_deleted_and_its_preferences_only_with_the_collection(collection, alice):
    make_relevant(collection)
    empty, answered = draw(collection), draw(collection)
    services.claim(alice)
    prefer(answered.comparisons.get(seq=1), alice.assessor, "first")
    assert services.delete_set(SHELL, empty) == 1
    with pytest.raises(BadInput):
        services.delete_set(SHELL, answered)
    assert ComparisonSet.objects.get() == answered
    for change in (lambda: Preference.objects.update(outcome="second"), Preference.objects.all().delete):
        with pytest.raises(DatabaseError), transaction.atomic():
            change()
    delete_collection(collection)
    assert not Preference.objects.exists() and not ComparisonSet.objects.exists()


def test_results_order_the_documents_of_a_query_and_are_taken_away(collection, alice, bob, admin) -> None:
    pairs = make_relevant(collection, documents=3)
    rank = {pair.pk: place for place, pair in enumerate(pairs)}
    drawn = draw(collection, opponents=2, people=2)
    for row in drawn.comparisons.all():
        outcome = "first" if rank[row.first_id] < rank[row.second_id] else "second"
        prefer(row, alice.assessor, outcome)
        prefer(row, bob.assessor, outcome, swapped=True)
    outcomes = selectors.outcomes_of(drawn)
    (query,) = selectors.rank_queries(selectors.list_queries(outcomes))
    assert [document.id for document in query.documents] == ["d0-0", "d0-1", "d0-2"]
    best = query.documents[0]
    assert best.strength.low < best.strength.estimate < best.strength.high
    assert (best.counts.wins, best.counts.losses) == (4, 0)
    (people,) = selectors.describe_results(outcomes)
    assert (people["answers"], people["agreement"].value, people["left"].value) == (6, 1.0, 0.5)
    response = admin.get("/c/books/comparisons/1/")
    (figures,) = response.context["figures"]
    ((shown, chart),) = response.context["queries"]
    assert (figures["agreement"].value, len(shown.documents)) == (1.0, 3)
    table = admin.get(f"/c/books/comparisons/1/?chart={chart.key}&as=csv").text
    assert table.count("\n") == 4 and "d0-0" in table


@pytest.fixture
def admin(collection: Collection) -> Client:
    return client_of(make_member(collection, "ada", Role.ADMIN))


def fields(text: str) -> dict[str, str]:
    """The hidden fields of the answer."""
    return dict(re.findall(r'name="(set|comparison)" value="(\d+)"', text))


def test_a_set_is_drawn_after_its_estimate_was_shown(collection: Collection, admin: Client) -> None:
    form = {"documents": "relevant", "per_query": 6, "opponents": 2, "people": 1, "seed": 0}
    refused = admin.post("/c/books/comparisons/", form | {"confirm": "1"})
    assert refused.status_code == 422 and "No query has two such documents" in refused.text
    make_relevant(collection, queries=2, documents=3)
    estimate = admin.post("/c/books/comparisons/", form)
    assert "6 documents of" in " ".join(estimate.text.split()) and not ComparisonSet.objects.exists()
    drawn = admin.post("/c/books/comparisons/", form | {"confirm": "1"})
    assert drawn["Location"] == "/c/books/comparisons/1/"
    assert admin.get(drawn["Location"]).status_code == admin.get("/c/books/comparisons/").status_code == 200


def test_comparing_works_without_scripts_and_reading_claims_nothing(collection: Collection, alice: Membership) -> None:
    make_relevant(collection)
    draw(collection)
    client = client_of(alice)
    assert "Start comparing" in client.get("/c/books/compare/").text
    assert Comparison.objects.filter(taken__gt=0).count() == 0
    client.post("/c/books/compare/next/")
    for number in range(3):
        page = client.get("/c/books/compare/").text
        assert f'<strong id="answered">{number}</strong> of <span id="total">3</span>' in page
        assert client.post("/c/books/compare/answer/", fields(page) | {"answer": "left"}).status_code == 303
    client.post("/c/books/compare/undo/")
    page = client.get("/c/books/compare/").text
    client.post("/c/books/compare/answer/", fields(page) | {"answer": "both_bad"})
    assert "You answered 3 comparisons" in " ".join(client.get("/c/books/compare/").text.split())
    assert Preference.objects.count() == 5


def test_a_form_that_is_not_the_pages_stores_nothing(collection: Collection, alice: Membership) -> None:
    make_relevant(collection)
    draw(collection)
    services.claim(alice)
    address = {"set": "1", "comparison": "1"}
    for data in ({}, {"answer": "left"}, address | {"answer": "first"}, address | {"set": "x"}):
        assert client_of(alice).post("/c/books/compare/answer/", data).status_code == 422
    assert not Preference.objects.exists()


def test_an_annotator_sees_no_vote_no_grade_and_no_name_of_a_document_and_markup_as_text(collection, alice, bob):
    make_relevant(collection, text="<script>window.hacked = true</script>")
    drawn = draw(collection, people=2)
    for row in drawn.comparisons.all():
        prefer(row, bob.assessor, "first")
    services.claim(alice)
    main = client_of(alice).get("/c/books/compare/").text.split('id="cards"')[1].split("</form>")[0]
    assert main.count("&lt;script&gt;window.hacked") == 4 and "<script>window" not in main
    assert not re.search(r"bob|relevant|first|preferred|strength", re.sub(r"hx-[a-z]+", "", main))


def test_the_menu_has_compare_while_there_are_comparisons_for_people(collection: Collection, alice: Membership) -> None:
    def has_entry() -> bool:
        entries = client_of(alice).get("/c/books/judge/history/").context["navigation"]["entries"]
        return "compare" in {entry["key"] for entry in entries}

    make_relevant(collection)
    assert not has_entry()
    drawn = draw(collection)
    assert has_entry()
    services.end_set(SHELL, drawn)
    assert not has_entry()
    Collection.objects.update(consent_version=1)
    assert client_of(alice).get("/c/books/compare/")["Location"] == "/c/books/judge/", "consent comes first"


def test_acts_on_a_set_are_confirmed_on_its_page(collection, admin) -> None:
    make_relevant(collection)
    draw(collection)
    draw(collection)
    home = "/c/books/comparisons/"
    assert admin.post(f"{home}1/burn/").status_code == 404
    for act, number in (("pause", 1), ("resume", 1), ("end", 1), ("delete", 2)):
        form = admin.get(f"{home}{number}/").text.split(f"/{number}/{act}/")[0].rpartition("<")[0][-400:]
        assert act == "resume" or 'class="confirm"' in form
        assert admin.get(f"{home}{number}/{act}/").status_code == 405
        assert admin.post(f"{home}{number}/{act}/")["Location"] == (home if act == "delete" else f"{home}1/")
