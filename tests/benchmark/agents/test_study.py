"""The blind study of reference answers: draw, answers, ratings without names, results, permissions."""

import re

import numpy as np
import pytest
from django.db import DatabaseError, transaction

from annotation.models import AuditEntry, Role
from benchmark.agents import study
from benchmark.agents.study_results import interval_agreement, measure_line, measure_study
from benchmark.models import AgentJob, ReferenceStudy, StudyAnswer, StudyRating, StudyWithdrawal
from corpus.errors import BadInput
from corpus.models import Query
from tests.benchmark.agents.scripted import wings, with_aspects
from tests.factories import client_of, make_member
from tests.reading import flat, page_text

pytestmark = pytest.mark.django_db
HOME = "/c/wings/benchmark/agents/study/"
MODEL, PERSON = "The model says wings push air [alpha-1].", "A person says wings push air [beta-1]."
RATED = {"first_completeness": "5", "first_quality": "4", "second_completeness": "2", "second_quality": "1"}


def write_references(collection):
    """Reference answers of a model to all queries."""
    job = AgentJob.objects.create(collection=collection, kind="reference", key="r", state="ready")
    for query in Query.objects.filter(collection=collection):
        job.references.create(query=query, answer=MODEL, citations=["alpha-1"], model="secret-model-name")


@pytest.fixture
def collection():
    wanted = with_aspects(wings(3))
    write_references(wanted)
    return wanted


@pytest.fixture
def alice(collection):
    return make_member(collection, "alice")


@pytest.fixture
def bob(collection):
    return make_member(collection, "bob")


@pytest.fixture
def charlie(collection):
    return make_member(collection, "charlie", Role.ADMIN)


def started(collection, queries=3, seed=7):
    return study.start_study(collection, queries=queries, seed=seed, by="charlie")


def written(found, member, text=PERSON):
    study.reserve_query(found, member.assessor)
    return study.write_answer(found, member.assessor, text)


def rated(found, member, answer, model, person):
    """Rate as a person does who knows which is which."""
    pair = (tuple(model), tuple(person))
    order = pair if study.is_model_first(found, answer, member.assessor) else pair[::-1]
    return study.rate_answers(found, member.assessor, answer.pk, *order)


def test_a_line_has_means_their_paired_difference_and_an_interval_around_it():
    model = [(5, 5), (4, 4), (5, 4), (4, 5), (5, 5), (3, 4), (5, 4), (4, 4)]
    person = [(4, 4), (4, 3), (4, 4), (3, 4), (4, 5), (3, 3), (5, 4), (3, 3)]
    line = measure_line("quality", model, person, seed=0)
    assert (line["queries"], line["model"], line["person"]) == (8, 4.375, 3.75)
    assert line["difference"] == pytest.approx(0.625)
    assert line["low"] is not None and line["high"] is not None and 0 < line["low"] < 0.625 < line["high"]
    assert line["p"] == pytest.approx(2 / 128) and line["same"] == 8 / 16 and line["near"] == 1
    alone = measure_line("quality", model[:1], person[:1], seed=0)
    assert (alone["difference"], alone["low"], alone["p"]) == (1, None, None)
    pairs = [(5, 4), (3, 3), (1, 2), (5, 5), (2, 4)]
    values = np.array(pairs).ravel()
    among = (values[:, None] - values[None, :]) ** 2
    expected = among.sum() / (len(values) * (len(values) - 1))
    observed = np.mean([(a - b) ** 2 for a, b in pairs])
    assert interval_agreement(pairs) == pytest.approx(1 - observed / expected)
    assert interval_agreement([(4, 4), (4, 4)]) is None


def test_the_draw_is_seeded_and_only_one_study_is_open(collection):
    found = started(collection, 2)
    with pytest.raises(BadInput, match="open"):
        started(collection, 2)
    study.close_study(collection)
    again = started(collection, 2)
    assert again.references == found.references and len(set(found.references)) == 2
    study.close_study(collection)
    with pytest.raises(BadInput, match="from 1 to 3"):
        started(collection, 4)


