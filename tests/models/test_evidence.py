"""Evidence of twelve pairs that a model writes: each text is an answer's, or it is said why there is none."""

import json

import pytest

from corpus.models import Label, Pair, Target
from judges.models import Work
from tests.engine_parts import _standing_worker, worker
from tests.judges.evidence.test_evidence_campaigns import write
from tests.models.judging import PAIRS, check_rows, configure, make_pairs, text_of

__all__ = ["_standing_worker", "worker"]

pytestmark = pytest.mark.django_db(transaction=True)
SHORT = {"max_output_tokens": 128}


def test_evidence_is_written_of_each_pair_or_it_is_said_why_not(llama_server, worker):
    make_pairs()
    for pair in Pair.objects.all():
        Label.objects.create(pair=pair, grade=1, origin="people")
    configure(llama_server, {"writer": SHORT})
    status = write("--writer", "writer").json
    rows = check_rows(llama_server)
    assert (status["state"], status["pairs"]) == ("finished", PAIRS) and status["calls"] == len(rows)
    assert {row.pair_id for row, _answer in rows} == set(Pair.objects.values_list("pk", flat=True))
    texts = set()
    for row, answer in rows:
        assert row.role == "write" and row.verdict is None
        if row.outcome == "labelled":
            texts.add((row.pair_id, json.loads(text_of(answer))["evidence"].strip()))
    assert {(target.pair_id, target.evidence.strip()) for target in Target.objects.all()} <= texts
    for work in Work.objects.all():
        has_text = Target.objects.filter(pair=work.pair, good=True).exists()
        assert has_text == (work.state == "labelled") and (has_text or work.reason)
