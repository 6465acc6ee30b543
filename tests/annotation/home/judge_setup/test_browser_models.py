"""The page of models in a real Chromium: five clicks from the Overview to a model that was tested."""

import pytest

from judges.models.probes import JudgeProbe
from judges.panels.offline_panel import ensure_offline
from tests.factories import make_collection, make_user
from tests.modelserver.fixtures import LocalModels

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_model_is_added_and_tested_by_four_clicks_edited_deleted_and_brought_back(
    new_page, clicks, violations, console, model_server: LocalModels
):
    ensure_offline()
    make_collection("books", title="Books")
    page = clicks(new_page(user=make_user("olga", is_owner=True)))
    page.goto("/c/books/")
    page.get_by_role("navigation").get_by_role("link", name="Judging").first.click()
    page.get_by_role("link", name="Models", exact=True).first.click()
    page.get_by_label("Provider").select_option("openai-compatible")
    page.get_by_label("Model", exact=True).fill("yes")
    page.get_by_label("Base URL").fill(model_server.openai)
    page.get_by_role("button", name="Add model").click()
    page.get_by_role("button", name="Test yes").click()
    page.get_by_text("does not work").or_(page.get_by_text("works", exact=True)).first.wait_for()
    assert clicks.of(page) == 4
    assert JudgeProbe.objects.get().calls >= 1
    assert violations(page) == []
    page.get_by_label("Provider").select_option("openai-compatible")
    page.get_by_label("Model", exact=True).fill("other")
    page.get_by_role("button", name="Add model").click()
    page.get_by_text("Enter the base URL, for example").wait_for()
    console.clear()  # Of the 422.
    assert violations(page) == []
    page.goto("/c/books/models/")
    page.get_by_role("link", name="Edit yes").click()
    assert page.get_by_label("Base URL").input_value() == model_server.openai
    page.get_by_label("Calls at a time").fill("2")
    assert violations(page) == []
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved: yes, version 2.").wait_for()
    page.get_by_role("link", name="Edit yes").click()
    page.get_by_role("button", name="Delete model").click()
    page.get_by_text("Deleted: yes.").wait_for()
    page.get_by_role("button", name="Restore yes").click()
    page.get_by_text("Restored: yes.").wait_for()
    page.get_by_role("link", name="Edit yes").wait_for()
