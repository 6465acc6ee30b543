"""`judge`, `campaign` and `status` as commands: two at once, Ctrl-C, control, and an end when nobody can work."""

import json
import signal
import subprocess
import sys
from collections import Counter

import pytest

from config.env import ROOT
from judges.engine import notifications
from judges.models import Campaign
from tests.conftest import Manage
from tests.engine_parts import FAST, collection_of, judge, make_panel, scene, state_of, sums_up
from tests.instances import PATIENCE, until
from tests.modelserver.fixtures import LocalModels


def start(instance: dict[str, str], *args: str) -> "subprocess.Popen[str]":
    """`manage.py <args>` in the background."""
    return subprocess.Popen(
        [sys.executable, "manage.py", *args],
        cwd=ROOT,
        env={**instance, **FAST},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell's background job ignores Ctrl-C, and what it starts inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.slow
def test_judge_twice_at_once_is_one_campaign_and_no_call_doubled(models: LocalModels, instance: dict[str, str]) -> None:
    collection_of(12)
    make_panel(models, debate=("yes+a", "yes+b"), votes=tuple(f"yes+v{place}" for place in range(5)))
    models.script({"*": {"verdict": "yes", "latency": 0.2}})
    both = [start(instance, "judge", "books", "--wait", "--json") for _ in range(2)]
    ended = [one.communicate(timeout=PATIENCE) for one in both]
    assert [one.returncode for one in both] == [0, 0], ended
    statuses = [json.loads(out) for out, _ in ended]
    assert Campaign.objects.count() == 1
    assert all(found["labelled"] == 12 and sums_up(found) for found in statuses)
    sent = Counter(request["sha256"] for request in models.requests())
    assert len(sent) == 12 * 7 and set(sent.values()) == {1}


@pytest.mark.slow
def test_ctrl_c_says_what_goes_on(models: LocalModels, instance: dict[str, str]) -> None:
    scene(models, 12)
    models.script({"*": {"verdict": "yes", "latency": 4.0}})
    waiting = start(instance, "judge", "books", "--wait", "--json")
    until(lambda: len(models.requests()) > 0)
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=PATIENCE)
    assert (waiting.returncode, out) == (130, "")
    assert "interrupted" in err and "`serve`" in err
    assert "Traceback" not in err
    until(lambda: state_of(Campaign.objects.get()) == "finished")


@pytest.mark.slow
def test_a_campaign_is_paused_resumed_cancelled_and_retried(models: LocalModels, manage: Manage) -> None:
    scene(models, 30, votes=("yes", "yes", "v3", "yes", "yes"), max_concurrency=4)
    answers, slowly = ({"verdict": "yes", "latency": seconds} for seconds in (0.05, 3))
    broken = [{"contains": f"mapping number {number} ", "fault": "500"} for number in range(0, 30, 5)]
    models.script({"*": slowly, "v3": [*broken, slowly]})  # so that it still runs when it is paused
    assert manage("judge", "books", "--json").json["state"] == "running"
    until(lambda: len(models.requests()) >= 10)
    assert manage("campaign", "books", "pause", "--json").json["state"] == "paused"
    until(lambda: manage("status", "books", "--json").json["running"] == 0)
    paused = len(models.requests())
    refused = judge()
    assert refused.code == 2 and "paused" in refused.err
    assert len(models.requests()) == paused, "nothing is sent meanwhile"
    models.script({"*": answers, "v3": [*broken, answers]})
    assert manage("campaign", "books", "resume", "--json").json["state"] == "running"
    until(lambda: state_of(Campaign.objects.get()) == "finished")
    failed = manage("status", "books", "--json").json
    assert failed["failed"] == 6 and sums_up(failed)
    models.script({"*": {"verdict": "yes"}})
    assert "6 failed pairs" in manage("campaign", "books", "retry-failed").out
    until(lambda: state_of(Campaign.objects.get()) == "finished")
    assert manage("status", "books", "--json").json["labelled"] == 30
    late = manage("campaign", "books", "cancel", check=False)
    assert late.code == 2 and "finished" in late.err


def test_waiting_ends_when_no_drain_can_work(instance: object) -> None:
    """A campaign whose judges are gone breaks every drain."""
    for number in range(notifications.TRIES):
        assert notifications.repeated_error(7) == ""
        notifications.record_error(7, KeyError(f"judge {number}"))
    assert notifications.repeated_error(7) == f"Unexpected error: 'judge {notifications.TRIES - 1}'"
    notifications.clear_errors(7)
    assert notifications.repeated_error(7) == ""
