"""A provider that misbehaves for a while, met by the whole engine: nothing lost, doubled, stuck or paid twice.

What each SDK makes of the same faults stands in tests/judges/providers/test_providers.py.
"""

from collections import Counter
from dataclasses import dataclass

import pytest
from django.db import connection

from judges.models import Attempt, JudgeVersion
from tests.engine_parts import judge, scene, sums_up
from tests.fault_rig import CALLS, COUNTS, left, note
from tests.modelserver.fixtures import LocalModels
from tests.stages import first_slow

pytestmark = pytest.mark.slow

PAIRS, TIMES = 12, 6


@dataclass(frozen=True)
class Expected:
    """What the engine makes of one faulty answer."""

    again: bool
    """The same call is sent once more: nothing usable came."""
    repaired: bool = False
    """Another call asks for the right form: the answer was paid for and is kept."""
    refused: bool = False
    """The provider declines the call: that vote is missing, and the others decide."""


FAULTS = {
    "drop": Expected(again=True),
    "garbage": Expected(again=False, repaired=True),
    "redirect": Expected(again=False, refused=True),
    "hang": Expected(again=True),
    "drip": Expected(again=True),
    "half": Expected(again=True),
    "error-body": Expected(again=True),
    "not-json": Expected(again=True),
    "no-body": Expected(again=True),
    "huge": Expected(again=True),
    "503": Expected(again=True),
    "schema": Expected(again=False, repaired=True),
    "empty": Expected(again=False, repaired=True),
    "other-model": Expected(again=False),
}


@pytest.mark.parametrize("fault", first_slow(FAULTS, 3))
def test_a_provider_that_misbehaves_costs_its_own_calls_and_nothing_else(models: LocalModels, fault: str) -> None:
    expected = FAULTS[fault]
    scene(models, PAIRS, debate=("a", "b"), votes=("v1", "v2", "v3", "v4", "v5"))
    JudgeVersion.objects.update(parameters={"timeout_s": 1.0})
    once = [{"contains": f"mapping number {n} ", "fault": fault, "times": 1, "verdict": "yes"} for n in range(TIMES)]
    models.script({"v3": [*once, {"verdict": "yes"}], "*": {"verdict": "yes"}})
    done = judge()
    assert done.code == 0, done.err
    assert done.json["labelled"] == PAIRS and sums_up(done.json)
    requests = models.requests()
    sent = Counter(request["sha256"] for request in requests)
    repeated = sum(times - 1 for times in sent.values())
    assert len(requests) == PAIRS * CALLS + TIMES * (expected.again or expected.repaired)
    assert repeated == TIMES * expected.again
    with connection.cursor() as cursor:
        cursor.execute(COUNTS, {"name": "books"})
        (counts,) = cursor.fetchone()
    outcome = left(counts, PAIRS * CALLS, paid_twice=repeated - TIMES * expected.again, repeated=repeated)
    note(f"provider {fault}", outcome)
    assert outcome.holds, outcome
    missing = Attempt.objects.filter(judge__name="v3", counts=True, outcome="refused")
    assert missing.count() == TIMES * expected.refused
    faulty = Attempt.objects.filter(judge__name="v3", counts=False)
    assert faulty.count() == TIMES * (expected.again or expected.repaired)
    assert all(attempt.error for attempt in faulty)
    kept = Attempt.objects.filter(judge__name="v3", counts=True, outcome="labelled").count()
    assert kept == PAIRS - TIMES * expected.refused, "and none of them became a verdict"
