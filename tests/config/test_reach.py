"""The judging page stands on few modules: a change of another feature cannot break where people work all day."""

from tests import reach

MOST = 43
"""Project modules that the judging page's view may reach."""


def test_the_judging_page_reaches_few_modules():
    found = reach.reached(reach.JUDGING_PAGE)
    assert len(found) <= MOST, reach.as_text(found)
