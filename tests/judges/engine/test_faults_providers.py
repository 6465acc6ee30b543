"""A provider that misbehaves for a while, met by the whole engine: nothing lost, doubled, stuck or paid twice.

What each SDK makes of the same faults stands in tests/judges/providers/test_providers.py.
"""

from collections import Counter

import pytest
from django.db import connection

from judges.models import Attempt, JudgeVersion
from tests.engine_parts import judge, scene, sums_up
from tests.fault_rig import CALLS, COUNTS, left, note
from tests.modelserver.fixtures import LocalModels
from tests.stages import first_slow

pytestmark = pytest.mark.slow

PAIRS, TIMES = 12, 6


# What the engine makes of one faulty answer. Again: the same call is sent once more, since nothing usable came.
# Repaired: another call asks for the right form; the answer was paid for and is kept. Refused: the provider declines
# the call, that vote is missing, and the others decide.
FAULTS = {"drop": "again", "garbage": "repaired", "redirect": "refused", "schema": "repaired", "empty": "repaired"}
FAULTS |= dict.fromkeys(["hang", "drip", "half", "error-body", "not-json", "no-body", "huge", "503"], "again")
FAULTS |= {"other-model": ""}


@pytest.mark.parametrize("fault", first_slow(FAULTS, 3))
def test_a_provider_that_misbehaves_costs_its_own_calls_and_nothing_else(models: LocalModels, fault: str) -> None:
    again, refused = FAULTS[fault] == "again", FAULTS[fault] == "refused"
    more = TIMES * (FAULTS[fault] in ("again", "repaired"))
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
    assert len(requests) == PAIRS * CALLS + more
    assert repeated == TIMES * again
    with connection.cursor() as cursor:
        cursor.execute(COUNTS, {"name": "books"})
        (counts,) = cursor.fetchone()
    outcome = left(counts, PAIRS * CALLS, paid_twice=repeated - TIMES * again, repeated=repeated)
    note(f"provider {fault}", outcome)
    assert outcome.holds, outcome
    missing = Attempt.objects.filter(judge__name="v3", counts=True, outcome="refused")
    assert missing.count() == TIMES * refused
    faulty = Attempt.objects.filter(judge__name="v3", counts=False)
    assert faulty.count() == more
    assert all(attempt.error for attempt in faulty)
    kept = Attempt.objects.filter(judge__name="v3", counts=True, outcome="labelled").count()
    assert kept == PAIRS - TIMES * refused, "and none of them became a verdict"
