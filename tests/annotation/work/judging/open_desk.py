"""The judging page in a browser: opened, and a key pressed on it."""

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def open_desk(new_page, member, **options):
    """Return a page with the member's first pair."""
    page = new_page(user=member.user, **options)
    page.goto("/c/books/judge/")
    page.keyboard.press("1")
    page.wait_for_selector("#answer")
    return page


def settle(page, key: str) -> None:
    """Press a key and wait for the next pair, or for the end of the queue."""
    item = page.locator("#desk").get_attribute("data-item")
    page.keyboard.press(key)
    page.wait_for_function("item => (document.querySelector('#desk').dataset.item ?? null) !== item", arg=item)
