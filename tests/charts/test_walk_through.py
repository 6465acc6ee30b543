"""Makes the pictures of docs/index.md on one collection's way: import, judge, quality, export, train."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from config.env import ROOT
from jobs.processes import spawn_child, stop_children
from judges.models import Campaign
from judges.panels.offline_panel import ensure_offline
from judges.workers import worker_pool
from tests.charts.test_pictures import LIGHT, folder, picture
from tests.engine_parts import FAST
from tests.factories import make_collection, make_user
from tests.instances import until
from tests.training.conftest import worker
from tests.training.jobs.test_browser_training import BESIDE, TOPICS, finishes

__all__ = ["folder", "worker"]

pytestmark = [pytest.mark.browser, pytest.mark.weekly, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def judge_worker(instance: dict[str, str]) -> Iterator[None]:
    """A real worker, which imports and judges."""
    command = worker_pool.worker_command(1, "walk")
    child = spawn_child(command, {**instance, **FAST}, cwd=ROOT, stderr=subprocess.DEVNULL)
    yield
    stop_children([child])


def tables(folder: Path) -> list[Path]:
    """Questions on animals as CSV files: two passages of each answer, three do not."""
    texts, asked, pairs = ["id,text"], ["id,query text"], ["qid,docid"]
    for topic, (food, *others) in TOPICS.items():
        passages = [f"{topic.title()} eat {food}.", f"What {topic} do at dusk: they eat {food} and rest."]
        passages += [text.format(other) for text, other in zip(BESIDE, others, strict=True)]
        asked.append(f"q-{topic},what do {topic} eat")
        for n, text in enumerate(passages):
            texts.append(f'{topic}-{n},"{text}"')
            pairs.append(f"q-{topic},{topic}-{n}")
    files = {folder / "documents.csv": texts, folder / "queries.csv": asked, folder / "pairs.csv": pairs}
    for file, lines in files.items():
        file.write_text("\n".join(lines) + "\n")
    return list(files)


def test_pictures_of_the_walk(instance, new_page, judge_worker: None, worker: None, tmp_path, folder: Path) -> None:
    ensure_offline()
    make_collection("night", title="Animals at night")
    page = new_page(user=make_user("olga", is_owner=True), **LIGHT)
    page.goto("/c/night/import/")
    page.get_by_label("Files").set_input_files(tables(tmp_path))
    page.get_by_role("button", name="Import", exact=True).wait_for()
    picture(page, "walk-1-import", folder)
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_role("button", name="Try offline").click()
    page.get_by_role("button", name="Start now").click()
    until(lambda: Campaign.objects.filter(state="finished").exists())

    picture(page, "walk-2-overview", folder, "/c/night/")
    picture(page, "walk-3-quality", folder, "/c/night/quality/")

    page.goto("/c/night/exports/?format=prism")
    page.select_option("[name=teacher]", "votes")
    page.fill("[name=split]", "0.5")
    page.get_by_role("button", name="Create export").click()
    page.wait_for_selector(".snapshot .badge.good")
    page.locator(".snapshot").first.scroll_into_view_if_needed()
    picture(page, "walk-4-export", folder)
    page.get_by_text("Train a reranker on this export").click()
    page.locator("summary", has_text="Options").click()
    page.fill("[name=max_steps]", "12")
    page.get_by_role("button", name="Start training").click()
    finishes(page, "training")
    picture(page, "walk-5-train", folder)
