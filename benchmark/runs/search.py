"""Runs by a search endpoint: its answers are the rankings, and the documents in them enter the collection.

Answers are stored every second, together with their documents and the run's counts. What failed is not stored: the
run ends incomplete, and resuming it sends those queries alone.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from queue import Empty, SimpleQueue
from random import Random
from threading import Thread
from time import monotonic
from types import TracebackType
from typing import Any, Self

import numpy as np
from django.db import connection, transaction
from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs import rankings
from benchmark.runs.answer_counts import COUNTED, ELSEWHERE
from benchmark.runs.builders import STORE_S, Progress, ShouldStop
from benchmark.runs.rankings import RankedQuery
from benchmark.search_endpoints.hits import Hit
from benchmark.search_endpoints.searching import EndpointSession, SearchAnswer, SearchFailed
from benchmark.search_endpoints.selectors import find_endpoint
from corpus import table_statistics
from corpus.errors import BadOption, Incomplete
from corpus.importing.returned_documents import ReturnedDocument, store_returned
from corpus.models import Collection, Document
from corpus.search import full_text
from jobs.models import JobState
from store.sql import fetch_rows, read_sql

AT_ONCE = 20  # Requests in flight.
MOST_TRIES, LONGEST_WAIT_S = 3, 60.0  # Where an engine says when to come back.
MOST_FAILURES = 20  # In a row, after which the endpoint counts as out of reach.
REASONS = 3  # Reasons that the error of an incomplete run names.
Answered = tuple[int, SearchAnswer | SearchFailed]  # A query's primary key, and its answer.
RETURNED_ELSEWHERE = read_sql(__file__, "count_elsewhere")
# Documents of the rankings that a run has so far, the newest version of each last, and whether it has a text.
RANKED = """
SELECT DISTINCT d.external_id, d.id, d.text <> '' FROM benchmark_ranking r
CROSS JOIN LATERAL unnest(r.documents) AS ranked (document) JOIN corpus_document d ON d.id = ranked.document
WHERE r.run_id = %s ORDER BY d.id
"""


def check(collection: Collection, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the endpoint's name, engine and settings as they are now. Raises BadOption for an unknown endpoint."""
    name = str(recipe.get("endpoint") or "")
    try:
        endpoint = find_endpoint(name)
    except BadOption as error:
        runs = Run.objects.filter(collection=collection, kind=Run.Kind.SEARCH, recipe__endpoint=name, is_deleted=False)
        run = runs.exclude(state=JobState.READY).order_by("-pk").first()
        if run is None:
            raise
        message = _(
            "%(endpoint)s was deleted after run %(run)s began: resume that run on its page, which keeps the settings "
            "of then."
        )
        raise BadOption("endpoint", f"{error} {message % {'endpoint': name, 'run': run.name}}") from None
    return {"endpoint": endpoint.name, "engine": endpoint.kind, "settings": endpoint.settings}


def make(run: Run, progress: Progress, should_stop: ShouldStop) -> None:
    """Send every query that has no ranking yet, and store the answers every second.

    Raises Incomplete if queries are left without an answer, with the reasons.
    """
    queries, total = rankings.unranked_queries(run), len(rankings.current_queries(run.collection, run.recipe))
    excluded = rankings.excluded_documents(run.collection)
    requests = [(query.pk, query.text, run.depth + len(excluded.get(query.pk, ()))) for query in queries]
    # In another order at each attempt, so that queries which always fail do not keep the others from being sent.
    Random(run.fencing_token).shuffle(requests)
    store, failures, failed_in_a_row = AnswerStore(run), Counter[str](), 0
    done, is_stopped, phase = total - len(queries), False, _("searching")
    progress(done, total, phase)
    with QuerySender(run.recipe["settings"], requests) as sender:
        for answers in sender.iterate_answers():
            done += store.store(answers)
            for _query, answer in answers:
                is_failure = isinstance(answer, SearchFailed)
                failed_in_a_row = failed_in_a_row + 1 if is_failure else 0
                failures.update([str(answer)] if is_failure else [])
            progress(done, total, phase)
            is_stopped = should_stop()
            if is_stopped or failed_in_a_row >= MOST_FAILURES:
                break
    store.finish()
    if failures and not is_stopped:
        reasons = "; ".join(f"{count:,} × {reason}" for reason, count in failures.most_common(REASONS))
        message = _(
            "%(missing)s of %(total)s queries have no answer yet: %(reasons)s. Resume the run to send them again"
        )
        raise Incomplete(message % {"missing": f"{total - done:,}", "total": f"{total:,}", "reasons": reasons})


