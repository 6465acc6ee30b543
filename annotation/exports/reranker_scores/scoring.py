"""Scoring of a collection's pairs by a rerank API, query by query, and each pair once."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby, islice
from json import dumps

from django.conf import settings
from django.db import connection, transaction

from annotation.exports.reranker_scores.client import Client, Teacher
from annotation.exports.reranker_scores.formats import scores_of
from annotation.models import TeacherAnswer, TeacherScore
from corpus.models import Collection
from judges.errors import BadAnswer, ProviderError
from store.sql import read_sql

ATTEMPTS = 4
LONGEST_WAIT_S = 30.0
BATCH = 100  # Most documents in one call.
THREADS = 4
FIND_UNSCORED = read_sql(__file__, "find_unscored")
READ_TEXTS = """
    SELECT p.id, q.text, CASE WHEN d.title = '' THEN d.text ELSE d.title || E'\\n' || d.text END
    FROM corpus_pair p JOIN corpus_query q ON q.id = p.query_id JOIN corpus_document d ON d.id = p.document_id
    WHERE p.id = ANY(%s)
"""
# The mean over teachers of the newest score of each. `IS DISTINCT FROM`: unchanged rows are not written.
UPDATE_PAIR_SCORES = """
    UPDATE corpus_pair p SET teacher_score = s.mean FROM (
        SELECT pair_id, avg(score) AS mean FROM (
            SELECT DISTINCT ON (s.pair_id, a.api, a.url, a.model) s.pair_id, s.score
            FROM annotation_teacherscore s JOIN annotation_teacheranswer a ON a.id = s.answer_id
            WHERE s.pair_id = ANY(%s) ORDER BY s.pair_id, a.api, a.url, a.model, s.id DESC
        ) newest GROUP BY pair_id
    ) s WHERE p.id = s.pair_id AND p.teacher_score IS DISTINCT FROM s.mean
