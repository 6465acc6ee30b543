"""Tables of an evaluation and of a suite, for download."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from benchmark.answers.alignment import TESTED
from charts.downloads import Cell, DownloadTable

MEAN = ""  # The system of a row that is the mean over all systems.


def alignment_table(result: Mapping[str, Any]) -> DownloadTable:
    """Return RAGAlign by system and generator, and the mean over systems once all queries are answered."""
    graded = _("graded, original"), _("graded, filled")
    counted = _("malformed answers"), _("answers without a verdict")
    rest = (
        _("share of correct answers"),
        _("exact match"),
        *counted,
        _("words saved"),
        _("documents without evidence"),
    )
    label = f"RAGAlign@{result['k']}"
    versions = _("%(measure)s, original"), _("%(measure)s, filled")
    # The headers of the columns in `alignment.TESTED`.
    comparison = (
        *(name % {"measure": label} for name in versions),
        _("change"),
        _("95% from"),
        _("95% to"),
        "p",
        _("p (Holm)"),
    )
    header = (_("system"), _("generator"), *comparison, *graded, *rest)
    rows: list[tuple[Cell, ...]] = [
        (
            cell["system"],
            cell["generator"],
            *(cell["align"][name] for name in TESTED),
            *(cell["graded"][when] for when in ("before", "after")),
            *(cell[name] for name in ("generation", "exact_match", "malformed", "no_verdict", "saved")),
            cell["without_evidence"],
        )
        for cell in result["cells"]
    ]
    for mean_row in result["means"]:
        values = [mean_row["align"][name] for name in TESTED]
        # Columns that are counted by cell have no mean.
        blank: list[Cell] = [None] * (len(header) - len(values) - 5)
        means = (mean_row["graded"]["before"], mean_row["graded"]["after"], mean_row["generation"])
        rows.append((_("mean"), mean_row["generator"], *values, *means, *blank))
    title = _("RAGAlign@%(k)s by system and generator") % {"k": result["k"]}
    return DownloadTable("rag-align", title, header, tuple(rows), 2)


def suite_tables(
    name: str, k: int, members: Sequence[str], lines: Sequence[Mapping[str, Any]]
) -> tuple[DownloadTable, DownloadTable]:
    """Return RAGAlign, and graded RAGAlign: rows by system and generator, columns by member and version, with means."""
    title = {"suite": name, "k": k}
    plain_lines = [(line, line["values"], line["mean"]) for line in lines]
    graded_lines = [(line, line["graded"]["values"], line["graded"]["mean"]) for line in lines]
    return (
        _suite_table(f"{name}-rag-align", _("%(suite)s: RAGAlign@%(k)s") % title, members, plain_lines),
        _suite_table(f"{name}-rag-align-graded", _("%(suite)s: graded RAGAlign@%(k)s") % title, members, graded_lines),
    )


def _suite_table(
    key: str, title: str, members: Sequence[str], lines: Sequence[tuple[Mapping[str, Any], Sequence[Any], Any]]
) -> DownloadTable:
    header = [_("system"), _("generator")]
    for member in (*members, _("mean")):
        header += [_("%(name)s, original") % {"name": member}, _("%(name)s, filled") % {"name": member}]
    rows = [
        (
            line["system"] or _("mean"),
            line["generator"],
            *(value[when] if value else None for value in (*values, mean) for when in TESTED[:2]),
        )
        for line, values, mean in lines
    ]
    return DownloadTable(key, title, tuple(header), tuple(rows), 2)
