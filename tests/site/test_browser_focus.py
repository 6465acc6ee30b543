"""Focus is never lost: on every page, whatever is replaced in it, the focus stands on something that can be seen."""

import pytest

from tests.annotation.people.accounts.test_reach import pages, world
from tests.stages import first_quick

__all__ = ["world"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

KIND = """
  const asks = (e) => e.getAttribute("hx-post") || e.getAttribute("hx-get");
  const kind = (e) => asks(e).replace(/[0-9]+/g, "N").replace(/[/]c[/][a-z]+[/]/, "/c/NAME/");
  const all = [...document.querySelectorAll("[hx-get], [hx-post]")].filter((e) => e.getAttribute("hx-swap") !== "none");
"""
SWAPS = f"() => {{ {KIND} return all.map(kind); }}"
"""What replaces a part of the page, by what it asks for."""
BEGIN = """
(wanted) => {
  KIND
  // Focus it, or something in it, and let it do what it does: a form is sent, news are asked for, a button is pressed,
  // another option is chosen.
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  const ones = all.filter((e) => kind(e) === wanted);
  const element = ones.find((e) => e.getClientRects().length) || ones[0];
  if (!element) return false;
  const stops = "a[href], button:not([disabled]), input:not([type=hidden], [disabled]), select, textarea, summary";
  const seen = (one) => one.getClientRects().length;
  const inside = element.matches(stops) ? element : [...element.querySelectorAll(stops)].reverse().find(seen);
  if (!inside || !seen(inside)) return false;
  window.swapped = 0;
  window.leaving = false;
  document.addEventListener("htmx:afterSettle", () => { window.swapped += 1; });
  document.addEventListener("htmx:responseError", () => { window.swapped = -1; });
  element.querySelectorAll("[required]").forEach((one) => { if (!one.value) one.value = "1"; });
  inside.focus();
  if (element.matches("select")) {
    element.selectedIndex = (element.selectedIndex + 1) % element.length;
    element.dispatchEvent(new Event("change", { bubbles: true }));
    return true;
  }
  const polls = /every|load|revealed/.test(element.getAttribute("hx-trigger") || "");
  if (!polls) { (element.matches("form") ? () => element.requestSubmit() : () => element.click())(); return true; }
  const [target, swap] = [element.getAttribute("hx-target"), element.getAttribute("hx-swap") || "innerHTML"];
  const goal = !target || target === "this" ? element : document.querySelector(target);
  htmx.ajax("GET", element.getAttribute("hx-get"), { source: element, target: goal, swap });
  return true;
}
""".replace("KIND", KIND)
LOST = """
() => {
  const at = document.activeElement;
  if (!at || at === document.body) return "nothing has the focus";
  return at.isConnected && at.getClientRects().length ? "" : `it is on what nobody sees: ${at.outerHTML.slice(0, 100)}`;
}
"""


def lost_by(page, path: str, kind: str) -> str | None:
    """What became of the focus when this part of the page was replaced; "": it is kept. None: nothing to press here."""
    page.goto(path)
    page.wait_for_function("() => window.htmx")
    if not page.evaluate(BEGIN, kind):
        return None
    page.wait_for_function("() => window.swapped !== 0")
    page.wait_for_timeout(100)
    return str(page.evaluate(LOST))


@pytest.mark.slow
@pytest.mark.parametrize("who", first_quick(["annotator", "adjudicator", "owner"]))
def test_focus_is_kept_through_every_swap_of_every_page(world, new_page, console, instance, who):
    """Also through what is there only after another swap: undo, a flag, the next conflict."""
    page = new_page(user=world.people[who])
    found: dict[str, str] = {}
    for path in pages(world, who):
        page.goto(path)
        waiting = [kind for kind in page.evaluate(SWAPS) if kind not in found]
        while waiting:
            kind = waiting.pop()
            wrong = found.get(kind) or lost_by(page, path, kind)
            if wrong is not None:
                found[kind] = wrong and f"{path}: {wrong}"
                waiting += [one for one in page.evaluate(SWAPS) if one not in found and one not in waiting]
    console[:] = [line for line in console if "Failed to load resource" not in line]
    assert {kind: wrong for kind, wrong in found.items() if wrong} == {}
    assert len(found) >= {"annotator": 5, "adjudicator": 8, "owner": 7}[who], sorted(found)
