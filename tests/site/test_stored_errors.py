"""Errors of jobs: a worker stores them in English, and each page says them in its reader's language."""

import pytest
from django.test import Client
from django.utils import translation

from annotation.access.languages import translate_stored
from annotation.models import Role
from benchmark.models import Run
from corpus.models import Collection
from jobs import background, leases
from jobs.models import BackgroundJob, JobState
from tests.factories import make_collection, make_member


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("The connection was interrupted. Try again.", "连接在网页中途断开：请重试。"),
        ("grade 7 is above the highest grade 3; raise the scale to 7", "等级 7 高于最高等级 3；请把最高等级改为 7"),
        (
            "q.jsonl, line 3: grade 7 is above the highest grade 3; raise the scale to 7",
            "q.jsonl，第 3 行：等级 7 高于最高等级 3；请把最高等级改为 7",
        ),
        ("taken up 5 times without getting further: Killed", "尝试了 5 次都没有进展：Killed"),
        ("ValueError: not a number", None),
        ("a, b", None),
        ("", None),
    ],
)
def test_a_stored_message_is_found_again_with_its_values(stored: str, said: str | None) -> None:
    with translation.override("zh-hans"):
        assert translate_stored(stored) == said


@pytest.fixture
def books() -> Collection:
    return make_collection("books")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("grade 7 is above the highest grade 3; raise the scale to 7", "等级 7 高于最高等级 3；请把最高等级改为 7"),
        ("OSError: <b>no room</b>", '<span lang="en">OSError: &lt;b&gt;no room&lt;/b&gt;</span>'),
    ],
)
def test_a_page_says_why_a_job_failed_in_its_language_or_marks_what_is_english(
    books: Collection, stored: str, shown: str
) -> None:
    run = Run.objects.create(collection=books, name="bm25", kind="bm25", state="failed", depth=10, error=stored)
    client = Client(headers={"accept-language": "zh-CN"})
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    assert shown in client.get(f"/c/books/benchmark/runs/{run.pk}/").text
    english = client.get(f"/c/books/benchmark/runs/{run.pk}/", headers={"accept-language": "en"}).text
    assert "<b>" not in english and stored[:3].upper() in english.upper() and 'lang="en">OS' not in english


@pytest.mark.django_db
def test_a_job_that_nobody_finishes_says_so_in_words_that_have_a_translation() -> None:
    job, _new = background.enqueue("tests.never", 1)
    for _ in range(leases.MOST_ATTEMPTS):
        assert leases.claim(BackgroundJob, kind="tests.never") is not None
        BackgroundJob.objects.update(state=JobState.WAITING)
    assert leases.claim(BackgroundJob, kind="tests.never") is None
    job.refresh_from_db()
    assert job.state == JobState.FAILED and "5 times" in job.error
    with translation.override("zh-hans"):
        assert translate_stored(job.error) == "尝试了 5 次都没有进展"
