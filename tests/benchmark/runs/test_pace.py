"""An embedder of one's own is asked for as much at once as it is seen to do, and a folder's tells how far it is."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmark.runs import vector_search
from benchmark.runs.dense import TOGETHER, Pace
from benchmark.runs.vector_search import AHEAD, FIRST, STEP_S, FolderVectors, IndexedVectors
from benchmark.runs.vectors import NearestDocuments, Store, text_digest
from judges.providers.base import LATE
from judges.records import Judge, Turn
from judges.retrieval.model_requests import RetrievalReply
from tests.rankings import make_texts


def pace_of(base_url: str, **parameters: object) -> Pace:
    return Pace(Judge("e", "embed-endpoint", "m", base_url=base_url, parameters=dict(parameters), id=1))


def test_a_server_of_ones_own_gets_one_call_and_then_what_it_does_in_seconds():
    """A document a second: people see how far it is after each call; a fast one is soon asked for all at once."""
    slow, fast = pace_of("http://127.0.0.1:9000"), pace_of("http://127.0.0.1:9000")
    assert slow.ahead == TOGETHER
    slow.measure(TOGETHER, float(TOGETHER))
    assert slow.ahead == slow.together == TOGETHER
    asked = []
    for _ in range(4):
        asked.append(fast.ahead)
        fast.measure(fast.ahead, fast.ahead / 1000)
    assert asked == [32, 128, 512, 1024]


def test_calls_get_smaller_where_each_document_takes_long():
    pace = pace_of("http://127.0.0.1:9000", timeout_s=60)
    late = RetrievalReply([None], error=f"e: 127.0.0.1: {LATE} 60 s; set timeout_s = 300")
    assert pace.shrink_after_timeout(late) and pace.together == pace.ahead == TOGETHER // 4
    pace.measure(8, 40.0)
    assert pace.together == 3
    assert not pace.shrink_after_timeout(RetrievalReply([None], error="e: 500 broken"))
    assert pace.shrink_after_timeout(RetrievalReply([(Turn(1, ""),), None], error=late.error)), "one in time is enough"
    assert pace.together == 1 and not pace.shrink_after_timeout(late)


def test_a_hosted_embedder_gets_all_at_once_and_again_after_a_timeout() -> None:
    pace = pace_of("https://api.example.com")
    pace.measure(AHEAD, 100.0)
    assert (pace.together, pace.ahead) == (TOGETHER, AHEAD)
    assert pace.shrink_after_timeout(RetrievalReply([None], error=f"e: {LATE} 60 s"))
    sizes = []
    for _ in range(4):
        sizes.append((pace.together, pace.ahead))
        pace.measure(pace.ahead, 100.0)
    assert sizes == [(8, 8), (16, 32), (32, 128), (TOGETHER, 512)]


class SlowFolder(FolderVectors[Store], IndexedVectors):
    """A model that takes a second for ten documents, by the clock of the test, and may be killed."""

    def __init__(self, folder: Path, clock: list[float], *, killed_after: int = 1_000_000) -> None:
        super().__init__({}, Store(folder, Judge("slow", "folder", "m", id=0)))
        self.clock, self.killed_after, self.embedded = clock, killed_after, list[str]()

    def add(self, texts: Sequence[str]) -> None:
        if len(self.embedded) + len(texts) > self.killed_after:
            raise KeyboardInterrupt
        self.embedded += texts
        self.clock[0] += len(texts) / 10
        self.store.add([text_digest(text) for text in texts], np.ones((len(texts), 2), dtype=np.float32))

    def rank_texts(self, texts: Sequence[str], depths: Sequence[int]) -> list[NearestDocuments]:
        raise NotImplementedError


@pytest.mark.django_db
def test_a_slow_model_tells_every_few_seconds_how_far_it_is_and_embeds_nothing_twice_after_a_kill(
    settings, tmp_path, monkeypatch
):
    settings.VAR, clock = tmp_path, [0.0]
    monkeypatch.setattr(vector_search, "perf_counter", lambda: clock[0])
    texts: Mapping[str, str] = {f"d{number:03}": f"text {number}" for number in range(300)}
    collection = make_texts("texts", dict(texts), {"q1": "a query"})
    killed, done = SlowFolder(tmp_path, clock, killed_after=200), list[int]()
    with pytest.raises(KeyboardInterrupt):
        killed.embed_documents(collection, lambda n, _total, _phase: done.append(n), lambda: False)
    step = int(STEP_S * 10)
    assert done == [0, FIRST, FIRST + step, FIRST + 2 * step], "once the first 1,024 came before any progress"
    resumed = SlowFolder(tmp_path, clock)
    assert resumed.embed_documents(collection, lambda n, _total, _phase: done.append(n), lambda: False)
    assert sorted(killed.embedded + resumed.embedded) == sorted(texts.values())
    assert done[4:6] == [0, done[3] + FIRST] and done[-1] == 300
