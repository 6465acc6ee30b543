"""A served instance of its own, a scripted server, and campaigns that are hit by a fault: what is left afterwards.

Everything goes through the product's commands; PostgreSQL is asked directly for the outcome.
Nothing here needs pytest: tests/full_disk.py runs it inside a mount namespace.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg

from embedded.addresses import run_folder
from tests.instances import PATIENCE, Instance, until
from tests.modelserver.fixtures import KEY, KEY_ENV, LocalModels, start
from tests.repeated import repeated_beyond_flight

LEASE_S = 6
DEBATERS, VOTERS = ("yes+a", "yes+b"), tuple(f"yes+v{place}" for place in range(1, 6))
CALLS = len(DEBATERS) + len(VOTERS)
"""Of each pair, when all say yes: one round and five votes."""
ENVIRONMENT = {
    "QUORUM_LEASE_S": str(LEASE_S),
    "QUORUM_RETRY_S": "0.05",
    "QUORUM_DRAIN_S": "5",
    "QUORUM_CALLS_IN_FLIGHT": "12",
    "QUORUM_PAIRS_IN_FLIGHT": "12",
    "QUORUM_LOOPBACK_ONLY": "1",
    "QUORUM_WEB_PROCESSES": "1",
    "QUORUM_LINGER": "60",
    KEY_ENV: KEY,
}

COUNTS = """
WITH c AS (SELECT max(k.id) AS id FROM judges_campaign k JOIN corpus_collection l ON l.id = k.collection_id
           WHERE l.name = %(name)s),
w AS (SELECT * FROM judges_work WHERE campaign_id = (SELECT id FROM c)),
a AS (SELECT * FROM judges_attempt WHERE campaign_id = (SELECT id FROM c)),
j AS (SELECT j.pair_id FROM judgment_head j JOIN w ON w.pair_id = j.pair_id),
t AS (SELECT key, sum(value) AS value FROM judges_tally WHERE campaign_id = (SELECT id FROM c) GROUP BY key)
SELECT json_build_object(
    'state', (SELECT state FROM judges_campaign WHERE id = (SELECT id FROM c)),
    'pairs', (SELECT count(*) FROM w),
    'open', (SELECT count(*) FROM w WHERE state IN ('pending', 'running')),
    'failed', (SELECT count(*) FROM w WHERE state = 'failed'),
    'ended', (SELECT count(*) FROM w WHERE state IN ('labelled', 'escalated')),
    'labelled', (SELECT count(*) FROM w WHERE state = 'labelled'),
    'labels', (SELECT count(*) FROM corpus_label l JOIN w ON w.pair_id = l.pair_id),
    'judgments', (SELECT count(DISTINCT pair_id) FROM j),
    'judgments_doubled', (SELECT count(*) FROM (SELECT FROM j GROUP BY pair_id HAVING count(*) > 1) d),
    'items_doubled', (SELECT count(*) FROM (SELECT FROM corpus_item i JOIN w ON w.pair_id = i.pair_id
        WHERE i.state = 'open' GROUP BY i.pair_id HAVING count(*) > 1) d),
    'counted', (SELECT count(*) FROM a WHERE counts),
    'sent', (SELECT count(*) FROM a WHERE NOT cached),
    'bodies', (SELECT count(*) FROM judges_attemptbody b JOIN a ON a.id = b.attempt_id
               WHERE b.campaign_id = a.campaign_id),
    'attempts', (SELECT count(*) FROM a),
    'reserved', (SELECT COALESCE(sum(calls), 0) FROM judges_reservation WHERE campaign_id = (SELECT id FROM c)),
    'tally_calls', COALESCE((SELECT value FROM t WHERE key = 'calls'), 0),
    'tally_labelled', COALESCE((SELECT sum(value) FROM t WHERE key LIKE 'labelled:%%'), 0))
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is left of a campaign after a fault: all four shall be 0 (issue "Unbreakable", check 2)."""

    lost: int
    """Pairs without their judgment or label, counted answers that are missing, and answers without their body."""
    doubled: int
    """Second judgments or items of a pair, and calls or labels that the counters have more than once."""
    stuck: int
    """Pairs without an outcome once the campaign has ended, or when the time was over."""
    paid_twice: int
    """Calls repeated beyond those in flight, from the server's log."""
    flying: int
    """Calls in flight at the fault."""
    repeated: int
    """Calls that were sent more than once, those in flight included."""
    seconds: float
    """From the fault to the end of the campaign."""

    @property
    def holds(self) -> bool:
        """Nothing lost, doubled, stuck or paid twice."""
        return not (self.lost or self.doubled or self.stuck or self.paid_twice)


