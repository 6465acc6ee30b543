"""The way to a panel through the engine: nine scripted candidates judge one sample over HTTP, then `panel` chooses."""

import pytest

from annotation.models.self_checks import SelfCheck
from annotation.quality.panels import self_checks
from jobs import background
from judges.probes.known_orders import built_in
from tests.engine_parts import _standing_worker, collection_of, make_judge, worker
from tests.instances import until

__all__ = ["_standing_worker", "worker"]

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PAIRS = 60
NAMES = [*(f"v{n}" for n in range(7)), "coin", "copy"]


def test_a_real_worker_makes_a_self_check_that_a_page_asked_for(worker, model_server):
    collection = collection_of(1)
    firsts = [probe.documents[0][1].document for probe in built_in(answers=True)]
    model_server.script({"good": [*({"contains": text, "verdict": "yes"} for text in firsts), {"verdict": "no"}]})
    self_checks.ask_later(collection, [make_judge(model_server, "good")])
    until(SelfCheck.objects.exists)
    row = SelfCheck.objects.get()
    assert row.passes and row.findings["calls"] == 48 and row.findings["clear"]["right"] == 8
    until(lambda: not background.is_unfinished(self_checks.TASK, collection.pk))
