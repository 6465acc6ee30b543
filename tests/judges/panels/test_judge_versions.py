"""A judge changed in the file is a new version; pages of earlier evidence show what was asked then, and of whom."""

from django.core.management import call_command
from django.test import Client

from corpus.models import Collection, Pair
from judges.models import Attempt, JudgeVersion
from tests.engine_parts import collection_of, judge
from tests.factories import make_user
from tests.judges.panels.test_configure_judges import file_of


def section_of(page: str, attempt: Attempt) -> str:
    """The part of the pair's page that belongs to one attempt."""
    return page.split(f'id="attempt-{attempt.pk}"')[1].split("</details>")[0]


def judged_by_judge_1() -> Attempt:
    judge("--policy", "single", "--judges", "judge-1", check=True)
    # Worker processes reserve ids in blocks: the newest row is that of the newest campaign, not of the largest id.
    return Attempt.objects.order_by("campaign").last()


def test_a_changed_judge_is_a_new_version_and_old_pages_show_the_old_prompt(worker, model_server, manage, tmp_path):
    collection_of(1)
    base_url = model_server.base_url("openai-compatible")
    Collection.objects.update(instruction="Only passages about tides are relevant.")
    call_command("configure_judges", str(file_of(tmp_path, base_url)))
    old = judged_by_judge_1()

    call_command("configure_judges", str(file_of(tmp_path, base_url, judge_1="no")))
    Collection.objects.update(instruction="Only passages about the moon are relevant.")
    new = judged_by_judge_1()

    versions = (
        JudgeVersion.objects.filter(name="judge-1").order_by("version").values_list("version", "model", "is_current")
    )
    assert list(versions) == [(1, "yes", False), (2, "no", True)]
    assert (old.judge.version, old.verdict, new.judge.version, new.verdict) == (1, 1, 2, 0)
    client = Client()
    client.force_login(make_user("olga", is_owner=True))
    page = client.get(f"/c/books/pairs/{Pair.objects.get().pk}/").content.decode()
    before, after = section_of(page, old), section_of(page, new)
    assert "judge-1@1, openai-compatible, yes" in before and "judge-1@2, openai-compatible, no" in after
    assert "about tides" in before and "about the moon" not in before
    assert "about the moon" in after and "about tides" not in after