def test_a_person_has_one_open_query_and_an_abandoned_one_goes_to_another(collection, alice, bob):
    found = started(collection, 1)
    mine = study.reserve_query(found, alice.assessor)
    assert study.reserve_query(found, alice.assessor) == mine
    assert study.reserve_query(found, bob.assessor) is None
    StudyAnswer.objects.update(reserved_at="2020-01-01T00:00Z")
    assert study.reserve_query(found, bob.assessor) == mine
    with pytest.raises(BadInput, match="reserve"):
        study.write_answer(found, alice.assessor, PERSON)
    study.release_query(found, bob.assessor)
    assert study.count_free(found) == 1


def test_an_answer_cites_passages_of_its_query_and_stays(collection, alice):
    found = started(collection)
    study.reserve_query(found, alice.assessor)
    for wrong, words in (("It lifts [gamma-1].", "gamma-1"), ("It lifts.", "cites no passage")):
        with pytest.raises(BadInput, match=words):
            study.write_answer(found, alice.assessor, wrong)
    answer = study.write_answer(found, alice.assessor, " It lifts  \r\nup [beta-1]. ")
    assert (answer.answer, answer.citations) == ("It lifts\nup [beta-1].", ["beta-1"])
    with pytest.raises(BadInput):
        study.write_answer(found, alice.assessor, PERSON)


def test_two_others_rate_and_never_the_writer(collection, alice, bob, charlie):
    found = started(collection, 1)
    answer = written(found, alice)
    assert list(study.answers_to_rate(found, alice.assessor)) == []
    with pytest.raises(BadInput):
        study.rate_answers(found, alice.assessor, answer.pk, (1, 1), (5, 5))
    rated(found, bob, answer, (5, 4), (3, 3))
    with pytest.raises(BadInput):
        rated(found, bob, answer, (5, 4), (3, 3))
    rated(found, charlie, answer, (4, 4), (4, 4))
    dave = make_member(collection, "dave")
    assert list(study.answers_to_rate(found, dave.assessor)) == []
    with pytest.raises(BadInput):
        rated(found, dave, answer, (1, 1), (1, 1))
    completeness, quality = measure_study(found)
    assert (completeness["model"], completeness["person"], completeness["difference"]) == (4.5, 3.5, 1.0)
    assert (quality["model"], quality["person"]) == (4.0, 3.5)


def test_a_closed_study_with_one_rater_has_means_and_no_agreement(collection, alice, bob):
    """BRIGHT-Pro appendix D: one of the authors rated."""
    found = started(collection, 2)
    for model, person in (((5, 5), (4, 5)), ((4, 5), (5, 4))):
        rated(found, bob, written(found, alice), model, person)
    assert [line["queries"] for line in measure_study(found)] == [0, 0]
    closed = study.close_study(collection)
    closed.refresh_from_db()
    completeness, quality = measure_study(closed)
    assert (completeness["model"], completeness["person"], completeness["queries"]) == (4.5, 4.5, 2)
    assert (quality["model"], quality["person"], quality["difference"]) == (5.0, 4.5, 0.5)
    assert {line[name] for line in (completeness, quality) for name in ("alpha", "same", "near")} == {None}


def test_ratings_are_append_only_and_the_last_one_is_undone_until_the_study_closes(collection, alice, bob):
    found = started(collection, 2)
    answers = [written(found, alice), written(found, alice)]
    for answer in answers:
        rated(found, bob, answer, (5, 5), (1, 1))
    undone = study.undo_rating(found, bob.assessor)
    assert undone is not None and undone.answer == answers[1]
    assert StudyRating.objects.count() == 2 and StudyWithdrawal.objects.count() == 1
    rated(found, bob, answers[1], (4, 4), (2, 2))
    for change in (lambda: StudyRating.objects.update(model_quality=1), StudyWithdrawal.objects.all().delete):
        with pytest.raises(DatabaseError, match="Cannot"), transaction.atomic():
            change()
    study.close_study(collection)
    for act in (study.undo_rating, study.reserve_query):
        with pytest.raises(BadInput, match="closed"):
            act(found, bob.assessor)


