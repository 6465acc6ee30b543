"""Twelve pairs debated by a model that thinks, with an adjudicator."""

import json

import pytest

from judges.models import Attempt, Work
from tests.engine_parts import _standing_worker, judge, worker
from tests.models.judging import check_pairs, check_rows, configure, make_pairs, text_of

__all__ = ["_standing_worker", "worker"]

pytestmark = pytest.mark.django_db(transaction=True)
SHORT = {"max_output_tokens": 128}


def test_a_debate_marks_quotes_that_are_not_in_the_document(llama_server, worker):
    make_pairs()
    configure(llama_server, {name: SHORT for name in "abc"}, debate=["a", "b"], adjudicator="c")
    check_pairs(judge("--policy", "debate", "--rounds", 1, "--adjudicator", "panel").json)
    is_quoted: list[bool] = []
    for row, answer in check_rows(llama_server):
        if row.role == "adjudicate" or row.outcome != "labelled":
            continue
        document = row.pair.document.text
        assert [quote["text"] for quote in row.quotes] == json.loads(text_of(answer))["reference"]
        for quote in row.quotes:
            is_quoted.append(quote["start"] is not None)
            if is_quoted[-1]:
                assert document[quote["start"] : quote["end"]].split() == quote["text"].split()
            else:
                assert not quote["text"].strip() or quote["text"] not in document
    assert set(is_quoted) == {True, False}, "this model copies sentences, and invents some"
    for work in Work.objects.all():
        turns = Attempt.objects.filter(pair=work.pair, role__in=("for", "against"), counts=True)
        verdicts = {turn.verdict for turn in turns}
        assert (len(verdicts) == 1 and None not in verdicts) == (work.agreed_in_round == 1)
