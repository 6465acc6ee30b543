"""Where a label went and what a model is made of: by rows of exports, never by date."""

import shutil
from hashlib import sha256
from pathlib import Path

import pytest
from django.test import Client

from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.models import Role
from annotation.models.snapshots import Snapshot
from benchmark.models import Qrels, QrelsRow, Report, Run
from corpus.collections.removal import delete_collection
from corpus.models import Collection, ExportedLabels, ExportRecord, Label, Pair
from judges.models import Campaign, Work
from tests.evidence import make_assessor, make_judgment
from tests.factories import client_of, make_member
from tests.judged_books import export, lines, make_books
from tests.training_sets import write_set
from training.jobs import lifecycle
from training.lineage import held_labels, model_sources, steps
from training.models import Job, Model

pytestmark = pytest.mark.django_db


@pytest.fixture
def books() -> Collection:
    return make_books()


@pytest.fixture
def alice(books: Collection) -> Client:
    return client_of(make_member(books, "alice", Role.ADMIN))


def trained(collection: Collection, data: Path, base: str = "tiny:qwen3", **options: object) -> Model:
    """The model of a training on an export, without the training."""
    job = lifecycle.begin_training(
        recipe="prism", data=data, base=base, out=None, option_values={"preset": "tiny"}, collection=collection
    )
    Job.objects.filter(pk=job.pk).update(state="finished", words="tiny model, CPU", options=job.options | options)
    job.refresh_from_db()
    return lifecycle.publish_model(job)


def pair_of(collection: Collection, line: dict[str, str]) -> Pair:
    return Pair.objects.get(
        collection=collection, query__external_id=line["query_id"], document__external_id=line["doc_id"]
    )


def whole_export(collection: Collection, name: str, folder: Path, **options: object) -> Snapshot:
    return write_snapshot(create_snapshot(collection, ExportOptions(format=name, **options), folder))


def used_label(books: Collection, folder: Path) -> tuple[Pair, Model, Run, Qrels]:
    """A label of a training set: with a model of it, a run by the model, and qrels that hold it."""
    export(books, "prism", folder / "set", teacher="labels", split=0.5)
    model = trained(books, folder / "set")
    pair = pair_of(books, lines(folder / "set" / "train.jsonl")[0])
    Work.objects.create(campaign=Campaign.objects.get(collection=books), pair=pair, state="labelled", label=1)
    run = Run.objects.create(
        collection=books, name="dense", kind="embedding", state="ready", depth=10, recipe={"model": model.folder}
    )
    qrels = Qrels.objects.create(collection=books, number=1, kind="labels")
    columns = {"documents": [pair.document_id], "grades": [2], "origins": ["ensemble"]}
    QrelsRow.objects.create(qrels=qrels, query=pair.query, **columns)
    return pair, model, run, qrels


def test_a_label_shows_exactly_the_exports_whose_rows_hold_it(books, tmp_path):
    whole_export(books, "qrels", tmp_path / "all")
    whole_export(books, "csv", tmp_path / "people", origins=["people"])
    export(books, "prism", tmp_path / "set", teacher="labels", split=0.5)
    export(books, "prism", tmp_path / "few", teacher="labels", split=0.5, quota=4)
    whole_export(books, "debates", tmp_path / "debates")
    assert {record.format for record in ExportRecord.objects.all()} == {"qrels", "csv", "prism"}
    splits = set()
    for pair in Pair.objects.filter(collection=books).select_related("query", "document"):
        found = [(one.record.format, one.split, one.grade, one.origin) for one in held_labels.list_label_exports(pair)]
        expected = [("qrels", "", pair.labels.get().grade, "ensemble")]
        for name in ("set", "few"):
            for split in ("train", "dev"):
                rows = lines(tmp_path / name / f"{split}.jsonl")
                key = (pair.query.external_id, pair.document.external_id)
                if key in {(row["query_id"], row["doc_id"]) for row in rows}:
                    splits.add(split)
                    expected.append(("prism", split, pair.labels.get().grade, "ensemble"))
        assert found == expected
    assert splits == {"train", "dev"}


