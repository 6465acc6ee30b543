"""Every campaign ends: a pair whose tries failed while the account answered others fails, whatever its circuit says."""

import pytest

from judges.models import Attempt, Campaign, JudgeVersion, Work
from tests.engine_parts import judge, scene, sums_up
from tests.modelserver.fixtures import LocalModels
from tests.stages import first_slow

DEAD = 5


@pytest.mark.parametrize("fault", first_slow(["500", "hang", "drop", "not-json", "garbage", "half"], 2))
def test_five_dead_documents_of_thirty_fail_and_the_campaign_ends(models: LocalModels, fault: str) -> None:
    scene(models, 30)
    JudgeVersion.objects.update(parameters={"timeout_s": 0.5})
    dead = [{"contains": f"mapping number {6 * n} ", "fault": fault} for n in range(DEAD)]
    models.script({"*": [*dead, {"verdict": "yes", "latency": 0.02}]})
    done = judge("--policy", "single")
    assert (done.code, done.json["state"]) == (3, "finished"), done.err
    assert (done.json["labelled"], done.json["failed"]) == (25, DEAD) and sums_up(done.json)
    assert Attempt.objects.exclude(outcome="labelled").count() <= 3 * 4 * DEAD, "nothing is paid for without end"
    assert all(work.error for work in Work.objects.filter(state="failed"))
    models.script({"*": {"verdict": "yes"}})
    again = judge("--policy", "single", "--retry-failed", check=True)
    assert (again.json["labelled"], again.json["failed"]) == (30, 0), "and they are tried anew when asked for"


@pytest.mark.slow
def test_documents_that_are_dead_and_the_last_ones_fail_too(models: LocalModels) -> None:
    """Nothing else is left that could show whether the account answers."""
    scene(models, 12, max_concurrency=2)
    dead = [{"contains": f"mapping number {11 - n} ", "fault": "500"} for n in range(DEAD)]
    models.script({"*": [*dead, {"verdict": "yes"}]})
    done = judge("--policy", "single")
    assert (done.code, done.json["state"]) == (3, "finished"), done.err
    assert (done.json["labelled"], done.json["failed"]) == (7, DEAD)
    assert Campaign.objects.get().paused_because == ""
