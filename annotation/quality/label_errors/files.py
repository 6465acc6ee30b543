"""The list as a file: CSV, LaTeX or JSON, with every suspect and a column for each signal."""

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


def suspect_values(one: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values of a suspect as `describe_suspects` gives it, in the order of NAMES."""
    it, row = one["suspect"], one["row"]
    ids = (one["place"], row["query_id"], row["doc_id"], row["grade"], row["origin"])
    return (*ids, it.score, it.against, it.votes, it.dawid_skene, it.others, it.group, it.model)


def write_list(found: Sequence[Mapping[str, Any]], form: str) -> str:
    """Return the file in one of TYPES."""
    rows = [suspect_values(one) for one in found]
    if form == "json":
        return json.dumps([dict(zip(NAMES, row, strict=True)) for row in rows], ensure_ascii=False, indent=2) + "\n"
    table = DownloadTable("label-errors", _("Suspected label errors"), NAMES, tuple(rows), numbers=5)
    return table.csv() if form == "csv" else table.latex()
