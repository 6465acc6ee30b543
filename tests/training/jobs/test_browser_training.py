"""The loop in the browser: export with votes as teacher, train, watch, rerank, evaluate (issue 3, check 1)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("torch")

from annotation.models import Role
from tests.conftest import Manage
from tests.factories import make_member
from tests.looks import check_looks

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.plugin_browser import Clicks, NewPage

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
WORDS = "tiny model, CPU"
TOPICS = {
    "owls": ("voles", "anchors", "bicycles", "clocks"),
    "foxes": ("beetles", "drums", "engines", "fences"),
    "bats": ("midges", "gates", "hammers", "kettles"),
    "frogs": ("slugs", "ladders", "mirrors", "nails"),
    "moths": ("nectar", "ovens", "pianos", "ropes"),
    "hares": ("clover", "sails", "tables", "umbrellas"),
    "crows": ("carrion", "violins", "wagons", "boilers"),
    "newts": ("larvae", "candles", "desks", "flutes"),
}
"""What eats, what it eats, and three things that have nothing to do with it."""
BESIDE = [
    "Old {} rust quickly beside salt water.",
    "Cheap {} break after one summer.",
    "Painted {} hang above that door.",
]


def import_and_judge(manage: Manage, folder: Path) -> None:
    """Each question has passages of its own, so none is left out of train: two that answer, three on other things."""
    texts, asked, pairs = [], [], []
    for topic, (food, *others) in TOPICS.items():
        passages = [f"{topic.title()} eat {food}.", f"What {topic} do at dusk: they eat {food} and rest."]
        passages += [text.format(other) for text, other in zip(BESIDE, others, strict=True)]
        asked.append({"_id": f"q-{topic}", "text": f"what do {topic} eat"})
        for n, text in enumerate(passages):
            texts.append({"_id": f"{topic}-{n}", "text": text})
            pairs.append({"query_id": f"q-{topic}", "doc_id": f"{topic}-{n}"})
    for name, rows in (("corpus", texts), ("queries", asked), ("pairs", pairs)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = [part for name in ("corpus", "queries", "pairs") for part in (f"--{name}", folder / f"{name}.jsonl")]
    manage("import_collection", "night", *files)
    manage("judge", "night", "--wait", "--workers", 1)


def finishes(page: "Page", what: str) -> None:
    """The page of a job, which is on its way, tells by itself that it is over."""
    page.wait_for_url("**/training/jobs/*/")
    page.wait_for_function("() => /^(Finished|Failed|Refused)/.test(document.querySelector('main h2').innerText)",
                           timeout=400_000)  # fmt: skip
    page.reload()
    text = page.inner_text("main")
    assert page.inner_text("main h2").startswith("Finished"), f"{what}: {text}"
    assert WORDS in text


def test_labels_become_a_model_and_the_page_says_what_it_gained(
    manage: Manage,
    new_page: "NewPage",
    clicks: "Clicks",
    violations: "Callable[[Page], list[str]]",
    console: list[str],
    worker: None,
    tmp_path: Path,
) -> None:
    import_and_judge(manage, tmp_path)
    from corpus.models import Collection

    alice = make_member(Collection.objects.get(name="night"), "alice", Role.ADMIN)
    page = clicks(new_page(user=alice.user))
    page.goto("/c/night/")
    page.click("text=Create a training set")
    page.select_option("[name=teacher]", "votes")
    page.fill("[name=split]", "0.5")
    page.click("button:has-text('Create export')")
    page.wait_for_selector(".snapshot .badge.good")  # leaving earlier would cut the making off

    page.click("text=Train a reranker on this export")
    page.wait_for_selector("button:has-text('Start training')")
    assert clicks.of(page) == 3, "one more click starts the training"
    page.click("summary:has-text('Options')")
    page.fill("[name=max_steps]", "12")
    page.click("button:has-text('Start training')")
    page.wait_for_url("**/training/jobs/*/")
    page.wait_for_selector("figure.chart")
    finishes(page, "training")
    assert "Loss from" in page.inner_text("main") and "adapter and merged" in page.inner_text("main")
    training = page.url

    page.click("text=Show model")
    model = page.url
    assert WORDS in page.inner_text("main") and "gain" in page.inner_text(".notice").lower()
    page.click("button:has-text('Rerank all queries')")
    finishes(page, "reranking")
    with page.expect_download() as saved:
        page.click("text=the run as a TREC file")
    lines = saved.value.path().read_text().splitlines()
    assert len({line.split()[0] for line in lines}) == len(TOPICS) and len(lines[0].split()) == 6

    page.goto(model)
    page.click("button:has-text('Compare before and after')")
    finishes(page, "evaluation")
    text = page.inner_text("main")
    assert "tuned vs base" in text and "BM25" in text and "nDCG@10" in text
    check_looks(new_page, violations, alice.user, (page.url, training, model, "/c/night/training/"))
    assert console == []
