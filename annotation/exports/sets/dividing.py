"""Division of a set into train, dev and test: by named splits, by share, without near-duplicates across splits."""

import math
from collections import Counter
from typing import Any

from django.utils.translation import gettext as _

from annotation.exports.options import ExportOptions
from annotation.exports.query_splits.named import find_named
from annotation.exports.query_splits.parts import SPLITS, TEST, TRAIN
from annotation.exports.sets.choosing import LeftOutCounts
from annotation.exports.sets.rows import SetQuery
from annotation.exports.sets.source import PIECE, SetSource, in_pieces, read_documents, read_queries
from annotation.exports.sets.splitting import Sides, split_queries
from corpus.errors import BadInput, BadOption
from corpus.search import near
from corpus.search.text import tokenize_text


def divide_queries(
    queries: list[SetQuery], sources: list[SetSource], options: ExportOptions, left_out: LeftOutCounts
) -> tuple[Sides, dict[str, Any]]:
    """Divide the queries. Return those of each split, and details of the division for the manifest."""
    prefixes = [(source.collection, source.prefix) for source in sources]
    named_splits = [(side, *find_named(prefixes, side, name)) for side, name in options.named_splits.items()]
    named: dict[str, set[int]] = {
        side: {query.key for query in queries if query.id in ids} for side, ids, _descriptions in named_splits
    }
    details: dict[str, Any] = {}
    if named_splits:
        details["named_splits"] = [
            {"split": side, **description} for side, _ids, descriptions in named_splits for description in descriptions
        ]
    key_counts = Counter(key for keys in named.values() for key in keys)
    if repeated_keys := [key for keys in named.values() for key in keys if key_counts[key] > 1]:
        repeated = next(query.id for query in queries if query.key == repeated_keys[0])
        words = _("Query %(query)s is in two of the named splits: remove it from one of the lists.")
        raise BadOption("split", words % {"query": repeated})
    if options.qrels is not None:
        # A version of the qrels is for measuring: all other queries are test, and none is left out.
        rest = {query.key for query in queries}.difference(*named.values())
        named[TEST] = named.get(TEST, set()) | rest
        sides = {side: [query for query in queries if query.key in named[side]] for side in SPLITS if side in named}
        return sides, details
    groups, documents, sample = _group_near_duplicates(queries, options)
    near_texts: dict[str, Any] = {"groups": groups, "documents": documents, "named": named}
    sides = split_queries(
        queries, options.split, options.seed, **near_texts, left_out=left_out, synthetic_dev=options.synthetic_dev
    )
    if not sides[TRAIN]:
        if TRAIN in named and not named[TRAIN]:
            name = options.named_splits[TRAIN]
            reason = _("no query named %(name)s has a label; name other queries") % {"name": name}
        elif TRAIN not in named and len(queries) == sum(map(len, named.values())):
            reason = _("every query with a label is one of dev or test; name fewer queries")
        else:
            reason = _(
                "every document is, or nearly equals, one of dev or test; "
                "let near-duplicates be on both sides, or take another split"
            )
        raise BadInput(_("Nothing is left to train on: %(why)s") % {"why": reason})
    if groups:
        details["near_duplicates"] = {"from": options.near, "shingle_sample": sample}
    return sides, details


def _group_near_duplicates(
    queries: list[SetQuery], options: ExportOptions
) -> tuple[dict[int, int], dict[int, int], int]:
    """Return groups of near-duplicate queries and documents by key, and the sampling rate of shingles.

    There are no groups without a split, or if near-duplicates may be on both sides.
    """
    if options.near is None or (options.split >= 1 and not options.named_splits):
        return {}, {}, 1
    texts = near.Shingles(near.QUERY_WORDS)
    for keys in in_pieces([query.key for query in queries]):
        texts.add((key, text.text) for key, text in sorted(read_queries(keys).items()))
    document_keys = sorted({row.document for query in queries for row in query.rows})
    # To bound memory only a sample of shingles is compared. Their number is estimated from the first texts.
    first_texts = read_documents(document_keys[:PIECE]).values()
    words = sum(len(tokenize_text(text.full_text)) for text in first_texts)
    shingles = words * len(document_keys) / max(len(first_texts), 1)
    del first_texts
    documents = near.Shingles(near.DOCUMENT_WORDS, max(1, math.ceil(shingles / near.MOST)))
    for keys in in_pieces(document_keys):
        documents.add((key, text.full_text) for key, text in sorted(read_documents(keys).items()))
    return texts.groups(options.near), documents.groups(options.near), documents.sample