def test_an_export_that_failed_holds_nothing_one_made_again_each_label_once_and_one_of_judgments_its_pairs(
    books, tmp_path
):
    snapshot = whole_export(books, "qrels", tmp_path / "all")
    held = ExportedLabels.objects.count()
    shutil.rmtree(tmp_path / "all")
    write_snapshot(snapshot)
    assert ExportedLabels.objects.count() == held == 10
    raw = (tmp_path / "all" / "manifest.json").read_bytes()
    assert ExportRecord.objects.get().sha256 == sha256(raw).hexdigest()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(Exception, match="not empty"):
        whole_export(books, "qrels", tmp_path / "full")
    assert ExportedLabels.objects.count() == held
    whole_export(books, "judgments", tmp_path / "out")
    pair = Pair.objects.filter(collection=books).order_by("pk")[1]
    held = held_labels.list_label_exports(pair)[-1]
    assert (held.record.format, held.grade, held.has_changed, held.now) == ("judgments", None, False, 0)


def test_models_say_how_many_of_their_labels_changed_since(alice, books, tmp_path):
    export(books, "prism", tmp_path / "set", teacher="labels", split=0.5)
    model = trained(books, tmp_path / "set")
    train, dev = (lines(tmp_path / "set" / f"{split}.jsonl") for split in ("train", "dev"))
    assert model_sources.count_changed([model]) == {}
    changed = [pair_of(books, line) for line in train[:3]]
    Label.objects.filter(pair=changed[0]).update(grade=3)
    Label.objects.filter(pair=changed[1]).update(grade=1, origin="people")
    Label.objects.filter(pair=changed[2]).delete()
    Label.objects.filter(pair=pair_of(books, train[3])).update(origin="people")  # somebody says the same
    Label.objects.filter(pair=pair_of(books, dev[0])).update(grade=1)  # measured on, not learned from
    assert model_sources.count_changed([model]) == {model.pk: 3}
    words = "trained on 3 labels that changed since"
    assert words in alice.get("/c/books/training/").text
    assert words in alice.get(f"/c/books/training/models/{model.pk}/").text
    page = alice.get(f"/c/books/training/models/{model.pk}/lineage/").text
    assert page.count(f"/c/books/pairs/{changed[0].pk}/lineage/") == 1
    assert "ensemble, 3 changed since" in " ".join(page.split()).lower()
    told = alice.get(f"/c/books/pairs/{changed[0].pk}/lineage/").text
    assert words in told and "changed" in told and f"/training/models/{model.pk}/lineage/" in told


def test_a_set_of_what_policies_said_is_not_changed_by_people(books, tmp_path):
    policy = make_assessor(books, "ensemble", "policy")
    pairs = list(Pair.objects.filter(collection=books).order_by("pk"))
    for pair in pairs:
        make_judgment(pair, policy, pair.labels.get().grade)
    people = [pair for pair in pairs[:6] if pair.labels.get().grade == 0]
    Label.objects.filter(pair__in=people).update(grade=2, origin="people")
    export(books, "prism", tmp_path / "set", teacher="labels", split=1.0, labels="machine")
    model = trained(books, tmp_path / "set")
    assert model_sources.count_changed([model]) == {}
    make_judgment(pairs[0], policy, 0, supersedes=pairs[0].judgments.get())
    assert model_sources.count_changed([model]) == {model.pk: 1}


