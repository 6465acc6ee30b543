"""Panel, ledger, leaderboard and label errors at 1,280 px: no table scrolls sideways, and no name is broken."""

import pytest

from tests import wide_tables
from tests.factories import make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
WIDE = """tables => tables.filter(table => table.scrollWidth > table.clientWidth)
    .map(table => `${table.getAttribute("aria-label")}: ${table.scrollWidth - table.clientWidth} px`)"""
BROKEN = "names => names.filter(name => name.getClientRects().length > 1).map(name => name.innerText)"
HEIGHTS = "rows => rows.map(row => row.offsetHeight)"


def test_wide_tables_fit_and_names_stay_whole(instance, new_page, violations):
    for make in (wide_tables.make_panel, wide_tables.make_ledger, wide_tables.make_leaderboard):
        make()
    wide_tables.make_label_errors()
    page = new_page(user=make_user("olga", is_owner=True), viewport={"width": 1280, "height": 900})
    found = {}
    for address in ("panel/panel/", "ledger/campaigns/1/ledger/", "board/benchmark/", "errors/quality/label-errors/"):
        page.goto(f"/c/{address}")
        if address.startswith("board"):
            page.get_by_role("button", name="Compute").click()
            page.locator("table.board").wait_for()
        assert page.locator(".table-scroll").count(), address
        wide = page.eval_on_selector_all(".table-scroll", WIDE)
        broken = page.eval_on_selector_all(".table .name", BROKEN)
        found[address] = [*wide, *broken, *violations(page)]
        if not address.startswith("errors"):
            assert page.locator(".table .name").count(), address
    assert {address: problems for address, problems in found.items() if problems} == {}
    assert max(page.eval_on_selector_all("table.suspects tbody tr", HEIGHTS)) <= 60