def test_nothing_on_the_raters_page_tells_which_answer_is_whose(collection, alice, bob):
    """With the two texts exchanged, the page of a rater whose coin fell otherwise is the same, letter by letter."""
    found = started(collection, 1)
    answer = written(found, alice)
    pages = {}
    for number in range(12):
        member = make_member(collection, f"rater-{number}")
        page = client_of(member).get(f"{HOME}rate/").text
        first = study.is_model_first(found, answer, member.assessor)
        assert (page.index(MODEL) < page.index(PERSON)) is first is study.is_model_first(found, answer, member.assessor)
        for word in ("secret-model-name", "alice", "person-", "model_", "model-first"):
            assert word not in page.replace(MODEL, "").replace(PERSON, ""), word
        page = page[page.index("<main") : page.index("</main")]
        pages[first] = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", page)
    assert pages[False].replace(MODEL, "\0").replace(PERSON, MODEL).replace("\0", PERSON) == pages[True]


def test_the_coin_differs_between_raters_and_stays_for_one(collection, alice):
    found = started(collection, 3)
    answers = [written(found, alice) for _ in range(3)]
    raters = [make_member(collection, f"rater-{number}").assessor for number in range(12)]
    thrown = [[study.is_model_first(found, answer, rater) for answer in answers] for rater in raters]
    assert thrown == [[study.is_model_first(found, answer, rater) for answer in answers] for rater in raters]
    assert 6 < sum(map(sum, thrown)) < 30


def test_a_writer_does_not_see_the_models_answer(collection, alice):
    started(collection)
    client = client_of(alice)
    client.post(f"{HOME}write/", {"act": "reserve"})
    page = page_text(client, f"{HOME}write/")
    assert "[alpha-1]" in page and "part 1 of lift" in page and "wing number 1" in page
    assert MODEL not in page and "secret-model-name" not in page


def test_a_study_from_start_to_result_on_the_pages(collection, alice, bob, charlie):
    admin, writer, rater = map(client_of, (charlie, alice, bob))
    assert admin.get(HOME).context["candidates"] == 3 and writer.get(HOME).context["study"] is None
    refused = admin.post(f"{HOME}start/", {"queries": "9", "seed": "1"})
    assert refused.status_code == 422 and "from 1 to 3" in flat(refused.text)
    assert admin.post(f"{HOME}start/", {"queries": "1", "seed": "1"}).status_code == 302
    assert writer.get(HOME).context["progress"] == {"queries": 1, "written": 0, "rated": 0}
    writer.post(f"{HOME}write/", {"act": "reserve"})
    kept = writer.post(f"{HOME}write/", {"act": "write", "answer": "No source [x9]"})
    assert kept.status_code == 422 and "No source [x9]" in kept.text
    assert writer.post(f"{HOME}write/", {"act": "write", "answer": PERSON}).status_code == 302
    assert writer.get(f"{HOME}rate/").context["answer"] is None
    answer = StudyAnswer.objects.get()
    missing = rater.post(f"{HOME}rate/", {"query": answer.pk, "first_quality": "3"})
    assert missing.status_code == 422 and 'value="3" checked' in missing.text
    given = {"query": answer.pk, **RATED}
    for _ in range(2):
        rater.post(f"{HOME}rate/", given)
        assert rater.get(f"{HOME}rate/").context["answer"] is None
        rater.post(f"{HOME}rate/", {"undo": "1"})
    rater.post(f"{HOME}rate/", given)
    admin.post(f"{HOME}rate/", given)
    assert "1 of 1 queries have two ratings" in page_text(rater, HOME)
    assert "Krippendorff" not in page_text(rater, HOME)
    assert "Krippendorff" in page_text(admin, HOME)
    rows = [row.split(",") for row in admin.get(f"{HOME}?table=reference-study&as=csv").text.splitlines()]
    assert [row[0] for row in rows] == ["criterion", "completeness", "quality"] and rows[1][-1] == "1"
    assert "toprule" in admin.get(f"{HOME}?table=reference-study&as=tex").text
    assert rater.get(f"{HOME}?table=reference-study&as=csv").status_code == 404
    admin.post(f"{HOME}close/")
    assert ReferenceStudy.objects.get().closed_at and rater.get(f"{HOME}rate/").status_code == 302
    acts = AuditEntry.objects.filter(act__startswith="references.").order_by("pk").values_list("act", flat=True)
    assert [act.partition(".")[2] for act in acts] == ["study", "answered", *["rated"] * 6, "study"]
