"""The command `synthesize`: what it writes, refuses, and takes up again after a kill."""

import json
import os
import signal
import subprocess
import time
from hashlib import sha256

import pytest

from benchmark.models import Synthesis, SyntheticBundle
from benchmark.synthesis.lifecycle import SYNTHESES
from config import demo
from config.env import ROOT
from corpus.models import Query
from jobs.processes import spawn_child
from judges.models.retrieval import RetrievalCall
from judges.workers import worker_pool
from tests.called import call
from tests.engine_parts import FAST, _standing_worker, make_judge, worker
from tests.factories import make_collection, make_document, make_query
from tests.instances import until
from tests.repeated import repeated_beyond_flight
from tests.synthesis_script import numbered_script
from training.recipes.bundles import read_rtriever_set

__all__ = ["_standing_worker", "worker"]
pytestmark = pytest.mark.django_db(transaction=True)


def slabs(count=3):
    collection = make_collection("steel")
    for number in range(1, count + 1):
        make_document(collection, f"Slab {number} cracks when its skin cools. It is held by core {number}.")
        make_query(collection, f"why does slab number {number:02d} crack in the mill", external_id=f"q{number:02d}")
    return collection


def test_what_cannot_be_made_is_refused_in_a_line_and_nothing_is_left(tmp_path):
    slabs()
    full = tmp_path / "full"
    full.mkdir()
    (full / "a").write_text("x")
    few = tmp_path / "few.txt"
    few.write_text("A cook\nA pilot\n")
    new = ("--out", tmp_path / "new")
    for args, problem in (
        (("--seeds", "queries", "--judge", "offline-rewriter"), "Name an output folder"),
        (("--seeds", "queries", "--judge", "offline-rewriter", "--out", full), "is not empty: name a new folder"),
        (("--seeds", "queries", "--judge", "offline-rewriter", "--writer", "x", *new), "'x' is not a judge"),
        (("--seeds", "queries", "--judge", "offline-rewriter", "--personas", few, *new), "2 different personas"),
    ):
        said = call("synthesize", "steel", *args, "--json")
        assert (said.code, said.out) == (2, "") and problem in said.err, said.err
    assert not Synthesis.objects.exists() and not (tmp_path / "new").exists()


def test_the_folder_is_a_training_set_that_says_it_is_synthetic(worker, tmp_path):
    collection = slabs(6)
    out = tmp_path / "set"
    options = ("steel", "--seeds", "queries", "--judge", "offline-rewriter", "--dev", "0.4")
    said = call("synthesize", *options, "--out", out, "--import", "--json")
    assert (said.code, said.json["state"], said.json["bundles"]) == (0, "ready", 6), said.err
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["format"], manifest["synthetic"], manifest["counts"]["synthetic_queries"]) == ("rtriever", True, 6)
    for one in manifest["files"]:
        assert sha256((out / one["name"]).read_bytes()).hexdigest() == one["sha256"]
    rows = [json.loads(line) for name in ("train", "dev") for line in (out / f"{name}.jsonl").read_text().splitlines()]
    assert len(rows) == 6 and all(row["synthetic"] is True for row in rows)
    assert "Nobody judged them" in (out / "README.md").read_text()

    found = read_rtriever_set(out)
    assert len(found.train) + len({pair.query_id for pair in found.dev}) == 6
    assert all(one.synthetic and one.positives and one.negatives for one in found.train)
    # Each step takes one positive and one negative of the bundle.
    drawn = found.train[0].draw(0, 0)
    assert drawn[0] < len(found.train[0].positives) and drawn[1] < len(found.train[0].negatives)

    assert said.json["imported"]["queries"] == 6
    assert Query.objects.filter(collection=collection, metadata__contains={"synthetic": True}).count() == 6
    # Again: nothing is asked, the same bytes are written.
    calls = RetrievalCall.objects.count()
    other = call("synthesize", *options, "--out", tmp_path / "again", "--json")
    assert other.json["synthesis"] == said.json["synthesis"] and RetrievalCall.objects.count() == calls
    for path in out.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    # The worker's own copy stands where trainings choose from, and is the same.
    folder = Synthesis.objects.select_related("collection").get().folder
    assert (folder / "manifest.json").read_bytes() == (out / "manifest.json").read_bytes()


@pytest.mark.slow
def test_a_killed_worker_pays_for_nothing_twice_and_every_bundle_comes(model_server, manage, instance, tmp_path):
    steel = slabs(24)
    make_judge(model_server, "writer")
    script = [one for number in range(1, 25) for one in numbered_script(number, 2 if number % 3 else 0)]
    model_server.script(writer=[one | {"latency": 0.4} for one in script])
    command = worker_pool.worker_command(1, "killed")
    own = spawn_child(command, {**instance, **FAST}, cwd=ROOT, stderr=subprocess.DEVNULL)
    SYNTHESES.start_or_join(steel, {"source": "queries", "judge": "writer"})
    until(lambda: len(model_server.requests()) >= 70)
    killed = time.time()
    os.killpg(own.pid, signal.SIGKILL)
    own.wait()
    time.sleep(0.6)
    dead = time.time()
    assert not SyntheticBundle.objects.filter(bundle__isnull=False).exists()
    given = ("--seeds", "queries", "--judge", "writer", "--out", tmp_path / "set", "--yes", "--json")
    done = manage("synthesize", "steel", *given, environment=FAST)
    assert (done.json["state"], done.json["bundles"], done.json["dropped"]) == ("ready", 24, 0)
    repeated, flying = repeated_beyond_flight(model_server.requests(), killed, dead)
    assert repeated == 0 and flying
    # Every question was answered once, whoever asked.
    calls = RetrievalCall.objects.filter(outcome="labelled", cached=False)
    assert calls.count() == 16 * 8 + 8 * 6 == calls.values("cache_key").distinct().count()


def test_the_demo_starts_a_few_once_and_offline():
    collection = slabs(7)
    demo.start_synthesis(collection)
    demo.start_synthesis(collection)
    made = Synthesis.objects.get()
    assert (made.total, made.options["judge"]) == (5, "offline-rewriter")
