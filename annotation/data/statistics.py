"""The statistics page: sizes of a collection and what became of its candidate pairs."""

from typing import Any

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from annotation.models import StoredResult
from corpus.models import Collection
from corpus.search.text import text_length
from jobs.results import ResultKind
from judges.campaigns.selectors import campaigns_of, collection_status, count_filtered
from judges.models import Campaign
from store.sql import fetch_row, fetch_rows, read_sql

SAMPLE = 1_000  # Texts of each kind in which words are counted.
# Seconds for which the numbers are cached: they read every row of the collection, perhaps a million.
KEPT_S = 60

COUNTS = read_sql(__file__, "count_collection")
# As bigint: the absolute value of the smallest integer does not fit into an integer.
QUERY_TEXTS = """
    SELECT text FROM corpus_query
    WHERE collection_id = %(c)s AND is_current AND abs(hashtext(external_id)::bigint) %% %(every)s = 0
"""
ANSWER_TEXTS = """
    SELECT unnest(answers) FROM corpus_query
    WHERE collection_id = %(c)s AND is_current AND abs(hashtext(external_id)::bigint) %% %(every)s = 0
"""
DOCUMENT_TEXTS = """
    SELECT title || ' ' || text FROM corpus_document
    WHERE collection_id = %(c)s AND is_current AND abs(hashtext(external_id)::bigint) %% %(every)s = 0
"""
# Aspects, the queries that have some, and the documents that are relevant to any of a query's (BRIGHT-Pro table 1).
ASPECTS = """
    SELECT count(DISTINCT a.id), count(DISTINCT a.query_id), count(DISTINCT (a.query_id, p.document_id))
    FROM corpus_aspect a JOIN corpus_query q ON q.id = a.query_id
    LEFT JOIN (corpus_label l JOIN corpus_pair p ON p.id = l.pair_id JOIN corpus_document d ON d.id = p.document_id
        AND d.is_current) ON l.aspect_id = a.id AND l.grade >= %(relevant_from)s
    WHERE q.collection_id = %(collection)s AND q.is_current AND a.is_current
"""
ASPECT_TEXTS = """
    SELECT a.text FROM corpus_aspect a JOIN corpus_query q ON q.id = a.query_id
    WHERE q.collection_id = %(c)s AND q.is_current AND a.is_current AND abs(hashint8(a.id)::bigint) %% %(every)s = 0
"""


def statistics_of(collection: Collection) -> dict[str, Any]:
    """Return the numbers of a collection, at most a minute old. The mean of nothing is None.

    `relevant_a_query`: relevant documents of each query with a label or a reference grade, by the
    label where a pair has both; `relevant_before`: by reference grades alone, before holes were
    filled (D table 7). `sampled`: words are counted in a sample. `positive_a_query` and
    `aspects_a_query` are means over the queries with aspects.
    """
    # Cached by language, since the steps of the funnel are stored in words.
    return STATISTICS.recent(collection, KEPT_S, language=get_language())


def _compute_statistics(collection: Collection) -> dict[str, Any]:
    values = {"collection": collection.pk, "relevant_from": collection.relevant_from}
    documents, queries, answers, answered, synthetic, keywords, *of_pairs = fetch_row(COUNTS, **values)
    aspects, queries_with_aspects, positive = fetch_row(ASPECTS, **values)
    pairs, queries_with_pairs, scored, labelled, judged, relevant, judged_before, relevant_before = of_pairs
    status = collection_status(collection, by_judge=False)
    campaigns = campaigns_of(collection)[:2]
    # Several campaigns have no common steps: then only the start and the end are shown.
    campaign = campaigns[0] if len(campaigns) == 1 else None
    dropped = count_filtered(campaign) if campaign and campaign.protocol.get("filter") else None
    return {
        "documents": documents,
        "queries": queries,
        "queries_with_answers": answered,
        "queries_synthetic": synthetic,
        "queries_keywords": keywords,
        "pairs": pairs,
        "labelled": labelled,
        "scored": scored,
        "documents_a_query": pairs / queries_with_pairs if queries_with_pairs else None,
        "answers_a_query": float(answers) / queries if queries else None,
        "words_a_query": _mean_text_length(QUERY_TEXTS, collection, queries),
        "words_a_document": _mean_text_length(DOCUMENT_TEXTS, collection, documents),
        "words_an_answer": _mean_text_length(ANSWER_TEXTS, collection, answered),
        "relevant_a_query": float(relevant) / judged if judged else None,
        "relevant_before": float(relevant_before) / judged_before if judged_before else None,
        "queries_labelled": judged,
        "queries_with_aspects": queries_with_aspects,
        "aspects_a_query": aspects / queries_with_aspects if queries_with_aspects else None,
        "positive_a_query": positive / queries_with_aspects if queries_with_aspects else None,
        "words_an_aspect": _mean_text_length(ASPECT_TEXTS, collection, aspects),
        "sampled": max(documents, queries) > SAMPLE,
        "campaign": campaign.number if campaign else None,
        "funnel": _build_funnel(pairs, status, campaign, dropped),
    }


STATISTICS = ResultKind(
    "statistics",
    "",  # Computed without a worker.
    StoredResult,
    lambda collection, _options, _tell: _compute_statistics(collection),
    keep=2,  # One for each language.
)


def _mean_text_length(statement: str, collection: Collection, rows: int) -> float | None:
    """Return the mean number of words in a sample of about SAMPLE texts."""
    # Texts are sampled by the hash of their ids, so that the sample stays the same.
    rows_of_sample = fetch_rows(statement, c=collection.pk, every=max(1, rows // SAMPLE))
    counts = [text_length(text) for (text,) in rows_of_sample]
    return sum(counts) / len(counts) if counts else None


def _build_funnel(
    pairs: int, status: dict[str, Any], campaign: Campaign | None, dropped: int | None
) -> list[dict[str, Any]]:
    """Return the steps of the funnel: candidates, judged pairs, agreed and open ones after each round of debate.

    `dropped`: pairs that the filter labelled, which were not debated; None where the campaign has no filter.
    """
    steps = [_funnel_step(_("candidates"), pairs, pairs)]
    finished = status["labelled"] + status["escalated"] + status["failed"]
    if not finished and status["campaign"] is None:
        return steps
    steps.append(_funnel_step(_("judged"), finished, status["pairs"]))
    still_open = finished - (dropped or 0)
    if dropped is not None:
        steps += [
            _funnel_step(_("rejected by the filter"), dropped, finished),
            _funnel_step(_("kept by the filter"), still_open, finished),
        ]
    rounds = status["agreed_in_round"] if campaign else {}
    for number, agreed in sorted(rounds.items(), key=lambda entry: int(entry[0])):
        still_open -= agreed
        steps += [
            _funnel_step(_("agreed in round %(number)s") % {"number": number}, agreed, finished),
            _funnel_step(_("undecided after round %(number)s") % {"number": number}, still_open, finished),
        ]
    labelled = _funnel_step(_("labelled by judges"), status["labelled"], finished)
    escalated = _funnel_step(_("sent to people"), status["escalated"], finished)
    return [*steps, labelled, escalated, _funnel_step(_("completed by people"), status["settled"], status["escalated"])]


def _funnel_step(words: str, pairs: int, of: int) -> dict[str, Any]:
    """Return a step of the funnel. `of`: the number of pairs of which it is a share."""
    return {"words": words, "pairs": pairs, "of": of, "share": pairs / of if of else None}
