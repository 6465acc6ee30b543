"""Import of bundles into the collection: queries, documents and pairs to judge, all marked synthetic."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from benchmark.models import Synthesis
from benchmark.synthesis.bundles import Bundle
from benchmark.synthesis.files import read_bundles
from corpus.errors import BadInput
from corpus.importing.made_rows import import_rows

Row = Mapping[str, Any]


def import_bundles(synthesis: Synthesis) -> dict[str, int]:
    """Import the bundles of a synthesis; return the numbers of new texts and pairs. Importing again changes nothing.

    No labels are imported: a passage planned as relevant is judged like any other. Raises BadInput.
    """
    bundles = [bundle for bundle in read_bundles(synthesis) if _named_passages(bundle)]
    if not bundles:
        raise BadInput(_("There is no bundle to import yet"))
    new = import_rows(
        synthesis.collection,
        corpus=[row for bundle in bundles for row in _documents(bundle)],
        queries=[_query(bundle) for bundle in bundles],
        pairs=[row for bundle in bundles for row in _pairs(bundle)],
    )
    return {name: new[name] for name in ("queries", "documents", "pairs")}


def _query(bundle: Bundle) -> Row:
    fields = {name: bundle[name] for name in ("persona", "type")}
    metadata = {"synthetic": True, "seed_query": bundle["seed"]["query_id"], **fields}
    return {"_id": bundle["query_id"], "text": bundle["query"], "metadata": metadata}


def _documents(bundle: Bundle) -> Iterator[Row]:
    """Yield the passages without any hint of their planned relevance, which judges must not know."""
    for name, passage in _named_passages(bundle):
        metadata = {"synthetic": True, "query_id": bundle["query_id"]}
        yield {"_id": name, "title": passage["blueprint"]["title"], "text": passage["text"], "metadata": metadata}


def _pairs(bundle: Bundle) -> Iterator[Row]:
    return ({"query_id": bundle["query_id"], "doc_id": name} for name, _text in _named_passages(bundle))


def _named_passages(bundle: Bundle) -> Sequence[tuple[str, Row]]:
    """Return the passages with ids that do not reveal which are planned as relevant."""
    passages = [*bundle["positives"], *bundle["negatives"]]
    # Sorted by text, an order that looks random to a judge and is the same at a second import.
    ordered = sorted(passages, key=lambda passage: str(passage["text"]))
    return [(f"{bundle['query_id']}-{number}", passage) for number, passage in enumerate(ordered, 1)]
