"""Tables of an evaluation, and of a suite's, as people take them away."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from benchmark.answers.alignment import TESTED
from charts.downloads import Cell, DownloadTable

MEAN = ""  # The system of a row that is the mean over all systems.


def test_names(k: int) -> tuple[str, ...]:
    """Return the headers of alignment.TESTED."""
    label = f"RAGAlign@{k}"
    versions = _("%(measure)s, original"), _("%(measure)s, filled")
    return (
        *(name % {"measure": label} for name in versions),
        _("change"),
        _("95% from"),
        _("95% to"),
        "p",
        _("p (Holm)"),
    )


def result_tables(result: Mapping[str, Any]) -> list[DownloadTable]:
    """Return all tables of an evaluation."""
    return [alignment_table(result), retrieval_table(result)]


def alignment_table(result: Mapping[str, Any]) -> DownloadTable:
    """RAGAlign by system and generator, and the mean over systems where all is answered."""
    graded = _("graded, original"), _("graded, filled")
    counted = _("malformed answers"), _("answers without a verdict")
    rest = (
        _("share of correct answers"),
        _("exact match"),
        *counted,
        _("words saved"),
        _("documents without evidence"),
    )
    header = (_("system"), _("generator"), *test_names(result["k"]), *graded, *rest)
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
    for one in result["means"]:
        values = [one["align"][name] for name in TESTED]
        # What is counted by cell has no mean.
        blank: list[Cell] = [None] * (len(header) - len(values) - 5)
        means = (one["graded"]["before"], one["graded"]["after"], one["generation"])
        rows.append((_("mean"), one["generator"], *values, *means, *blank))
    title = _("RAGAlign@%(k)s by system and generator") % {"k": result["k"]}
    return DownloadTable("rag-align", title, header, tuple(rows), 2)


def retrieval_table(result: Mapping[str, Any]) -> DownloadTable:
    """Hit@k of each system by both versions, with its ranks."""
    label = f"Hit@{result['k']}"
    versions = _("%(measure)s, original"), _("%(measure)s, filled")
    header = (_("system"), *(name % {"measure": label} for name in versions), _("rank before"), _("rank after"))
    rows = tuple(
        (one["name"], one["before"], one["after"], one["rank_before"], one["rank_after"]) for one in result["systems"]
    )
    return DownloadTable("rag-retrieval", _("Retrieval by system"), header, rows)


def suite_tables(
    name: str, k: int, members: Sequence[str], lines: Sequence[Mapping[str, Any]]
) -> tuple[DownloadTable, DownloadTable]:
    """Return RAGAlign, and graded RAGAlign: rows by system and generator, columns by member and version, with means."""
    title = {"suite": name, "k": k}
    plain = [(line, line["values"], line["mean"]) for line in lines]
    graded = [(line, line["graded"]["values"], line["graded"]["mean"]) for line in lines]
    return (
        _suite_table(f"{name}-rag-align", _("%(suite)s: RAGAlign@%(k)s") % title, members, plain),
        _suite_table(f"{name}-rag-align-graded", _("%(suite)s: graded RAGAlign@%(k)s") % title, members, graded),
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
