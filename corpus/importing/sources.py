"""What found the candidate pairs of an import: files, uploaded rankings, BM25, static embeddings."""

from collections.abc import Mapping
from enum import IntFlag

from django.utils.translation import gettext as _

from store.sql import fetch_rows


class Source(IntFlag):
    """What named a candidate pair; several may. `FILES` are those of pairs and of qrels."""

    FILES = 1
    RUNS = 2
    BM25 = 4
    STATIC = 8


def count_sources() -> dict[str, int]:
    """Return the numbers of the named pairs by what found them, such as {"bm25": 40, "bm25+static": 8, "files": 3}.

    A file of pairs or qrels is no search: it counts only for pairs that nothing else found.
    """
    counts: dict[str, int] = {}
    for bits, pairs in fetch_rows("SELECT source, count(*) FROM import_named GROUP BY source ORDER BY source"):
        searches = Source(bits) & ~Source.FILES
        key = "+".join(str(source.name).lower() for source in searches or Source.FILES)
        counts[key] = counts.get(key, 0) + pairs
    return counts


def describe_sources(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the sources in words with their numbers of pairs: what each found alone, then together, then files."""
    names = {
        "files": _("files of pairs or grades"),
        "runs": _("uploaded rankings"),
        "bm25": _("BM25"),
        "static": _("static embeddings"),
    }
    rows = []
    for key, pairs in sorted(counts.items(), key=lambda row: (row[0] == "files", row[0].count("+"))):
        sources = [names.get(source, source) for source in key.split("+")]
        is_alone = len(sources) == 1
        rows.append((_("%(source)s alone") % {"source": sources[0]} if is_alone else " + ".join(sources), pairs))
    return rows


def has_one_search(counts: Mapping[str, int]) -> bool:
    """Return whether BM25, or static embeddings, found all candidates that no file names."""
    searches = {source for key in counts for source in key.split("+")} - {"files"}
    return searches in ({"bm25"}, {"static"})
