"""One thread scores for all requests: what waits is scored together, and what is too much is refused at once."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future

from training.serving.protocol import Extra, ScoredTexts, ServingRequest
from training.serving.scorer import Scorer, ScoringRequest

# Documents that are scored in one go, so that a small request does not wait for many large ones.
MOST_TOGETHER = 256


class Full(Exception):
    """So many requests wait that another one would wait too long."""


class Batcher:
    """`submit` from any thread; `limit`: requests that wait or are being scored."""

    def __init__(self, scorer: Scorer, limit: int) -> None:
        self.scorer, self.limit = scorer, limit
        self.waiting: queue.Queue[tuple[Callable[[], None], ServingRequest | None, Future[ScoredTexts] | None]] = (
            queue.Queue()
        )
        self.inside = 0
        self.lock = threading.Lock()
        threading.Thread(target=self._work, name="scorer", daemon=True).start()

    def submit(self, request: ServingRequest) -> Future[ScoredTexts]:
        """Raises Full."""
        future: Future[ScoredTexts] = Future()
        self._enter()
        future.add_done_callback(lambda _: self._leave())
        self.waiting.put((lambda: None, request, future))
        return future

    def call(self, work: Callable[[], dict[int, Extra]]) -> Future[dict[int, Extra]]:
        """Something else that needs the model alone (writing). Raises Full."""
        future: Future[dict[int, Extra]] = Future()
        self._enter()
        future.add_done_callback(lambda _: self._leave())

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

        self.waiting.put((run, None, None))
        return future

    def _enter(self) -> None:
        with self.lock:
            if self.inside >= self.limit:
                raise Full
            self.inside += 1

    def _leave(self) -> None:
        with self.lock:
            self.inside -= 1

    def _work(self) -> None:
        while True:
            entries = [self.waiting.get()]
            while not self.waiting.empty() and sum(len(one.documents) for _, one, _ in entries if one) < MOST_TOGETHER:
                entries.append(self.waiting.get())
            for run, request, _ in entries:
                if request is None:
                    run()
            asked = [(request, future) for _, request, future in entries if request and future]
            if asked:
                self._score(asked)

    def _score(self, asked: list[tuple[ServingRequest, Future[ScoredTexts]]]) -> None:
        try:
            found = self.scorer.margins_of(
                [ScoringRequest(one.query, one.documents, one.instruction) for one, _ in asked]
            )
        except BaseException as error:
            for _, future in asked:
                future.set_exception(error)
            return
        for (_, future), margins in zip(asked, found, strict=True):
            future.set_result(ScoredTexts([self.scorer.score(margin) for margin in margins], margins))
