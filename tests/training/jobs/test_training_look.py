"""The training pages in a real Chromium: axe, light, dark and a phone, with a finished training behind them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Role
from corpus.models import Collection
from tests.factories import make_member
from tests.looks import EACH_LOOK, LOOKS, SIDEWAYS
from tests.training.jobs.test_training_pages import finished
from tests.training.jobs.test_training_pages import rows as rows
from training.jobs import lifecycle

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("look", EACH_LOOK)
def test_training_pages_have_no_violation(
    instance: dict[str, str],
    birds: Collection,
    rows: Path,
    new_page: Callable[..., Any],
    violations: Callable[[Any], list[str]],
    look: str,
) -> None:
    page = new_page(user=make_member(birds, "charlie", Role.ADMIN).user, **LOOKS[look])
    page.goto("/c/birds/training/")
    found = {"empty": violations(page)}
    job = finished(birds, rows, gain={"words": "no gain shown: p = 0.4"}, evaluation={"base": {"auc": 0.5}})
    model = lifecycle.publish_model(job)
    for part in ("", f"jobs/{job.number}/", f"models/{model.pk}/"):
        page.goto(f"/c/birds/training/{part}")
        for summary in page.locator("figure details > summary").all():
            summary.click()
        found[part] = violations(page) + (["scrolls sideways"] if page.evaluate(SIDEWAYS) else [])
    assert {part: problems for part, problems in found.items() if problems} == {}
