"""What the forms of a review send, read into records. BadInput says what is missing; the page keeps what was typed."""

from collections.abc import Sequence

from django.http import QueryDict

from annotation.aspects.forms import read_text
from annotation.aspects.review_steps import (
    CRITERIA,
    LONGEST_REASON,
    ReviewedDecision,
    Verdict,
)


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
