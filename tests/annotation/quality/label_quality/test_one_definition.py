"""One definition on every page: what the reference says of a pair, and whose votes are people's agreement."""

import pytest

from annotation.agreement.grade_matrix import choose_assessors, known_assessors
from annotation.agreement.report import agreement_report
from annotation.models import Assignment, Role
from annotation.quality.costs.report import _count_gold
from annotation.quality.label_quality.annotators import measure_annotators
from annotation.quality.label_quality.kappas import measure_kappas, read_binary_votes
from annotation.quality.policies.reading import truths_of
from annotation.quality.scale_study.study import study_scales
from annotation.work.experiments.report import drawn_votes
from corpus.labels import EXPERTS, reference_grades
from judges.models import Work
from tests.called import call
from tests.evidence import make_assessor, make_campaign, make_judge, make_judgment, make_votes
from tests.factories import make_collection, make_item, make_member, make_pair

pytestmark = pytest.mark.django_db
MIXED = "blind ones and those with the debate in view together"


def test_what_experts_said_is_the_reference_on_every_page_although_qrels_were_imported_later():
    books = make_collection("books")
    pair, judge, alice = make_pair(books), make_judge("j"), make_member(books, "alice")
    make_judgment(pair, make_assessor(books, EXPERTS, "reference"), 0)
    make_judgment(pair, make_assessor(books, "qrels", "reference"), 1)
    campaign = make_campaign(books, [judge])
    make_votes(campaign, pair, [judge], [1])
    Work.objects.create(campaign=campaign, pair=pair, state="labelled", label=1)
    check = make_item(pair, "check", state="standing", overlap=100)
    passed = make_judgment(pair, alice.assessor, 0, item=check)
    Assignment.objects.create(
        item=check, membership=alice, state="done", judgment=passed, lease_until="2030-01-01T00:00Z"
    )
    make_judgment(pair, alice.assessor, 1, item=make_item(pair, arm="hidden"), arm="hidden")

    assert reference_grades(books) == {pair.pk: 0}
    assert truths_of(campaign)[pair.pk].gold == 0
    assert _count_gold(campaign) == (1, 0, 0, 0)
    assert [vote.reference for vote in drawn_votes(books)] == [False]
    (found,) = measure_annotators(books)
    assert (found.checks, found.missed) == (1, 0)
    assert study_scales(books, ["j"])["scales"][0]["queries"] == 0


def test_agreement_says_that_its_votes_are_not_only_the_blind_ones_of_the_overview(client):
    books = make_collection("books")
    people = [make_assessor(books, name) for name in ("ann", "bob")]

    def vote(arm: str, *grades: int) -> None:
        item = make_item(make_pair(books), arm=arm)
        for person, grade in zip(people, grades, strict=True):
            make_judgment(item.pair, person, grade, item=item, arm=arm)

    def told() -> list[bool]:
        printed = call("agreement", "books", "--people").out
        return [MIXED in text for text in (client.get("/c/books/quality/").text, printed)]

    client.force_login(make_member(books, "ada", Role.ADMIN).user)
    for grades in ((1, 1), (0, 0), (0, 1)):
        vote("hidden", *grades)
    assert told() == [False, False]
    vote("shown", 1, 0)
    kappas = measure_kappas(books, read_binary_votes(books))
    assert [one.pairs for one in kappas if (one.group, one.population) == ("people", "all")] == [3]
    chosen = choose_assessors(known_assessors(books), people=True)
    assert agreement_report(books, chosen).measures.alpha_nominal.n == 4
    assert told() == [True, True]
