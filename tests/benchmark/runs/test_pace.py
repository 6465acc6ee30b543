"""An embedder of one's own is asked for as much at once as it is seen to do."""

from benchmark.runs.dense import TOGETHER, Pace
from benchmark.runs.vector_search import AHEAD
from judges.providers.base import LATE
from judges.records import Judge, Turn
from judges.retrieval.model_requests import RetrievalReply


def pace_of(base_url: str, **parameters: object) -> Pace:
    return Pace(Judge("e", "embed-endpoint", "m", base_url=base_url, parameters=dict(parameters), id=1))


def test_a_hosted_embedder_gets_all_at_once() -> None:
    pace = pace_of("https://api.example.com")
    pace.measure(AHEAD, 100.0)
    assert (pace.together, pace.ahead) == (TOGETHER, AHEAD)


def test_a_server_of_ones_own_gets_one_call_and_then_what_it_does_in_seconds() -> None:
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


def test_calls_get_smaller_where_each_document_takes_long() -> None:
    pace = pace_of("http://127.0.0.1:9000", timeout_s=60)
    late = RetrievalReply([None], error=f"e: 127.0.0.1: {LATE} 60 s; set timeout_s = 300")
    assert pace.shrink_after_timeout(late) and pace.together == pace.ahead == TOGETHER // 4
    pace.measure(8, 40.0)
    assert pace.together == 3
    assert not pace.shrink_after_timeout(RetrievalReply([None], error="e: 500 broken"))
    assert not pace.shrink_after_timeout(RetrievalReply([(Turn(1, ""),), None], error=late.error))
