"""Lines of this site's own exports whose names mean something else elsewhere, as rows of a table. Pure."""

import re
from typing import Any

from django.utils.translation import gettext as _

from charts.translation import gettext_noop

# The prompt of the exports for TRL (annotation.exports.sets.shapes), in which query and document stand.
_PROMPT = re.compile(
    r"Is the document relevant to the query\? .*?\n\nWhat relevant means here: (?P<instruction>.*?)"
    r"\nQuery: (?P<query>.*?)\nDocument: (?P<text>.*)\n\nAnswer:\n?\Z",
    re.DOTALL,
)
_COMPLETION = re.compile(r"(yes|no)(?:\n|\Z)")
_ERANK = {"query_id", "doc_id", "chain", "completion", "positive", "score"}
HIGHEST = 10  # Of ERank's scores.
# Exports that are not read back, by the keys that all of their lines have.
_NOT_READ = (
    ({"query_id", "doc_id", "grade", "start", "end"}, gettext_noop("marked evidence; import judgments.jsonl")),
    ({"query_id", "doc_id", "round", "side", "verdict"}, gettext_noop("debates; import judgments.jsonl")),
    ({"query_id", "aspect_id", "importance"}, gettext_noop("aspects; the command aspects reads them")),
    ({"file", "line", "synthetic"}, gettext_noop("the lines with a query that a model wrote")),
    ({"format", "files", "options"}, gettext_noop("the manifest of an export; import the files beside it")),
)


def find_unreadable(row: dict[str, Any]) -> str:
    """Return which of this site's exports a line is of, where it is none that can be imported; else ""."""
    name = next((name for keys, name in _NOT_READ if keys <= row.keys()), "")
    return _("this is an export of this site that is not imported here: %(name)s") % {"name": _(name)} if name else ""


def read_line(row: dict[str, Any]) -> dict[str, Any]:
    """Return a line with query, document and grade by their names, where it is TRL's or ERank's; else as it is."""
    if row.keys() >= _ERANK and isinstance(row["positive"], bool):
        score = row["score"] / HIGHEST if isinstance(row["score"], int | float) else row["score"]
        rest = {name: value for name, value in row.items() if name not in ("positive", "score")}
        return {**rest, "grade": row["positive"], "score": score}
    if row.keys() == {"prompt", "completion"} and isinstance(row["prompt"], str):
        prompt, answer = _PROMPT.match(row["prompt"]), _COMPLETION.match(str(row["completion"]))
        if prompt and answer:
            return {**prompt.groupdict(), "grade": answer[1], "completion": row["completion"]}
    return row
