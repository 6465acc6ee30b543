"""Forms of the workspace and of reviews, read into records. BadInput says what is missing; the page keeps the input."""

from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from annotation.work.aspects.review_steps import CRITERIA, LONGEST_REASON, ReviewedDecision, Verdict
from annotation.work.judging.forms import parse_whole_number as _whole
from corpus.aspects.documents import NewPassage
from corpus.aspects.entries import ANCHORS, Wording
from corpus.aspects.passages import group_portions
from corpus.errors import BadInput

MOST_PARTS = 4  # Aspects into which one is split at a time.


def read_row_number(post: QueryDict, name: str) -> int:
    """Read the number of a row. Raises BadInput."""
    return _whole(post, name)


def read_text(post: QueryDict, name: str) -> str:
    """Read a field without NUL; "" when it is missing."""
    return post.get(name, "").replace("\0", "")


def typed_values(post: QueryDict) -> defaultdict[str, str]:
    """Return the typed values by field, for a form shown again; "" for fields not sent."""
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
    """The portions of a text as new passages. Each segment has an aspect; "^": as above, "" to trim it."""
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


def read_verdicts(post: QueryDict) -> dict[str, Verdict]:
    """Read the criteria for which something was chosen."""
    found = {name: post.get(f"v-{name}") for name in CRITERIA}
    return {
        name: Verdict(value == "accept", read_reason(post, name, value))
        for name, value in found.items()
        if value in ("accept", "change")
    }


def read_document_verdicts(post: QueryDict, decisions: Sequence[ReviewedDecision]) -> dict[str, Verdict]:
    """Read the decisions for which something was chosen."""
    found = {}
    for one in decisions:
        value = post.get(f"v-{one.key}")
        if value in ("accept", "change"):
            chosen = [name for name in post.getlist(f"a-{one.key}") if name != one.aspect]
            aspects = tuple(dict.fromkeys(chosen)) if value == "change" else ()
            found[one.key] = Verdict(value == "accept", read_reason(post, one.key, value), aspects)
    return found


def read_reason(post: QueryDict, key: str, value: str | None) -> str:
    """The reason on one line; none is kept for what was accepted."""
    return " ".join(read_text(post, f"r-{key}").split())[:LONGEST_REASON] if value == "change" else ""
