"""The way of a search team by commands alone: an engine's address, a query log, a run, judging, a release gate."""

import csv
import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmark.models import Gate, Run
from config.env import ROOT
from corpus.models import Collection, Document, Label, Query
from jobs.processes import spawn_child, stop_children
from jobs.workers import live_workers
from judges.workers import worker_pool
from tests.called import call
from tests.engine_parts import FAST, make_panel
from tests.instances import until
from tests.modelserver.fixtures import LocalModels
from tests.shop_search import ShopSearch, product, shop_search

pytestmark = [pytest.mark.weekly, pytest.mark.django_db(transaction=True)]
LINES, SAMPLE, DEPTH = 10_000, 200, 20
WANTED = "This is the very thing that was looked for."


def write_log(path: Path) -> list[str]:
    """A log of 10,000 lines, whose first queries are asked most; return its queries."""
    queries = [f"thing number {number}" for number in range(LINES)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("query", "count"))
        writer.writerows((query, 1 + LINES // (number + 1)) for number, query in enumerate(queries))
    return queries


def stock(engine: ShopSearch, queries: list[str], rank: int) -> None:
    """Have the engine find twenty products for each query, the wanted one at this rank (from 1)."""
    for number, query in enumerate(queries):
        hits = [product(DEPTH * number + place) for place in range(DEPTH - 1)]
        hits.insert(rank - 1, product(DEPTH * number + DEPTH - 1, f"{WANTED} It has the number {number}."))
        engine.answers[query] = [hit | {"score": DEPTH - place} for place, hit in enumerate(hits)]


def write_endpoints(path: Path, **engines: ShopSearch) -> None:
    """Write a search endpoint file."""
    tables = []
    for name, engine in engines.items():
        values = {"name": name, **engine.settings}
        tables.append("\n".join(["[[endpoint]]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]))
    path.write_text("\n\n".join(tables))


def start_worker(environment: dict[str, str]) -> "subprocess.Popen[str]":
    """A worker that may ask these engines and has the keys of the judges."""
    command = worker_pool.worker_command(2, "shop")
    return spawn_child(command, environment, cwd=ROOT, stderr=subprocess.DEVNULL)


def test_from_an_engines_address_to_a_gate(
    instance: dict[str, str],
    model_server: LocalModels,
    tmp_path: Path,
    settings: Any,
    request: pytest.FixtureRequest,
) -> None:
    def run(*arguments: object, code: int = 0) -> Any:
        done = call(*arguments, "--json")
        assert done.code == code, (arguments, done.err)
        return done.json

    make_panel(model_server)
    model_server.script({"*": [{"contains": WANTED, "verdict": "yes"}, {"verdict": "no"}]})
    queries = write_log(tmp_path / "log.csv")
    with shop_search() as engine, shop_search() as candidate:
        stock(engine, queries, rank=1)
        stock(candidate, queries, rank=DEPTH)
        settings.SEARCH_HOSTS = frozenset(f"127.0.0.1:{each.port}" for each in (engine, candidate))
        hosts = {"QUORUM_SEARCH_HOSTS": ",".join(settings.SEARCH_HOSTS)}
        request.addfinalizer(partial(stop_children, [start_worker({**instance, **FAST, **hosts})]))
        until(lambda: bool(live_workers()))
        write_endpoints(tmp_path / "shop.toml", shop=engine, candidate=candidate)
        run("search_endpoints", "add", tmp_path / "shop.toml")
        tested = run("search_endpoints", "test", "shop", "--query", queries[0])
        assert tested["hits"][0]["text"].startswith(WANTED)
        drawn = run("import_queries", "shop", tmp_path / "log.csv", "--sample", SAMPLE, "--by", "pptss", "--seed", 0)
        assert (drawn["lines"], drawn["sampled"], Query.objects.count()) == (LINES, SAMPLE, SAMPLE)
        for name, endpoint in (("today", "shop"), ("tomorrow", "candidate")):
            run("retrieve", "shop", "--system", "search", "--endpoint", endpoint, "--depth", DEPTH, "--name", name,
                "--wait", "--yes")  # fmt: skip
    assert {run_row.done for run_row in Run.objects.all()} == {SAMPLE}
    assert Document.objects.count() == SAMPLE * DEPTH
    # Nothing is judged yet, so the gate cannot tell, and says how many pairs would.
    gate = ("gate", "shop", "--run", "tomorrow", "--against", "today", "--measures", "nDCG@10", "--max-drop", 0.01)
    undecided = run(*gate, code=3)
    assert undecided["verdict"] == "cannot_tell" and undecided["deciding_pairs"] > 0
    run("holes", "shop", "--runs", "today", "tomorrow", "--depth", 10, "--policy", "ensemble", "--fill", "--wait",
        "--yes")  # fmt: skip
    assert Label.objects.filter(grade=1).count() == SAMPLE
    system = {row["name"]: row for row in run("report", "shop")["result"]["systems"]}
    assert system["today"]["values"]["ndcg"]["after"] == pytest.approx(1)
    failed = run(*gate, "--junit", tmp_path / "gate.xml", code=4)
    assert failed["verdict"] == "fail" and failed["measures"]["nDCG@10"]["high"] < -0.01
    passed = run("gate", "shop", "--run", "today", "--against", "tomorrow", "--measures", "nDCG@10")
    assert passed["verdict"] == "pass" and Gate.objects.count() == 3
    run("export", "shop", "--format", "srw", "--out", tmp_path / "srw")
    body = json.loads((tmp_path / "srw" / "judgments.json").read_text())
    assert len(body["judgmentRatings"]) == SAMPLE
    assert Collection.objects.get().name == "shop"
