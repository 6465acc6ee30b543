"""What the workshop's forms send, read into records. BadInput says what is missing; the page keeps what was typed."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from annotation.judging.forms import Invalid
from annotation.judging.forms import parse_whole_number as _whole
from corpus.aspects.documents import NewPassage
from corpus.aspects.entries import ANCHORS, Wording
from corpus.aspects.passages import group_portions
from corpus.errors import BadInput

MOST_PARTS = 4  # Aspects into which one is split at a time.


def read_row_number(post: QueryDict, name: str) -> int:
    """A row's number from the form."""
    try:
        return _whole(post, name)
    except Invalid as wrong:
        raise BadInput(str(wrong)) from None


def read_text(post: QueryDict, name: str) -> str:
    """A field without NUL; "" when it is missing."""
    return post.get(name, "").replace("\0", "")


def typed_values(post: QueryDict) -> defaultdict[str, str]:
    """What was typed, for a form that is shown again; "" for what was not sent."""
    return defaultdict(str, {name: post.get(name, "") for name in post})


def read_importance(post: QueryDict, name: str) -> int:
    """1 to 5."""
    value = post.get(name, "")
    if not (value.isascii() and value.isdigit() and len(value) == 1 and int(value) in ANCHORS):
        raise BadInput(_("Choose an importance from 1 (peripheral) to 5 (dominant)."))
    return int(value)


def read_wording(post: QueryDict, suffix: str = "", *, weighed: bool = True) -> Wording:
    """Text, rationale and importance of one aspect."""
    given = read_importance(post, f"importance{suffix}") if weighed else 3
    return Wording(read_text(post, f"text{suffix}"), read_text(post, f"rationale{suffix}"), given)


def read_parts(post: QueryDict) -> list[Wording]:
    """The aspects into which one is split; parts without a text are left out."""
    numbers = [n for n in range(1, MOST_PARTS + 1) if read_text(post, f"text_{n}").strip()]
    return [read_wording(post, f"_{n}") for n in numbers]


def read_importances(post: QueryDict, prefix: str = "w-") -> dict[str, int]:
    """Aspect's id to importance, of all fields with the prefix."""
    return {name.removeprefix(prefix): read_importance(post, name) for name in post if name.startswith(prefix)}


def read_segment_aspects(post: QueryDict) -> list[str]:
    """For each segment of a text its aspect: "^" means as the one above, "" to trim it."""
    found: list[str] = []
    for value in post.getlist("s"):
        found.append((found[-1] if found else "") if value == "^" else value)
    return found


def cut_passages(whole_text: str, title: str, given: Sequence[str], metadata: dict[str, Any]) -> list[NewPassage]:
    """The portions of a text as new passages, each under its aspect."""
    try:
        found = group_portions(whole_text, given)
    except ValueError:
        raise BadInput(_("The text is another by now: open it again.")) from None
    return [
        NewPassage(title, whole_text[place.start : place.end], [aspect], {**metadata, "chunks": chunks})
        for aspect, place, chunks in found
    ]
