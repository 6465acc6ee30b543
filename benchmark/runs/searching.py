"""Searching with any text: what rewriting and reasoning do with what a judge wrote, and dense runs with the query."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs import lexical
from benchmark.runs.builders import Stopped, Tell
from benchmark.runs.rankings import RankedQuery
from corpus.errors import BadInput
from corpus.models import Collection
from corpus.search import bm25
from judges.models import Campaign
from judges.records import Judge
from judges.retrieval.model_requests import RetrievalReply

BM25: dict[str, Any] = {"kind": "bm25"}


class Searcher(Protocol):
    """A search for documents by texts."""

    def search(
        self, texts: Mapping[int, str], depths: Mapping[int, int]
    ) -> tuple[dict[int, RankedQuery], RetrievalReply]:
        """The best documents for each text by query, as many as its depth says; and what went wrong with others."""


class Lexical:
    """BM25 over the collection's documents."""

    def __init__(self, index: bm25.Index) -> None:
        self.index = index

    def search(
        self, texts: Mapping[int, str], depths: Mapping[int, int]
    ) -> tuple[dict[int, RankedQuery], RetrievalReply]:
        """Search for the words of each text."""
        found = {query: lexical.rank_by_bm25(self.index, text, depths[query]) for query, text in texts.items()}
        return found, RetrievalReply()


def open_searcher(
    run: Run, campaign: Campaign, judges: Sequence[Judge], over: dict[str, Any], progress: Tell, stopped: Stopped
) -> Searcher | None:
    """Return the searcher of a recipe, ready to search; None when the run was stopped meanwhile."""
    if over["kind"] == "bm25":
        return Lexical(lexical.index_of(run, progress, stopped, over))
    from benchmark.runs import dense

    return dense.open_searcher(run, campaign, judges[0], over, progress, stopped)


def check_searcher(collection: Collection, over: object) -> dict[str, Any]:
    """Return the recipe of what searches, completed. Raises BadInput."""
    if over is None:
        return dict(BM25)
    chosen = {"kind": over} if isinstance(over, str) else over
    if not isinstance(chosen, dict) or chosen.get("kind") not in ("bm25", "dense"):
        raise BadInput(_('The search method is {"kind": "bm25"}, or {"kind": "dense", "judge": ...}'))
    rest = {key: value for key, value in chosen.items() if key != "kind"}
    if chosen["kind"] == "dense":
        from benchmark.runs import dense

        return {"kind": "dense", **dense.check(collection, rest, 1)}
    return {**BM25, **(lexical.check(collection, rest, 1) if rest else {})}
