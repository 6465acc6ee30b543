"""What is found: results in groups, and the match of a title with what was typed. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MOST = 6  # Results of a group.


@dataclass(frozen=True, slots=True)
class FoundItem:
    """A page, thing or action: its title, its address, and a note that tells it from others of its title."""

    title: Any
    url: str
    note: Any = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Results of one kind, under a heading."""

    key: str
    title: Any
    results: list[FoundItem]


def choose(results: Iterable[FoundItem], typed: str) -> list[FoundItem]:
    """Return the results in whose title or note every typed word is found; first those whose title begins with it.

    >>> pages = [FoundItem("Audit log", "/1"), FoundItem("Leaderboard", "/2", "Benchmark"), FoundItem("Logs", "/3")]
    >>> [result.title for result in choose(pages, "log")]
    ['Logs', 'Audit log']
    >>> [result.title for result in choose(pages, "bench lead")]
    ['Leaderboard']
    """
    words = typed.casefold().split()
    found = []
    for result in results:
        title = str(result.title).casefold()
        if words and all(word in f"{title} {result.note}".casefold() for word in words):
            found.append((not title.startswith(words[0]), not all(word in title for word in words), result))
    return [result for _begins, _in_title, result in sorted(found, key=lambda row: row[:2])[:MOST]]