def test_the_lists_lead_from_a_label_to_reports_and_back(alice, books, tmp_path):
    pair, model, run, qrels = used_label(books, tmp_path)
    later = trained(books, tmp_path / "set", base=model.folder)
    campaign = Campaign.objects.get(collection=books)
    hybrid = Run.objects.create(
        collection=books, name="both", kind="hybrid", state="ready", depth=10, recipe={"run": "dense", "run_id": run.pk}
    )
    other = Run.objects.create(collection=books, name="bm25", kind="bm25", state="ready", depth=10)
    imported = Qrels.objects.create(collection=books, number=2, kind="original")
    common = {"collection": books, "after": qrels, "options": {"runs": [hybrid.pk, other.pk]}, "state": "ready"}
    report, _leaderboard = (
        Report.objects.create(before=before, key=key, **common)
        for key, before in (("compares", imported), ("leaderboard", qrels))
    )
    traced = steps.trace_label(pair, frozenset({books.pk}))
    record = ExportRecord.objects.get()
    assert [one.record for one in traced["held"]] == [record]
    assert {kind: [one.name for one in found] for kind, found in traced["steps"].items()} == {
        "Qrels": ["Qrels 1"],
        "Models": [model.name, later.name],
        "Runs": ["dense", "both"],
        "Reports": [f"Report {report.number}"],
    }
    there = alice.get(f"/c/books/pairs/{pair.pk}/lineage/").text
    assert record.sha256[:12] in there and f"/c/books/benchmark/runs/{hybrid.pk}/" in there
    assert steps.trace_label(pair, frozenset())["elsewhere"] == 2
    address = f"/c/books/training/models/{later.pk}/lineage/"
    back = alice.get(address).text
    for name in (f"#campaign-{campaign.number}", f"/training/models/{model.pk}/lineage/", record.sha256):
        assert name in back, name
    assert "dense" not in back and "dense" in alice.get(f"/c/books/training/models/{model.pk}/lineage/").text
    table = alice.get(f"{address}?labels={record.sha256}").text.splitlines()
    assert table[0] == "collection,query_id,doc_id,split,grade,origin,grade_now,origin_now"
    ids = f"{pair.query.external_id},{pair.document.external_id}"
    assert f"books,{ids},train,2,ensemble,2,ensemble" in table
    assert alice.get(f"{address}?labels=999").status_code == 404
    assert alice.get(f"/c/books/pairs/{pair.pk}/").text.count(f"/c/books/pairs/{pair.pk}/lineage/") == 1


def test_models_and_their_cards_outlive_a_collection_that_they_were_drawn_from(alice, books, tmp_path):
    films = make_books("films")
    export(books, "prism", tmp_path / "set", teacher="labels", split=0.5, collections=("films",))
    model = trained(books, tmp_path / "set")
    folder = Path(model.folder)
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("dataset sha256: kept")
    (folder / "reranker.json").write_text("{}")
    Label.objects.filter(pair__collection=films).update(grade=1)
    changed = model_sources.count_changed([model])[model.pk]
    address = f"/c/books/training/models/{model.pk}/"
    assert alice.get(f"{address}lineage/").text.count("films") and changed
    other = Pair.objects.filter(collection=films).first()
    assert alice.get(f"/c/books/pairs/{other.pk}/lineage/").status_code == 404
    delete_collection(films)
    assert model_sources.count_changed([model]) == {}
    page = alice.get(f"{address}lineage/").text
    assert "deleted since: films" in " ".join(page.split())
    assert alice.get(address).status_code == 200
    assert b"".join(alice.get(f"{address}card").streaming_content) == b"dataset sha256: kept"  # type: ignore[attr-defined]


def test_a_model_of_a_set_from_elsewhere_says_that_its_labels_are_not_known(alice, books, tmp_path):
    model = trained(books, write_set(tmp_path / "set"))
    page = " ".join(alice.get(f"/c/books/training/models/{model.pk}/lineage/").text.split())
    assert "set are not known" in page
    old = Model.objects.get()
    Job.objects.filter(pk=old.job_id).update(options={"data": "/gone", "recipe": "prism", "base": "b", "out": "/o"})
    assert alice.get(f"/c/books/training/models/{model.pk}/lineage/").status_code == 200
