"""Division of a set into train, dev, test: by names, share, no near-duplicates across."""

import math
from typing import Any

from django.utils.translation import gettext as _

from annotation.exports.options import ExportOptions
from annotation.exports.query_splits.named import find_named
from annotation.exports.query_splits.parts import SPLITS, TEST, TRAIN
from annotation.exports.sets import source
from annotation.exports.sets.choosing import Left
from annotation.exports.sets.rows import SetQuery
from annotation.exports.sets.source import SetSource
from annotation.exports.sets.splitting import Sides, split_queries
from corpus.errors import BadInput, BadOption
from corpus.search import near
from corpus.search.text import tokenize_text


def divide_queries(
    queries: list[SetQuery], sources: list[SetSource], asked: ExportOptions, left: Left
) -> tuple[Sides, dict[str, Any]]:
    """Divide the queries, and say for the manifest by which names and near-duplicates."""
    places = [(one.collection, one.prefix) for one in sources]
    found = [(side, *find_named(places, side, name)) for side, name in asked.named_splits.items()]
    named: dict[str, set[int]] = {
        side: {query.key for query in queries if query.id in ids} for side, ids, _described in found
    }
    details: dict[str, Any] = {}
    if found:
        details["named_splits"] = [{"split": side, **one} for side, _ids, described in found for one in described]
    if both := [key for keys in named.values() for key in keys if sum(key in one for one in named.values()) > 1]:
        twice = next(query.id for query in queries if query.key == both[0])
        words = _("Query %(query)s stands in two of the named splits: take it off one of the lists.")
        raise BadOption("split", words % {"query": twice})
    if asked.qrels is not None:
        # A version measures: what no name claims is test, and nothing of it is left out.
        rest = {query.key for query in queries}.difference(*named.values())
        named[TEST] = named.get(TEST, set()) | rest
        return {side: [one for one in queries if one.key in named[side]] for side in SPLITS if side in named}, details
    groups, documents, sample = _group_near_duplicates(queries, asked)
    near_texts: dict[str, Any] = {"groups": groups, "documents": documents, "named": named}
    sides = split_queries(queries, asked.split, asked.seed, **near_texts, left=left, synthetic_dev=asked.synthetic_dev)
    if not sides[TRAIN]:
        if TRAIN in named and not named[TRAIN]:
            name = asked.named_splits[TRAIN]
            why = _("no query named %(name)s has a label; name other queries") % {"name": name}
        elif TRAIN not in named and len(queries) == sum(map(len, named.values())):
            why = _("every query with a label is one of dev or test; name fewer queries")
        else:
            why = _(
                "every document is, or nearly equals, one of dev or test; "
                "let near-duplicates be on both sides, or take another split"
            )
        raise BadInput(_("Nothing is left to train on: %(why)s") % {"why": why})
    if groups:
        details["near_duplicates"] = {"from": asked.near, "shingle_sample": sample}
    return sides, details


def _group_near_duplicates(queries: list[SetQuery], asked: ExportOptions) -> tuple[dict[int, int], dict[int, int], int]:
    """Return groups of near-duplicate queries and documents by key (none without a split), and the sample taken."""
    if asked.near is None or (asked.split >= 1 and not asked.named_splits):
        return {}, {}, 1
    texts = near.Shingles(near.QUERY_WORDS)
    for keys in source.in_pieces([query.key for query in queries]):
        texts.add((key, one.text) for key, one in sorted(source.read_queries(keys).items()))
    wanted = sorted({row.document for query in queries for row in query.rows})
    # One of so many shingles is compared, judged by the first texts, so that memory has a bound.
    first = source.read_documents(wanted[: source.PIECE]).values()
    shingles = sum(len(tokenize_text(one.whole)) for one in first) * len(wanted) / max(len(first), 1)
    del first
    documents = near.Shingles(near.DOCUMENT_WORDS, max(1, math.ceil(shingles / near.MOST)))
    for keys in source.in_pieces(wanted):
        documents.add((key, one.whole) for key, one in sorted(source.read_documents(keys).items()))
    return texts.groups(asked.near), documents.groups(asked.near), documents.sample
