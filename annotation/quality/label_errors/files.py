"""The list of suspected label errors as a file (CSV, LaTeX or JSON), with a column for each signal."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from charts.downloads import DownloadTable

NAMES = (
    "place", "query_id", "doc_id", "grade", "origin", "score", "votes_against", "votes", "dawid_skene",
    "near_others", "near_group", "model",
)  # fmt: skip
TYPES = {"csv": "text/csv", "tex": "application/x-tex", "json": "application/json"}


def suspect_values(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values of a suspect as `describe_suspects` gives it, in the order of NAMES."""
    suspect, row = entry["suspect"], entry["row"]
    return (
        *(entry["place"], row["query_id"], row["doc_id"], row["grade"], row["origin"]),
        *(suspect.score, suspect.against, suspect.votes, suspect.dawid_skene),
        *(suspect.others, suspect.group, suspect.model),
    )


def write_list(entries: Sequence[Mapping[str, Any]], form: str) -> str:
    """Return the text of the file. `form`: a key of TYPES."""
    rows = [suspect_values(entry) for entry in entries]
    if form == "json":
        return json.dumps([dict(zip(NAMES, row, strict=True)) for row in rows], ensure_ascii=False, indent=2) + "\n"
    table = DownloadTable("label-errors", _("Suspected label errors"), NAMES, tuple(rows), numbers=5)
    return table.csv() if form == "csv" else table.latex()
