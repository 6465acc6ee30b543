"""One question of an agent and one synthetic query by a model that thinks: each step is a row, whatever it says."""

import pytest

from benchmark.models import SyntheticBundle
from tests.called import call
from tests.engine_parts import _standing_worker, worker
from tests.models.judging import check_rows, configure, make_pairs

__all__ = ["_standing_worker", "worker"]

pytestmark = pytest.mark.django_db(transaction=True)
SHORT = {"max_output_tokens": 192}


def test_an_agent_answers_one_question(llama_server, worker):
    make_pairs()
    configure(llama_server, {"agent": SHORT})
    done = call("agents", "books", "--retrievers", "bm25", "--agents", "agent", "--sample", 1, "--wait", "--json")
    assert (done.code, done.json["state"]) == (0, "ready"), done.err
    rows = check_rows(llama_server)
    assert rows and {row.role for row, _answer in rows} <= {"search", "answer"}
    assert len({row.query for row, _answer in rows}) == 1


def test_a_query_is_synthesised_or_it_is_said_at_which_step_it_was_dropped(llama_server, worker, tmp_path):
    make_pairs()
    configure(llama_server, {"judge": SHORT})
    models = ("--judge", "judge", "--writer", "judge")
    done = call("synthesize", "books", *models, "--limit", 1, "--out", tmp_path / "set", "--json")
    assert (done.code, done.json["state"], done.json["seeds"]) == (0, "ready", 1), done.err
    rows = check_rows(llama_server)
    assert done.json["calls"] == len(rows) >= 1
    dropped = done.json["counts"]["dropped"]
    assert done.json["bundles"] + sum(dropped.values()) == 1 == SyntheticBundle.objects.count()
    for reason in dropped:
        step, _, outcome = reason.partition(": ")
        row = rows[-1][0]
        assert (row.role, row.outcome) == (step, outcome) and row.error
