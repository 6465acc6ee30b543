"""Batching before a model: one thread scores the rows of all requests in common passes, and answers each as it ends."""

import threading
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from training.serving.scorer import Scorer

if TYPE_CHECKING:
    from training.trainers.tokens import EncodedRow

# Passes of one step: enough for documents of a query to share their beginning, and a small request waits for few.
PASSES = 2


@dataclass(eq=False)
class PendingRequest:
    """The rows of one request, scored ones first; `future` gets all margins, or is cancelled."""

    rows: "list[EncodedRow]"
    future: Future[list[float]] = field(default_factory=Future)
    margins: list[float] = field(default_factory=list)

    @property
    def left(self) -> int:
        """The tokens that are not scored yet."""
        return sum(len(row.ids) for row in self.rows[len(self.margins) :])


class Batcher:
    """The queue before a model, for any thread."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self.waiting: list[PendingRequest] = []
        self.changed = threading.Condition()
        threading.Thread(target=self._work, name="scorer", daemon=True).start()

    def submit(self, rows: "list[EncodedRow]") -> Future[list[float]]:
        """Return the margins of a request's rows, later. Whoever gives up cancels: then no further row is scored."""
        one = PendingRequest(rows)
        with self.changed:
            self.waiting.append(one)
            self.changed.notify()
        return one.future

    def _work(self) -> None:
        while True:
            with self.changed:
                # Cancelled ones leave the queue before any of their rows is scored.
                self.waiting = [one for one in self.waiting if not one.future.done()]
                if not self.waiting:
                    self.changed.wait()
                    continue
                chosen = share_step(self.waiting, self.scorer.budget * PASSES)
            self._score(chosen)

    def _score(self, chosen: list[tuple[PendingRequest, int]]) -> None:
        """Score so many further rows of each; one that fails does so alone."""
        rows = [row for one, count in chosen for row in one.rows[len(one.margins) :][:count]]
        try:
            margins = iter(self.scorer.score_rows(rows))
        except BaseException as error:
            # One by one, so that a request with a bad row takes no other down with it.
            if len(chosen) == 1:
                _answer(chosen[0][0].future, error)
            else:
                for part in chosen:
                    self._score([part])
            return
        for one, count in chosen:
            one.margins += [next(margins) for _ in range(count)]
            if len(one.margins) == len(one.rows):
                _answer(one.future, one.margins)


def share_step(waiting: list[PendingRequest], budget: int) -> list[tuple[PendingRequest, int]]:
    """Return how many further rows of each request are scored next: all get the same share of the tokens.

    What small requests leave of theirs goes to the larger ones. Each gets one row at least while there is room.
    """
    chosen = []
    by_size = sorted(waiting, key=lambda one: one.left)
    for place, one in enumerate(by_size):
        share, used, count = budget / (len(by_size) - place), 0, 0
        for row in one.rows[len(one.margins) :]:
            if used and used + len(row.ids) > share:
                break
            used, count = used + len(row.ids), count + 1
        chosen.append((one, count))
        budget -= used
        if budget <= 0:
            break
    return chosen


def _answer(future: Future[list[float]], found: list[float] | BaseException) -> None:
    try:
        if isinstance(found, BaseException):
            future.set_exception(found)
        else:
            future.set_result(found)
    except InvalidStateError:
        pass  # Cancelled while its last rows were scored.
