"""Benchmark > Answers in a real Chromium: axe, light and a phone, in both languages."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from annotation.models import Role
from benchmark.answers.evaluations import ANSWERS
from benchmark.models import AnswerEvaluation
from benchmark.suites.groups import make_suite
from jobs import leases
from tests.benchmark.answers import scene
from tests.factories import make_member
from tests.looks import LOOKS, SIDEWAYS
from tests.stages import first_quick

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
HOME = "/c/wings/benchmark/answers/"
LOOKS = {**LOOKS, "chinese": {**LOOKS["light"], "locale": "zh-CN"}}
OFFLINE = "offline-rewriter"


@pytest.fixture
def wings(settings, tmp_path):
    collection = scene.wings_collection()
    for query, answer in {"q1": "angle of the wing", "q2": "flows through a plate"}.items():
        collection.query_set.filter(external_id=query).update(answers=[answer])
    scene.two_runs(collection)
    return collection


def answer_all():
    """Work on what waits, as a worker does: in a thread, because the browser's own loop runs in this one."""

    def work():
        ANSWERS.perform(leases.claim(AnswerEvaluation))
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def answered(collection):
    """What the offline judge answers and says of it, and a filled version."""
    evaluation = scene.begin(collection, generators=(OFFLINE,), judge=OFFLINE)
    answer_all()
    scene.filled_version(collection, q2="d3")
    evaluation.refresh_from_db()
    assert evaluation.state == "ready", evaluation.error
    return evaluation


@pytest.mark.parametrize("look", first_quick(LOOKS))
def test_no_page_of_answers_has_a_violation(wings, instance, new_page, violations, look):
    page = new_page(user=make_member(wings, "charlie", Role.ADMIN).user, **LOOKS[look])
    suite = make_suite(name="main", collections=[wings])
    found = {}

    def look_at(name, address):
        answer = page.goto(address)
        assert answer and answer.ok, address
        page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        found[name] = violations(page) + (["scrolls sideways"] if page.evaluate(SIDEWAYS) else [])

    look_at("empty", HOME)
    look_at("start", f"{HOME}start/")
    evaluation = answered(wings)
    query = wings.query_set.get(external_id="q1")
    look_at("home", HOME)
    look_at("listed", f"{HOME}{evaluation.number}/queries/")
    look_at("answer", f"{HOME}{evaluation.number}/queries/{query.pk}/")
    AnswerEvaluation.objects.update(options={**evaluation.options, "k": 10})
    look_at("suite", f"/suites/{suite.pk}/answers/")
    scene.begin(wings, generators=(OFFLINE,), judge=OFFLINE, k=1)
    look_at("waiting", HOME)
    assert {name: problems for name, problems in found.items() if problems} == {}
