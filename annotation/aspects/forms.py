"""What the workshop's forms send, read into records. BadInput says what is missing; the page keeps what was typed."""

from collections import defaultdict
from hashlib import sha256
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
    """Read the number of a row. Raises BadInput."""
    try:
        return _whole(post, name)
    except Invalid as wrong:
        raise BadInput(str(wrong)) from None


def read_text(post: QueryDict, name: str) -> str:
    """Read a field without NUL; "" when it is missing."""
    return post.get(name, "").replace("\0", "")


def typed_values(post: QueryDict) -> defaultdict[str, str]:
    """What was typed, for a form that is shown again; "" for what was not sent."""
    return defaultdict(str, {name: post.get(name, "") for name in post})


def read_importance(post: QueryDict, name: str) -> int:
    """Read an importance from 1 to 5. Raises BadInput."""
    value = post.get(name, "")
    if not (value.isascii() and value.isdigit() and len(value) == 1 and int(value) in ANCHORS):
        raise BadInput(_("Choose an importance from 1 (peripheral) to 5 (dominant)."))
    return int(value)


def read_wording(post: QueryDict, suffix: str = "", *, weighed: bool = True) -> Wording:
    """Text, rationale and importance of one aspect."""
    given = read_importance(post, f"importance{suffix}") if weighed else 3
    return Wording(read_text(post, f"text{suffix}"), read_text(post, f"rationale{suffix}"), given)


def read_importances(post: QueryDict) -> dict[str, int]:
    """Read the importances of all aspects on the form, by the aspect's id."""
    return {name.removeprefix("w-"): read_importance(post, name) for name in post if name.startswith("w-")}


def cut_passages(post: QueryDict, title: str, whole_text: str, metadata: dict[str, Any]) -> list[NewPassage]:
    """The portions of a text as new passages, each under the aspect that the form has for its segments.

    Of each segment the form has its aspect: "^" means as the one above, "" to trim it.
    """
    given: list[str] = []
    for value in post.getlist("s"):
        given.append((given[-1] if given else "") if value == "^" else value)
    try:
        # The form names segments by their number, and those of another text are other sentences.
        if post.get("text_sha256", "") != hash_text(whole_text):
            raise ValueError
        portions = group_portions(whole_text, given)
    except ValueError:
        raise BadInput(_("The text has changed. Open it again.")) from None
    return [
        NewPassage(title, whole_text[place.start : place.end], [aspect], {**metadata, "chunks": chunks})
        for aspect, place, chunks in portions
    ]


def hash_text(text: str) -> str:
    """The hash by which a form says which text its segments are of."""
    return sha256(text.encode()).hexdigest()
