"""The API reference in a browser: its pages in every look, without scripts; Swagger UI in the look that was chosen."""

import pytest

from tests.factories import make_collection, make_member
from tests.plugin_browser import NewPage

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ADDRESS = "/api/v1/docs"
BACKGROUND = "getComputedStyle(document.documentElement).backgroundColor"
LIGHT, DARK = "rgba(0, 0, 0, 0)", "rgb(28, 32, 34)"


@pytest.mark.parametrize(("chosen", "device", "background"), [("", "dark", DARK), ("light", "dark", LIGHT)])
def test_the_reference_has_the_look_that_was_chosen_else_the_devices(new_page, chosen, device, background):
    alice = make_member(make_collection("books"), "alice").user
    alice.display = {"theme": chosen}
    alice.save()
    page = new_page(user=alice, color_scheme=device)
    page.goto(ADDRESS)
    page.locator(".opblock").first.wait_for()
    assert page.evaluate(BACKGROUND) == background
    page.emulate_media(color_scheme="dark" if device == "light" else "light")
    # Not wait_for_function: the page's policy refuses to evaluate its expression a second time.
    turned = background if chosen else {LIGHT: DARK, DARK: LIGHT}[background]
    page.locator("html.dark-mode" if turned == DARK else "html:not(.dark-mode)").wait_for()
    assert page.evaluate(BACKGROUND) == turned


def test_the_reference_is_as_wide_as_a_phone_and_loads_nothing_that_the_policy_blocks(new_page: NewPage) -> None:
    page = new_page(viewport={"width": 390, "height": 844}, is_mobile=True)
    page.goto(ADDRESS)
    page.locator(".opblock-post .opblock-summary-control").first.click()
    page.locator(".opblock-body select").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_reference_needs_no_scripts_and_its_contents_lead_to_each_page(new_page: NewPage) -> None:
    page = new_page(java_script_enabled=False)
    page.goto("/api-reference/")
    page.locator(".api-contents a", has_text="Campaigns").click()
    assert page.inner_text("h1") == "Campaigns"
    page.locator(".api-list a", has_text="Estimate campaign").click()
    assert page.url.endswith("#post-campaigns-estimate")
    assert "books.campaigns.estimate(" in page.inner_text("#post-campaigns-estimate pre >> nth=1")
    page.locator("#post-campaigns-estimate summary").click()
    assert page.locator("#post-campaigns-estimate td", has_text="number").first.is_visible()