class Rig:
    """One instance with `serve` and two judge processes, and its server of models."""

    def __init__(self, instance: Instance, folder: Path, *, latency: float = 0.2, **environment: str) -> None:
        self.instance, self.folder = instance, folder
        instance.environment |= ENVIRONMENT | environment
        self.server, self.models = start(folder / "requests.jsonl", "--latency", str(latency), "--hashes")
        self.site: subprocess.Popen[str] | None = None

    def configure(self, more: str = "") -> None:
        """The panel on the local server; the default one from now on. `more`: further lines of every judge."""
        names = [*DEBATERS, *VOTERS]
        judge = '[[judge]]\nname = "{0}"\nmodel = "{0}"\nprovider = "openai-compatible"\nbase_url = "{1}"\n'
        judge += f'api_key_env = "{KEY_ENV}"\ninput_price = 1.0\noutput_price = 2.0\ntimeout_s = 30\n{{2}}\n'
        panel = f"[panel]\ndebate = {json.dumps(DEBATERS)}\nensemble = {json.dumps(VOTERS)}\n"
        file = self.folder / "judges.toml"
        file.write_text("".join(judge.format(name, self.models.openai, more) for name in names) + panel)
        self.manage("configure_judges", str(file))

    def serve(self, processes: int = 2) -> None:
        """The site with so many judge processes; it restarts what dies."""
        counts = ("--judge-workers", str(processes), "--gpu-workers", "0")
        args = [sys.executable, "manage.py", "serve", "--port", "0", *counts]
        with (self.folder / "serve.log").open("a") as log:
            self.site = subprocess.Popen(
                args, cwd=Path(__file__).parent.parent, env=self.instance.environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
            )  # fmt: skip
        assert self.site.stdout is not None
        assert self.site.stdout.readline(), (self.folder / "serve.log").read_text()

    def manage(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = self.instance.manage(*args)
        assert not check or done.returncode == 0, done.stderr
        return done

    def import_pairs(self, name: str, pairs: int) -> None:
        """A collection of so many pairs, each with its own texts."""
        folder = self.folder / name
        folder.mkdir()
        files = {"corpus": "text", "queries": "text"}
        for file in files:
            rows = [{"_id": f"{file[0]}{n}", "text": f"{name}: what mapping {n} maps, {file}."} for n in range(pairs)]
            (folder / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        rows = [{"query_id": f"q{n}", "doc_id": f"c{n}"} for n in range(pairs)]
        (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        options = [part for file in ("corpus", "queries", "pairs") for part in (f"--{file}", f"{folder}/{file}.jsonl")]
        self.manage("import_collection", name, *options)

    def begin(self, name: str, pairs: int, *options: str, calls: int) -> None:
        """Start a campaign and wait until so many of its calls have ended."""
        self.import_pairs(name, pairs)
        self.offset = self.models.log.stat().st_size
        self.models.offset = self.offset
        self.manage("judge", name, *options)
        until(lambda: len(self.models.requests()) >= calls, f"{calls} calls")

    def ask(self, query: str, **values: Any) -> Any:
        """The first value of the first row; None while PostgreSQL is away."""
        try:
            with psycopg.connect(
                dbname="quorum", user="postgres", host=str(run_folder(self.instance.var)), connect_timeout=5
            ) as connection:
                row = connection.execute(query, values).fetchone()
        except psycopg.OperationalError:
            return None
        return row[0] if row else None

    def counts(self, name: str) -> dict[str, Any] | None:
        """What the tables hold of the collection's newest campaign."""
        found: dict[str, Any] | None = self.ask(COUNTS, name=name)
        return found

    def ended(self, name: str) -> bool:
        found = self.counts(name)
        return found is not None and found["state"] != "running"

    def outcome(
        self, name: str, killed: float, dead: float, *, patience: float = PATIENCE, calls: int | None = None
    ) -> Outcome:
        """Wait for the end and count. `calls`: how many each pair needs, where it is not the panel's number."""
        end = time.monotonic() + patience
        while not self.ended(name) and time.monotonic() < end:
            time.sleep(0.2)
        seconds = round(time.time() - killed, 1)
        found = self.counts(name)
        assert found is not None, "PostgreSQL did not come back"
        requests = self.models.requests()
        paid, flying = repeated_beyond_flight(requests, killed, dead)
        repeated = len(requests) - len({request["sha256"] for request in requests})
        needed = found["pairs"] * (CALLS if calls is None else calls)
        return left(found, needed, paid_twice=paid, flying=flying, repeated=repeated, seconds=seconds)

    def workers(self) -> dict[int, list[int]]:
        """Celery's main processes of the queue `judge`, each with its children."""
        found = {pid: line for pid, line in self.instance.processes().items() if "celery" in line and "worker" in line}
        parents = {pid: _stat(pid)[1] for pid in found}
        mains = [pid for pid, parent in parents.items() if parent not in found]
        return {main: [pid for pid, parent in parents.items() if parent == main] for main in mains}

    def service(self, name: str) -> int:
        """The process id of `postgres`, `redis`, or the keeper."""
        announced = self.instance.announced()
        return int(announced["pid"] if name == "keeper" else announced["pids"][name])

    def close(self) -> None:
        if self.site is not None:
            self.site.terminate()
            self.site.wait(PATIENCE)
            if self.site.stdout:
                self.site.stdout.close()
        self.server.terminate()
        self.server.wait(PATIENCE)
        for pipe in (self.server.stdin, self.server.stdout):
            if pipe:
                pipe.close()


@contextmanager
def rig(instance: Instance, folder: Path, *, processes: int = 2, more: str = "", **options: Any) -> Iterator[Rig]:
    """A rig with its panel that serves, unless `processes` is 0."""
    if "DATABASE_URL" not in instance.environment and not (instance.var / "postgres").exists():
        instance.migrated()
    made = Rig(instance, folder, **options)
    try:
        made.configure(more)
        if processes:
            made.serve(processes)
        yield made
    finally:
        made.close()
        instance.end()


def left(
    found: dict[str, Any], needed: int, *, paid_twice: int, repeated: int, flying: int = 0, seconds: float = 0.0
) -> Outcome:
    """From the tables (COUNTS) and the server's log. `needed`: counted answers of a campaign without fault."""
    lost = found["labelled"] - found["judgments"] + found["labelled"] - found["labels"]
    lost += found["pairs"] - found["open"] - found["failed"] - found["ended"]
    lost += max(0, needed - found["counted"]) + found["attempts"] - found["bodies"]
    doubled = found["judgments_doubled"] + found["items_doubled"] + max(0, found["counted"] - needed)
    doubled += abs(int(found["tally_calls"]) - found["sent"])
    doubled += abs(int(found["tally_labelled"]) - found["labelled"])
    return Outcome(lost, doubled, found["open"] + found["failed"], paid_twice, flying, repeated, seconds)


def note(row: str, outcome: Outcome) -> None:
    """For docs/operators.md: a line of the file that QUORUM_FAULTS_OUT names."""
    if path := os.environ.get("QUORUM_FAULTS_OUT"):
        with Path(path).open("a") as file:
            file.write(json.dumps({"row": row, **asdict(outcome)}) + "\n")


def kill(*pids: int) -> tuple[float, float]:
    """SIGKILL; (just before, when all were gone)."""
    killed = time.time()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    until(lambda: all(_stat(pid)[0] in "ZX" for pid in pids), "the end of the killed processes")
    return killed, time.time()


def stop_for(seconds: float, *pids: int) -> tuple[float, float]:
    """SIGSTOP, and SIGCONT after so long; (when it began, when it was over)."""
    stopped = time.time()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    return stopped, time.time()


def family(pid: int) -> list[int]:
    """The process and all that descend from it, parents first."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        parents.setdefault(_stat(int(path.name))[1], []).append(int(path.name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


def _stat(pid: int) -> tuple[str, int]:
    """State and parent of a process; ("X", 0) of one that is gone."""
    try:
        state, parent, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "X", 0
    return state, int(parent)


__all__ = ["CALLS", "COUNTS", "LocalModels", "Outcome", "Rig", "family", "kill", "left", "note", "rig", "stop_for"]