"""
Progress = Callable[[int], None]


@dataclass(slots=True)
class ScoringReport:
    """Counts of a run of `teacher_scores`, and its errors."""

    pairs: int = 0  # Number of pairs without a score of this teacher at the beginning.
    scored: int = 0
    failed: int = 0
    calls: int = 0
    calls_failed: int = 0
    errors: list[str] = field(default_factory=list)  # Distinct messages, in order.


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """Pairs of a query that are scored by one call, with their documents in the same order."""

    pairs: tuple[int, ...]
    query: str
    documents: tuple[str, ...]
    tries: int = 0  # Number of earlier calls for them.


# The outcome of a call: its request, the raw body, scores by position, the error if any, milliseconds.
Outcome = tuple[RerankRequest, str, dict[int, float], ProviderError | None, int]


def score_pairs(
    collection: Collection,
    teacher: Teacher,
    *,
    labelled: bool = False,
    replace: bool = False,
    limit: int | None = None,
    progress: Progress = lambda pairs: None,
) -> ScoringReport:
    """Score every candidate pair without a score of this teacher, and write `Pair.teacher_score`.

    The score is the mean over the teachers (API, address and model) that scored the pair. Imported
    scores are kept unless `replace`. `limit`: most pairs. Raises BadInput if the API key is not set.

    1. Find the pairs, in batches of one query.
    2. Send calls from threads, as many at a time as there are threads.
    3. Store each answer in this thread as it arrives, and send its missing pairs again.
    """
    with closing(Client(teacher)) as client, ThreadPoolExecutor(THREADS) as pool:
        # The pairs to score, in batches of at most BATCH pairs of one query.
        values: dict[str, str | int] = {
            "collection": collection.pk,
            "labelled": labelled,
            "replace": replace,
            "api": teacher.api.name,
            "url": teacher.url,
            "model": teacher.model,
        }
        with connection.cursor() as cursor:
            cursor.execute(FIND_UNSCORED, values)
            rows = cursor.fetchall()[:limit]
        batches = []
        for _, group in groupby(rows, key=lambda row: row[0]):
            pairs = [pair for _, pair in group]
            batches += [pairs[start : start + BATCH] for start in range(0, len(pairs), BATCH)]
        report = ScoringReport(pairs=sum(len(pairs) for pairs in batches))
        requests = _rerank_requests(batches)
        futures: set[Future[Outcome]] = {
            pool.submit(_call_api, client, request, 0.0) for request in islice(requests, THREADS)
        }
        while futures:
            done, futures = wait(futures, return_when=FIRST_COMPLETED)
            for future in done:
                outcome = future.result()
                retry = _store_answer(outcome, teacher, collection, report)
                progress(report.scored)
                if retry is not None:
                    futures.add(pool.submit(_call_api, client, retry, _retry_delay(retry.tries, outcome[3])))
                elif (request := next(requests, None)) is not None:
                    futures.add(pool.submit(_call_api, client, request, 0.0))
    return report


def _rerank_requests(batches: Sequence[list[int]]) -> Iterator[RerankRequest]:
    """Yield the requests of batches. Texts are read only when a request is needed."""
    for pairs in batches:
        with connection.cursor() as cursor:
            cursor.execute(READ_TEXTS, [pairs])
            texts = {pair: (query, document) for pair, query, document in cursor}
        yield RerankRequest(tuple(pairs), texts[pairs[0]][0], tuple(texts[pair][1] for pair in pairs))


def _call_api(client: Client, request: RerankRequest, delay: float) -> Outcome:
    """Send a request after a delay. It runs in a thread, without the database."""
    time.sleep(delay)
    start, raw, scores, error = time.monotonic(), "", dict[int, float](), None
    try:
        raw = client.send(client.teacher.api.body(client.teacher.model, request.query, request.documents))
        scores = scores_of(client.teacher.api, raw, len(request.documents))
    except ProviderError as provider_error:
        raw, error = raw or provider_error.raw, provider_error
    return request, raw, scores, error, int((time.monotonic() - start) * 1000)


def _retry_delay(tries: int, error: ProviderError | None) -> float:
    """Return the delay of the server, plus full jitter over a doubling bound."""
    server_delay = error.retry_after or 0.0 if error is not None else 0.0
    return server_delay + random.uniform(0, min(LONGEST_WAIT_S, settings.RETRY_SECONDS * 2**tries))


def _store_answer(
    outcome: Outcome, teacher: Teacher, collection: Collection, report: ScoringReport
) -> RerankRequest | None:
    """Store an answer and its scores in a transaction. Return the request that is sent again, or None."""
    request, raw, scores, error, milliseconds = outcome
    missing = [position for position in range(len(request.pairs)) if position not in scores]
    if missing and error is None:
        error = BadAnswer(
            f"{teacher.host}: {len(missing)} of {len(request.pairs)} documents have no score in the answer"
        )
    with transaction.atomic():
        body = teacher.api.body(teacher.model, request.query, request.documents)
        text = dumps(body, ensure_ascii=False, sort_keys=True)
        answer = TeacherAnswer.objects.create(
            collection=collection,
            api=teacher.api.name,
            url=teacher.url,
            model=teacher.model,
            pairs=list(request.pairs),
            request_sha256=sha256(text.encode()).hexdigest(),
            raw=raw,
            error=" ".join(str(error).split()) if error is not None else "",
            milliseconds=milliseconds,
        )
        TeacherScore.objects.bulk_create(
            TeacherScore(answer=answer, pair_id=request.pairs[position], score=score)
            for position, score in scores.items()
        )
        with connection.cursor() as cursor:
            cursor.execute(UPDATE_PAIR_SCORES, [[request.pairs[position] for position in scores]])
    report.calls += 1
    report.scored += len(scores)
    if error is None:
        return None
    report.calls_failed += 1
    if str(error) not in report.errors:
        report.errors.append(str(error))
    # Only pairs without a score are sent again.
    if error.retry and request.tries + 1 < ATTEMPTS:
        pairs = tuple(request.pairs[position] for position in missing)
        documents = tuple(request.documents[position] for position in missing)
        return RerankRequest(pairs, request.query, documents, request.tries + 1)
    report.failed += len(missing)
    return None