class QuerySender:
    """Sends queries to an endpoint, AT_ONCE at a time. The database's work in between delays none of them.

    Requests are sent by an event loop in a thread of its own; leaving the block cancels those in flight.
    """

    def __init__(self, settings: Mapping[str, Any], requests: Sequence[tuple[int, str, int]]) -> None:
        self.settings, self.requests = settings, iter(requests)
        self.answers: SimpleQueue[Answered | None] = SimpleQueue()  # None: no more will come.
        self.error: BaseException | None = None
        self.runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.loop, self.stop_event = self.runner.get_loop(), asyncio.Event()
        self.thread = Thread(target=self._run, name="search", daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(RuntimeError):  # The loop is closed, because everything was sent.
            self.loop.call_soon_threadsafe(self.stop_event.set)
        self.thread.join()

    def iterate_answers(self) -> Iterator[list[Answered]]:
        """Yield the answers of each second, until all requests are answered. Raises what stopped the sending."""
        is_over = False
        while not is_over:
            batch, end = list[Answered](), monotonic() + STORE_S
            with suppress(Empty):
                while not is_over and (seconds := end - monotonic()) > 0:
                    answer = self.answers.get(timeout=seconds)
                    is_over = answer is None
                    batch += [] if answer is None else [answer]
            yield batch
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            with self.runner:
                self.runner.run(self._send_all())
        except BaseException as error:
            self.error = error
        finally:
            self.answers.put(None)

    async def _send_all(self) -> None:
        async with EndpointSession(self.settings, connections=AT_ONCE) as session:
            sending = asyncio.gather(*(self._send_remaining(session) for _place in range(AT_ONCE)))
            stop_wait = asyncio.ensure_future(self.stop_event.wait())
            futures: list[asyncio.Future[Any]] = [sending, stop_wait]
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            stop_wait.cancel()
            if sending.done():
                sending.result()
            else:
                sending.cancel()
                with suppress(asyncio.CancelledError):
                    await sending

    async def _send_remaining(self, session: EndpointSession) -> None:
        for query, text, depth in self.requests:
            self.answers.put((query, await search_patiently(session, text, depth)))


async def search_patiently(session: EndpointSession, text: str, depth: int) -> SearchAnswer | SearchFailed:
    """Return an endpoint's answer, or its failure; where it says when to come back, it is asked again."""
    for tries in range(1, MOST_TRIES + 1):
        try:
            return await session.search(text, depth)
        except SearchFailed as error:
            failure = error
        if failure.wait_s is None or failure.wait_s > LONGEST_WAIT_S or tries == MOST_TRIES:
            break
        await asyncio.sleep(failure.wait_s)
    return failure


class AnswerStore:
    """Stores a run's answers: documents, rankings and counts in one transaction.

    A document has one text in a run: the first one that was returned; until then it may have none.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.counts = Counter({**dict.fromkeys(COUNTED, 0), **run.counts})
        self.digests: dict[str, bytes] = {}  # Of title and text, by id.
        with connection.cursor() as cursor:
            cursor.execute(RANKED, [run.pk])
            ranked = cursor.fetchall()
        self.keys: dict[str, int] = {name: key for name, key, _has_text in ranked}
        self.blank = self.keys.keys() - {name for name, _key, has_text in ranked if has_text}

    def store(self, answers: Sequence[Answered]) -> int:
        """Store the answers that are not failures; return their number. Raises LeaseLost and BadInput."""
        hits_of: dict[int, list[Hit]] = {}
        seconds: dict[int, float] = {}
        documents: dict[str, ReturnedDocument] = {}
        for query, answer in answers:
            if isinstance(answer, SearchFailed):
                continue
            hits_of[query] = hits = answer.page.hits
            seconds[query], page = answer.seconds, answer.page
            self.counts["empty"] += not hits
            self.counts["partial"] += page.is_partial
            self.counts["duplicates"] += page.duplicates
            self.counts["without_id"] += page.without_id
            self.counts["without_text"] += sum(not hit.text for hit in hits)
            for hit in hits:
                digest = blake2b(f"{hit.title}\0{hit.text}".encode(), digest_size=8).digest()
                if hit.text and self.digests.setdefault(hit.id, digest) != digest:
                    self.counts["varying"] += 1
                elif (hit.id not in self.keys or hit.id in self.blank) and (hit.text or hit.id not in documents):
                    documents[hit.id] = ReturnedDocument(hit.id, hit.title, hit.text, hit.metadata)
        if not hits_of:
            return 0
        with transaction.atomic():
            stored = store_returned(self.run.collection, documents.values())
            self.keys |= stored.keys
            self.blank -= documents.keys()
            self.blank |= {name for name, document in documents.items() if not document.text}
            self.counts.update(new=stored.new, changed=stored.changed)
            self._count_elsewhere(stored.replaced)
            ranked = {
                query: RankedQuery([self.keys[hit.id] for hit in hits], falling_scores(hits), seconds[query])
                for query, hits in hits_of.items()
            }
            names = {self.keys[hit.id]: hit.id for hits in hits_of.values() for hit in hits}
            rankings.store(self.run, ranked, names)
            Run.objects.filter(pk=self.run.pk).update(counts=self.counts)
        return len(ranked)

    def _count_elsewhere(self, replaced: Sequence[int]) -> None:
        """Count the replaced versions that other endpoints had returned, and this one never."""
        values = {"endpoint": self.run.recipe["endpoint"], "collection": self.run.collection_id, "replaced": replaced}
        for endpoint, count in fetch_rows(RETURNED_ELSEWHERE, **values) if replaced else ():
            self.counts[f"{ELSEWHERE}{endpoint}"] += count

    def finish(self) -> None:
        """Have the new documents found by their words, and plan with their number."""
        if added := self.counts["new"] + self.counts["changed"]:
            with transaction.atomic():
                full_text.request_index(self.run.collection_id)
                table_statistics.renew_statistics(added, Document)


def falling_scores(hits: Sequence[Hit]) -> list[float]:
    """Return scores that fall strictly in the engine's order, which is what its users see.

    The engine's own, where they do not rise; equal ones are set apart by the least step of a float32. Otherwise
    (distances, scores of an earlier stage, no scores at all) the number of the documents that follow, plus 1.
    """
    by_order = [float(place) for place in range(len(hits), 0, -1)]
    if any(hit.score is None for hit in hits):
        return by_order
    with np.errstate(over="ignore"):
        scores = np.array([hit.score for hit in hits], dtype=np.float32)
    if not np.isfinite(scores).all() or (np.diff(scores) > 0).any():
        return by_order
    for place in range(1, len(scores)):
        # trec_eval sorts equal scores by document id.
        if scores[place] >= scores[place - 1]:
            scores[place] = np.nextafter(scores[place - 1], np.float32(-np.inf))
    return [float(score) for score in scores] if np.isfinite(scores).all() else by_order
