"""Bundles into the collection: queries, documents and pairs to be judged, all marked synthetic."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from benchmark.models import Synthesis
from benchmark.synthesis.bundles import Bundle
from benchmark.synthesis.files import read_bundles
from corpus.errors import BadInput
from corpus.importing.made_rows import import_rows

Row = Mapping[str, Any]


def import_bundles(synthesis: Synthesis) -> dict[str, int]:
    """Import what a synthesis has made; return how many texts and pairs are new. A second time changes nothing.

    No label comes with them: what a model planned as relevant is judged like every other pair. Raises BadInput.
    """
    bundles = [one for one in read_bundles(synthesis) if _named_passages(one)]
    if not bundles:
        raise BadInput(_("There is no bundle to import yet"))
    sides: dict[str, Callable[[Bundle], Iterable[Row]]] = {"corpus": _documents, "queries": _queries, "pairs": _pairs}
    new = import_rows(
        synthesis.collection, **{name: [row for one in bundles for row in rows(one)] for name, rows in sides.items()}
    )
    return {name: new[name] for name in ("queries", "documents", "pairs")}


def _queries(bundle: Bundle) -> Iterator[Row]:
    told = {name: bundle[name] for name in ("persona", "type")}
    metadata = {"synthetic": True, "seed_query": bundle["seed"]["query_id"], **told}
    yield {"_id": bundle["query_id"], "text": bundle["query"], "metadata": metadata}


def _documents(bundle: Bundle) -> Iterator[Row]:
    """Yield the passages without a hint at their planned relevance: judges must not know."""
    for name, passage in _named_passages(bundle):
        metadata = {"synthetic": True, "query_id": bundle["query_id"]}
        yield {"_id": name, "title": passage["blueprint"]["title"], "text": passage["text"], "metadata": metadata}


def _pairs(bundle: Bundle) -> Iterator[Row]:
    return ({"query_id": bundle["query_id"], "doc_id": name} for name, _text in _named_passages(bundle))


def _named_passages(bundle: Bundle) -> Sequence[tuple[str, Row]]:
    """Each passage under an id that does not tell its planned side: in order of texts."""
    passages = [*bundle["positives"], *bundle["negatives"]]
    # By text, as good as chance to a judge, and the same at a second import.
    ordered = sorted(passages, key=lambda one: str(one["text"]))
    return [(f"{bundle['query_id']}-{number}", one) for number, one in enumerate(ordered, 1)]
