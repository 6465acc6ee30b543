"""Forms of the workspace and of reviews, read into records. Raises BadInput for missing or wrong fields."""

from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from annotation.work.aspects.review_steps import CRITERIA, LONGEST_REASON, ReviewedDecision, Verdict
from annotation.work.judging.forms import parse_whole_number
from corpus.aspects.documents import NewPassage
from corpus.aspects.entries import ANCHORS, Wording
from corpus.aspects.passages import group_portions
from corpus.errors import BadInput

MOST_PARTS = 4  # The most aspects into which one is split at a time.


def read_row_number(post: QueryDict, name: str) -> int:
    """Read the id or number of a row. Raises BadInput."""
    return parse_whole_number(post, name)


def read_text(post: QueryDict, name: str) -> str:
    """Read a text without null characters; "" where it is missing."""
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
    """Read the text, rationale and importance of an aspect; without `weighed` the importance is 3."""
    importance = read_importance(post, f"importance{suffix}") if weighed else 3
    return Wording(read_text(post, f"text{suffix}"), read_text(post, f"rationale{suffix}"), importance)


def read_importances(post: QueryDict) -> dict[str, int]:
    """Read the importances of all aspects on the form by the aspects' ids."""
    return {name.removeprefix("w-"): read_importance(post, name) for name in post if name.startswith("w-")}


def cut_passages(post: QueryDict, title: str, whole_text: str, metadata: dict[str, Any]) -> list[NewPassage]:
    """Cut a text into new passages. Each segment has an aspect: "^" for the one above, "" to leave the segment out.

    Raises BadInput where the form is about another text.
    """
    aspects: list[str] = []
    for value in post.getlist("s"):
        aspects.append((aspects[-1] if aspects else "") if value == "^" else value)
    try:
        # The form numbers the segments, so its numbers are valid for this text only.
        if post.get("text_sha256", "") != hash_text(whole_text):
            raise ValueError
        portions = group_portions(whole_text, aspects)
    except ValueError:
        raise BadInput(_("The text has changed. Open it again.")) from None
    return [
        NewPassage(title, whole_text[portion.start : portion.end], [aspect], {**metadata, "chunks": chunks})
        for aspect, portion, chunks in portions
    ]


def hash_text(text: str) -> str:
    """Return the hash with which a form identifies the text of its segments."""
    return sha256(text.encode()).hexdigest()


def read_verdicts(post: QueryDict) -> dict[str, Verdict]:
    """Read the verdicts on the criteria that the reviewer answered."""
    values = {name: post.get(f"v-{name}") for name in CRITERIA}
    return {
        name: Verdict(value == "accept", read_reason(post, name, value))
        for name, value in values.items()
        if value in ("accept", "change")
    }


def read_document_verdicts(post: QueryDict, decisions: Sequence[ReviewedDecision]) -> dict[str, Verdict]:
    """Read the verdicts on the decisions that the reviewer answered."""
    verdicts = {}
    for decision in decisions:
        value = post.get(f"v-{decision.key}")
        if value in ("accept", "change"):
            other_aspects = [name for name in post.getlist(f"a-{decision.key}") if name != decision.aspect]
            aspects = tuple(dict.fromkeys(other_aspects)) if value == "change" else ()
            verdicts[decision.key] = Verdict(value == "accept", read_reason(post, decision.key, value), aspects)
    return verdicts


def read_reason(post: QueryDict, key: str, value: str | None) -> str:
    """Read a reason as one line; "" where the reviewer accepted."""
    return " ".join(read_text(post, f"r-{key}").split())[:LONGEST_REASON] if value == "change" else ""
