"""Batching of requests to a model: one thread scores the rows of all waiting requests in shared passes."""

import threading
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from training.published.scorer import Scorer

if TYPE_CHECKING:
    from training.published.tokens import EncodedRow

# Forward passes of one step: few enough that small requests do not wait long, and enough that the documents of a
# query can share the computation of their common beginning.
PASSES = 2


@dataclass(eq=False)
class PendingRequest:
    """A request's rows and the margins of those scored so far, the first ones; `future` gets all of them."""

    rows: "list[EncodedRow]"
    future: Future[list[float]] = field(default_factory=Future)
    margins: list[float] = field(default_factory=list)

    @property
    def remaining_rows(self) -> "list[EncodedRow]":
        """The rows that are not scored yet."""
        return self.rows[len(self.margins) :]

    @property
    def remaining_tokens(self) -> int:
        return sum(len(row.ids) for row in self.remaining_rows)


class Batcher:
    """The queue of a model's requests, which any thread may submit."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self.waiting: list[PendingRequest] = []
        self.changed = threading.Condition()
        threading.Thread(target=self._work, name="scorer", daemon=True).start()

    def submit(self, rows: "list[EncodedRow]") -> Future[list[float]]:
        """Return a future of the margins of a request's rows. If it is cancelled, no further row is scored."""
        request = PendingRequest(rows)
        with self.changed:
            self.waiting.append(request)
            self.changed.notify()
        return request.future

    def _work(self) -> None:
        while True:
            with self.changed:
                # Requests that are answered or cancelled leave the queue.
                self.waiting = [request for request in self.waiting if not request.future.done()]
                if not self.waiting:
                    self.changed.wait()
                    continue
                step = share_step(self.waiting, self.scorer.budget * PASSES)
            self._score(step)

    def _score(self, step: list[tuple[PendingRequest, int]]) -> None:
        """Score the next rows of each request, as many as the step says; a request with an error fails alone."""
        rows = [row for request, count in step for row in request.remaining_rows[:count]]
        try:
            margins = iter(self.scorer.score_rows(rows))
        except BaseException as error:
            # Repeated for each request, so that one with a bad row does not fail the others.
            if len(step) == 1:
                _answer(step[0][0].future, error)
            else:
                for part in step:
                    self._score([part])
            return
        for request, count in step:
            request.margins += [next(margins) for _ in range(count)]
            if len(request.margins) == len(request.rows):
                _answer(request.future, request.margins)


def share_step(requests: list[PendingRequest], budget: int) -> list[tuple[PendingRequest, int]]:
    """Return how many rows of each request are scored next, within a budget of tokens.

    All requests get the same share; tokens that small requests do not use go to larger ones. Each request gets at
    least one row, until the budget is used up.
    """
    step = []
    by_size = sorted(requests, key=lambda request: request.remaining_tokens)
    for position, request in enumerate(by_size):
        share, used, count = budget / (len(by_size) - position), 0, 0
        for row in request.remaining_rows:
            if used and used + len(row.ids) > share:
                break
            used, count = used + len(row.ids), count + 1
        step.append((request, count))
        budget -= used
        if budget <= 0:
            break
    return step


def _answer(future: Future[list[float]], result: list[float] | BaseException) -> None:
    try:
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
    except InvalidStateError:
        pass  # The request was cancelled while its last rows were being scored.
