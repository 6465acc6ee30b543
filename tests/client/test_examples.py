"""The examples of the client, run as a reader runs them: against a live site with a worker, without the web page."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from annotation.models import Role
from api.tokens import make_token
from config.env import ROOT
from corpus.models import Collection, Label
from jobs.processes import spawn_child, stop_children
from judges.models import Campaign
from judges.panels.offline_panel import ensure_offline
from judges.workers import worker_pool
from tests.engine_parts import FAST
from tests.evidence import make_judgment, make_label
from tests.factories import make_collection, make_member, make_pair, make_user
from tests.instances import PATIENCE

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
EXAMPLES = ROOT / "client" / "examples"
TEXTS = ["A dict maps keys to values.", "A tuple cannot be changed.", "A list can be changed, and holds anything."]
QUERIES = ["What maps keys to values?", "What can be changed?"]


@pytest.fixture
def worker(instance: dict[str, str]) -> Iterator[None]:
    """A real worker, which imports and judges."""
    command = worker_pool.worker_command(1, "client")
    child = spawn_child(command, {**instance, **FAST}, cwd=ROOT, stderr=subprocess.DEVNULL)
    yield
    stop_children([child])


def run_example(name: str, address: str, token: str, folder: Path, *args: str) -> str:
    """Run an example in a folder of its own, and return what it printed."""
    environment = {**os.environ, "QUORUM_URL": address, "QUORUM_TOKEN": token, "PYTHONPATH": str(ROOT / "client")}
    command, options = [sys.executable, str(EXAMPLES / name), *args], {"capture_output": True, "text": True}
    done = subprocess.run(command, cwd=folder, env=environment, timeout=PATIENCE, check=False, **options)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def token_of(user: object, *scopes: str) -> str:
    return make_token(user, None, name="example", scopes=scopes, days=1)[1]  # type: ignore[arg-type]


def test_every_example_is_run_here() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {"import_and_judge.py", "agreement_to_pandas.py", "labels_to_dataset.py"}
    assert all(name in Path(__file__).read_text() for name in names)


@pytest.mark.weekly
def test_import_judge_wait_agreement_and_export_without_the_web_page(live_site, instance, worker, tmp_path):
    ensure_offline()
    files = {
        "documents.csv": "id,text\n" + "".join(f'd{n},"{text}"\n' for n, text in enumerate(TEXTS)),
        "queries.csv": "id,Query Text\n" + "".join(f"q{n},{text}\n" for n, text in enumerate(QUERIES)),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    token = token_of(make_user("olivia", is_owner=True), "read", "manage")
    out = run_example("import_and_judge.py", live_site, token, tmp_path, "books", *files)
    campaign = Campaign.objects.get()
    assert campaign.state == "finished" and Collection.objects.get().name == "books"
    assert "Krippendorff's alpha:" in out and "exported: books/qrels.txt" in out, out
    labels = Label.objects.filter(pair__collection__name="books").count()
    assert labels > 0 and len((tmp_path / "books" / "qrels.txt").read_text().splitlines()) == labels


def test_agreement_becomes_a_data_frame_and_labels_a_dataset(live_site, instance, tmp_path):
    pytest.importorskip("pandas")
    datasets = pytest.importorskip("datasets")
    collection = make_collection("books")
    people = [make_member(collection, name) for name in ("alice", "bob", "charlie")]
    pairs = [make_pair(collection) for _ in range(8)]
    for number, pair in enumerate(pairs):
        for place, member in enumerate(people):
            grade = int(number % 2 == 0) if place < 2 else int(number < 3)
            make_judgment(pair, member.assessor, grade)
    for grade, pair in enumerate(pairs[:2]):
        make_label(pair, grade)
    token = token_of(make_member(collection, "dana", Role.ADMIN).user, "read")
    out = run_example("agreement_to_pandas.py", live_site, token, tmp_path, "books")
    assert "kappa_low" in out and "lowest mean kappa: charlie" in out, out
    run_example("labels_to_dataset.py", live_site, token, tmp_path, "books", "kept")
    rows = datasets.load_from_disk(str(tmp_path / "kept"))
    assert rows.column_names == ["query_id", "document_id", "query", "document", "grade", "origin"]
    assert rows["grade"] == [0, 1] and rows[0]["document"] == pairs[0].document.text
