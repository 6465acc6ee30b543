"""What the start page and a collection's home show, read from counters only."""

from annotation.models import User


def cards(user: User) -> list[object]:
    """In the making."""
    return []
