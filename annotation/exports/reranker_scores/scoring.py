"""Asking a rerank API for the scores of a collection's pairs: query by query, and nothing twice."""

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
BATCH = 100  # Documents in one call.
THREADS = 4
MISSING = read_sql(__file__, "find_unscored")
TEXTS = """
    SELECT p.id, q.text, CASE WHEN d.title = '' THEN d.text ELSE d.title || E'\\n' || d.text END
    FROM corpus_pair p JOIN corpus_query q ON q.id = p.query_id JOIN corpus_document d ON d.id = p.document_id
    WHERE p.id = ANY(%s)
"""
# The mean over teachers, of each its newest score. `IS DISTINCT FROM` leaves rows alone that say so already.
TEACH = """
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
    """The counts of one run of `teacher_scores`, and its errors."""

    pairs: int = 0  # Without a score of this teacher, when it began.
    scored: int = 0
    failed: int = 0
    calls: int = 0
    calls_failed: int = 0
    # Different ones, in the order in which they came.
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """A call's pairs of one query, with their texts in the same order."""

    pairs: tuple[int, ...]
    query: str
    documents: tuple[str, ...]
    tries: int = 0  # Calls made for them so far.


# The outcome of a call: its request, the raw body, scores by place, an error with whatever body came, milliseconds.
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
    """Ask for every candidate pair without a score of this teacher, and write `Pair.teacher_score`.

    The score is the mean over the teachers (API, address and model) that scored the pair. Imported
    scores are left alone unless `replace`. `limit`: pairs at most. Raises BadInput for a key that
    is not set.
    """
    with closing(Client(teacher)) as client, ThreadPoolExecutor(THREADS) as pool:
        waiting = _missing_pairs(collection, teacher, labelled=labelled, replace=replace, limit=limit)
        report = ScoringReport(pairs=sum(len(pairs) for pairs in waiting))
        _collect_answers(_rerank_requests(waiting), client, pool, collection, report, progress)
    return report


def _missing_pairs(
    collection: Collection, teacher: Teacher, *, labelled: bool, replace: bool, limit: int | None
) -> list[list[int]]:
    """Return the pairs to ask for, at most BATCH of one query together."""
    values: dict[str, str | int] = {
        "collection": collection.pk,
        "labelled": labelled,
        "replace": replace,
        "api": teacher.api.name,
        "url": teacher.url,
        "model": teacher.model,
    }
    with connection.cursor() as cursor:
        cursor.execute(MISSING, values)
        rows = cursor.fetchall()[:limit]
    found = []
    for _, group in groupby(rows, key=lambda row: row[0]):
        pairs = [pair for _, pair in group]
        found += [pairs[at : at + BATCH] for at in range(0, len(pairs), BATCH)]
    return found


def _rerank_requests(waiting: Sequence[list[int]]) -> Iterator[RerankRequest]:
    """Yield the requests, whose texts are read when their turn comes."""
    for pairs in waiting:
        with connection.cursor() as cursor:
            cursor.execute(TEXTS, [pairs])
            texts = {pair: (query, document) for pair, query, document in cursor}
        yield RerankRequest(tuple(pairs), texts[pairs[0]][0], tuple(texts[pair][1] for pair in pairs))


def _collect_answers(
    asks: Iterator[RerankRequest],
    client: Client,
    pool: ThreadPoolExecutor,
    collection: Collection,
    report: ScoringReport,
    told: Progress,
) -> None:
    """Send calls from threads, and store answers here, each in its transaction, as they come."""
    out: set[Future[Outcome]] = {pool.submit(_call_api, client, ask, 0.0) for ask in islice(asks, THREADS)}
    while out:
        done, out = wait(out, return_when=FIRST_COMPLETED)
        for future in done:
            came = future.result()
            again = _store_answer(came, client.teacher, collection, report)
            told(report.scored)
            if again is not None:
                out.add(pool.submit(_call_api, client, again, _retry_delay(again.tries, came[3])))
            elif (new := next(asks, None)) is not None:
                out.add(pool.submit(_call_api, client, new, 0.0))


def _call_api(client: Client, ask: RerankRequest, pause: float) -> Outcome:
    """Send one request, after a pause. No database here: this is another thread."""
    time.sleep(pause)
    started, raw, scores, error = time.monotonic(), "", dict[int, float](), None
    try:
        raw = client.send(client.teacher.api.body(client.teacher.model, ask.query, ask.documents))
        scores = scores_of(client.teacher.api, raw, len(ask.documents))
    except ProviderError as failed:
        raw, error = raw or failed.raw, failed
    return ask, raw, scores, error, int((time.monotonic() - started) * 1000)


def _retry_delay(tries: int, error: ProviderError | None) -> float:
    """Return a delay with full jitter over a doubling bound, at least the server's."""
    at_least = error.retry_after or 0.0 if error is not None else 0.0
    return at_least + random.uniform(0, min(LONGEST_WAIT_S, settings.RETRY_SECONDS * 2**tries))


def _store_answer(
    came: Outcome, teacher: Teacher, collection: Collection, report: ScoringReport
) -> RerankRequest | None:
    """Keep the answer and its scores; return what is to be asked again, or None."""
    ask, raw, scores, error, milliseconds = came
    left = [place for place in range(len(ask.pairs)) if place not in scores]
    if left and error is None:
        error = BadAnswer(f"{teacher.host}: {len(left)} of {len(ask.pairs)} documents have no score in the answer")
    with transaction.atomic():
        asked = dumps(teacher.api.body(teacher.model, ask.query, ask.documents), ensure_ascii=False, sort_keys=True)
        answer = TeacherAnswer.objects.create(
            collection=collection,
            api=teacher.api.name,
            url=teacher.url,
            model=teacher.model,
            pairs=list(ask.pairs),
            request_sha256=sha256(asked.encode()).hexdigest(),
            raw=raw,
            error=" ".join(str(error).split()) if error is not None else "",
            milliseconds=milliseconds,
        )
        TeacherScore.objects.bulk_create(
            TeacherScore(answer=answer, pair_id=ask.pairs[place], score=score) for place, score in scores.items()
        )
        with connection.cursor() as cursor:
            cursor.execute(TEACH, [[ask.pairs[place] for place in scores]])
    report.calls += 1
    report.scored += len(scores)
    if error is None:
        return None
    report.calls_failed += 1
    if str(error) not in report.errors:
        report.errors.append(str(error))
    # What came of half an answer is kept: only the rest is asked again.
    if error.retry and ask.tries + 1 < ATTEMPTS:
        pairs, documents = tuple(ask.pairs[p] for p in left), tuple(ask.documents[p] for p in left)
        return RerankRequest(pairs, ask.query, documents, ask.tries + 1)
    report.failed += len(left)
    return None
