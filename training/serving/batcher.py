"""One thread scores for all requests: what waits is scored together, and what is too much is refused at once."""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from training.serving.protocol import ServingRequest
from training.serving.scorer import Scorer

# Documents that are scored in one go, so that a small request does not wait for many large ones.
MOST_TOGETHER = 256

Asked = ServingRequest | Callable[[], Any]


class Full(Exception):
    """Another request would wait too long."""


class Batcher:
    """A queue before the model, for any thread; `limit`: requests that wait or are being scored."""

    def __init__(self, scorer: Scorer, limit: int) -> None:
        self.scorer = scorer
        self.room = threading.BoundedSemaphore(limit)
        self.waiting: queue.Queue[tuple[Asked, Future[Any]]] = queue.Queue()
        threading.Thread(target=self._work, name="scorer", daemon=True).start()

    def submit(self, asked: Asked) -> Future[Any]:
        """Return a request's margins, or what a function returns that needs the model alone. Raises Full."""
        if not self.room.acquire(blocking=False):
            raise Full
        future: Future[Any] = Future()
        future.add_done_callback(lambda _: self.room.release())
        self.waiting.put((asked, future))
        return future

    def _work(self) -> None:
        while True:
            requests: list[ServingRequest] = []
            futures: list[Future[Any]] = []
            documents = 0
            # Wait for the first request, then take along those that are there already.
            while not futures or (documents < MOST_TOGETHER and not self.waiting.empty()):
                asked, future = self.waiting.get()
                if isinstance(asked, ServingRequest):
                    requests.append(asked)
                    futures.append(future)
                    documents += len(asked.documents)
                else:
                    work: Callable[[], Any] = asked
                    _fulfil([future], lambda: [work()])  # noqa: B023 - called here and now
            _fulfil(futures, partial(_margins, self.scorer, requests))


def _fulfil(futures: list[Future[Any]], work: Callable[[], Sequence[Any]]) -> None:
    """Hand each future its part of what the work returns, or all of them its exception."""
    try:
        found = work()
    except BaseException as error:
        for future in futures:
            future.set_exception(error)
    else:
        for future, value in zip(futures, found, strict=True):
            future.set_result(value)


def _margins(scorer: Scorer, requests: Sequence[ServingRequest]) -> list[list[float]]:
    return [[one.margin for one in found] for found in scorer.score(requests)]
