"""Comparison and rollouts in the browser: no violation, no overflow, readable by keyboard."""

from pathlib import Path

import pytest

from annotation.models import Role
from tests.factories import make_member
from tests.looks import check_looks
from tests.training.comparisons.test_comparisons import publish_all
from tests.training.comparisons.test_losses import compare, make_birds
from tests.training.jobs.test_rollouts import rollout, write_lines
from training.models import Job

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_models_are_compared_and_rollouts_browsed(new_page, violations, console, tmp_path):
    birds = make_birds()
    alice = make_member(birds, "alice", Role.ADMIN)
    publish_all(birds, tmp_path)
    job = Job.objects.latest("pk")
    (tmp_path / "losses").mkdir()
    compare(birds, tmp_path / "losses")
    rows = [rollout(step, query, number) for step in (1, 5) for query in ("q1", "q2") for number in range(20)]
    write_lines(Path(job.folder) / "rollouts.jsonl", rows)
    page = new_page(user=alice.user)
    page.goto("/c/birds/training/")
    page.click("text=Compare trained models")
    page.wait_for_url("**/training/compare/")
    with page.expect_download() as saved:
        page.click("a[href$='ablation.csv']")
    assert saved.value.path().read_text().startswith("loss,base,nDCG@10,delta")
    page.goto(f"/c/birds/training/jobs/{job.number}/")
    page.click("text=Browse rollouts")
    page.select_option("#step", "1")
    page.select_option("#query", "q2")
    page.click("button:has-text('Show')")
    page.wait_for_url("**/rollouts/?step=1&query=q2")
    page.click("main summary >> nth=0")
    assert page.locator("p.rollout >> nth=0").is_visible()
    page.click("text=After")
    page.wait_for_url("**page=2")
    assert "malformed" in page.inner_text("main")
    check_looks(new_page, violations, alice.user, (page.url, "/c/birds/training/compare/"))
    assert console == []
