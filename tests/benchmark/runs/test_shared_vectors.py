"""Vectors that one machine paid for or computed are those of all machines of the instance (docs/adr/0032)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from benchmark.models import Run
from benchmark.runs import rankings
from benchmark.runs import shared_vectors as sharing
from benchmark.runs.sparse import SparseStore
from benchmark.runs.vectors import Store, text_digest
from corpus.models import Collection
from judges.records import Judge
from store.models import StoredFile
from tests.engine_parts import make_judge
from tests.factories import make_collection, make_document, make_query
from tests.machines import turn_to
from tests.rankings import start_run, work_on

__all__ = ["turn_to"]

pytestmark = pytest.mark.django_db(transaction=True)

EMBEDDER = Judge(name="e", provider="embed-endpoint", model="e", id=0)


def digests(texts: Sequence[str]) -> list[bytes]:
    return [text_digest(text) for text in texts]


def open_vectors(var: Path) -> Store:
    return Store(var / "vectors", EMBEDDER)


def add(store: Store, *texts: str) -> None:
    store.add(digests(texts), np.array([[len(text), 1.0] for text in texts], dtype=np.float32))


def test_machines_give_each_other_what_they_added(turn_to, monkeypatch):
    monkeypatch.setattr(sharing, "TOGETHER", 2)
    on_a = open_vectors(turn_to("a"))
    add(on_a, "wing", "plate", "lift")
    sharing.share_vectors(on_a)
    on_b = open_vectors(turn_to("b"))
    add(on_b, "plate", "heat")
    sharing.share_vectors(on_b)
    assert set(on_b.positions) == set(digests(["wing", "plate", "lift", "heat"]))
    sharing.share_vectors(open_vectors(turn_to("a")))
    on_a = open_vectors(turn_to("a"))
    for text in ("wing", "plate", "lift", "heat"):
        assert np.allclose(*(one.rows(one.find(digests([text]))) for one in (on_a, on_b))), text
    names = [name.rpartition("/")[2].partition("-")[2] for name in StoredFile.objects.values_list("name", flat=True)]
    assert sorted(names) == ["0-2.npz", "0-2.npz", "2-3.npz"], "what came from another machine is not sent again"
    sharing.share_vectors(open_vectors(turn_to("b")))
    assert StoredFile.objects.count() == 3
    assert not list(turn_to("a").rglob("*.npz")) and not list(turn_to("b").rglob("*.npz")), "kept once on each disk"


def test_what_another_process_adds_while_parts_are_taken_over_is_shared_all_the_same(turn_to, monkeypatch):
    on_a = open_vectors(turn_to("a"))
    add(on_a, "wing")
    sharing.share_vectors(on_a)
    var = turn_to("b")
    on_b, beside = open_vectors(var), open_vectors(var)
    unpack = Store.unpack

    def unpack_after_another(self: Store, *given: Any) -> None:
        add(beside, "heat")
        unpack(self, *given)

    monkeypatch.setattr(Store, "unpack", unpack_after_another)
    sharing.share_vectors(on_b)
    monkeypatch.undo()
    sharing.share_vectors(on_b)
    on_a = open_vectors(turn_to("a"))
    sharing.share_vectors(on_a)
    assert set(on_a.positions) == set(digests(["wing", "heat"]))


def test_weights_of_terms_are_shared_alike(turn_to):
    rows = csr_array(np.array([[0, 0.5, 0], [0, 0, 0], [0.25, 0, 2]], dtype=np.float32))
    texts = digests(["a", "b", "c"])
    on_a = SparseStore(turn_to("a") / "vectors", EMBEDDER)
    on_a.add(texts, rows)
    sharing.share_vectors(on_a)
    on_b = SparseStore(turn_to("b") / "vectors", EMBEDDER)
    on_b.add(texts[2:], rows[[2]])
    sharing.share_vectors(on_b)
    assert (on_b.rows(on_b.find(texts)).toarray() == rows.toarray()).all()


def test_a_store_that_is_away_costs_no_vector_and_they_are_published_later(turn_to, tmp_path, caplog):
    on_a = open_vectors(turn_to("a"))
    add(on_a, "wing")
    (tmp_path / "store").write_text("a file where the folder should be")
    sharing.publish_vectors(on_a)
    assert "published later" in caplog.text and not StoredFile.objects.exists()
    (tmp_path / "store").unlink()
    sharing.publish_vectors(on_a)
    assert StoredFile.objects.count() == 1 and not list(tmp_path.rglob("*.npz"))


def test_without_a_store_nothing_is_written_or_asked(settings, tmp_path):
    settings.STORE, settings.VAR = "", tmp_path
    store = open_vectors(tmp_path)
    add(store, "wing")
    sharing.share_vectors(store)
    files = {path.name for path in store.folder.iterdir()}
    assert files == {"hashes", "lock", "model.json", "size.json", "vectors"}


def make_dense_run(collection: Collection) -> Run:
    return work_on(start_run(collection, "dense", judge="vectors", depth=2))


def test_a_dense_run_on_another_machine_asks_for_nothing_that_was_paid(instance, turn_to, model_server):
    turn_to("a")
    make_judge(model_server, "vectors", provider="embed-endpoint")
    both = [make_collection(name) for name in ("birds", "owls")]
    for collection in both:
        make_document(collection, "An owl hunts at night.", external_id="d1")
        make_document(collection, "A lark sings by day.", external_id="d2")
        make_query(collection, "who hunts", external_id="q1")
    first = make_dense_run(both[0])
    assert (first.state, first.error, len(model_server.requests())) == ("ready", "", 2)
    turn_to("b")
    second = make_dense_run(both[1])
    assert (second.state, second.error, len(model_server.requests())) == ("ready", "", 2)
    assert rankings.as_run(second) == rankings.as_run(first)
