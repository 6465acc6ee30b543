"""The commands `synthesize`, `rewrite_queries` and `write_queries`: what they write, refuse, and take up again."""

import json
import os
import signal
import subprocess
import time
from hashlib import sha256
from unittest.mock import Mock

import pytest

from annotation.data.statistics import statistics_of
from annotation.models import Role
from benchmark.models import Synthesis, SyntheticBundle
from benchmark.qrels import versions
from benchmark.synthesis import queries
from benchmark.synthesis.lifecycle import SYNTHESES
from config import demo
from config.env import ROOT
from corpus.errors import BadInput
from corpus.models import Document, Label, Pair, Query
from corpus.search.bm25 import index_for
from jobs import leases
from jobs.processes import spawn_child
from judges.domain.verdicts import STRICT, Unparsed
from judges.models import Campaign
from judges.models.retrieval import RetrievalCall
from judges.prompts.answers.formats import parse_answer
from judges.workers import worker_pool
from tests.called import call
from tests.engine_parts import FAST, _standing_worker, make_judge, worker
from tests.factories import client_of, make_collection, make_document, make_member, make_query
from tests.instances import until
from tests.judged_books import export, lines, make_books
from tests.reading import page_text
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


OFFLINE = ("--judge", "offline-rewriter", "--json")


def forms(collection):
    """The keyword forms by the ids of their queries."""
    found = Query.objects.filter(collection=collection, is_current=True, metadata__has_key="rewritten_from")
    return {one.metadata["rewritten_from"]: one for one in found}


@pytest.fixture
def books(settings, tmp_path):
    settings.VAR, settings.RETRY_SECONDS = tmp_path / "var", 0.01
    books = make_books(queries=20)
    for one in Query.objects.filter(collection=books):
        number = one.external_id[1:]
        one.text = f"What is word{number}x0x1, and what are word{number}x1x2 and word{number}x2x3?"
        one.save()
    return books


def training_set(collection, folder, *, train, dev=()):
    """A folder as `export` writes it."""
    folder.mkdir()
    for name, ids in (("train", train), ("dev", dev)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({"query_id": one}) + "\n" for one in ids))
    return folder


@pytest.mark.parametrize(
    ("role", "text", "problem"),
    [
        ("keywords", {"keywords": []}, "keywords"),
        ("keywords", {"keywords": ["?"]}, "has no word"),
        ("keywords", {"keywords": ["Slab", "slab"]}, "the same"),
        ("keywords", {"keywords": ["why do thick slabs crack so often"]}, "more than 5 words"),
        ("ask", {"query": " "}, "empty"),
        ("ask", {"query": "word " * 81}, "more than 80 words"),
    ],
)
def test_formats_take_keywords_and_queries_alone(role, text, problem):
    with pytest.raises(Unparsed, match=problem):
        parse_answer(role, json.dumps(text), STRICT, {})


def test_a_seeded_share_of_the_training_queries_is_chosen_and_none_of_dev(books, tmp_path):
    train, dev = [f"q{n}" for n in range(17)], [f"q{n}" for n in range(16, 20)]  # q16 stands in both: it is of dev
    folder = training_set(books, tmp_path / "set", train=train, dev=dev)
    Query.objects.filter(collection=books, external_id="q0").update(metadata={"synthetic": True})

    def choose(seed=0, share=0.3):
        return {one.id for one in queries.choose_training_queries(books, folder, share=share, seed=seed)}

    assert len(choose()) == round(0.3 * 15) and choose() == choose() != choose(seed=1)
    assert choose(share=1) == {f"q{n}" for n in range(1, 16)}
    (folder / "test.jsonl").write_text('{"query_id": "q1"}\n')  # nor any of a test split
    assert choose(share=1) == {f"q{n}" for n in range(2, 16)}
    (folder / "test.jsonl").unlink()
    with pytest.raises(BadInput, match="share"):
        choose(share=0.01)


def test_keyword_forms_are_queries_of_their_own_and_dev_stays_as_it_was(books, worker, tmp_path):
    export(books, "rtriever", tmp_path / "before", split=0.7)
    before = {
        name: {row["query_id"] for row in lines(tmp_path / "before" / f"{name}.jsonl")} for name in ("train", "dev")
    }
    kept = set(Pair.objects.values_list("query__external_id", "document__external_id"))
    said = call("rewrite_queries", "books", "--data", tmp_path / "before", "--pairs", "3", *OFFLINE)
    assert said.code == 0 and said.json["written"] == round(0.3 * len(before["train"])), said.err
    made = forms(books)
    assert len(made) == said.json["written"] and made.keys() <= before["train"]
    for original, form in made.items():
        one = Query.objects.get(collection=books, external_id=original)
        assert one.is_current and one.text != form.text and one.metadata == {}
        found = Pair.objects.filter(query=form)
        assert 1 <= found.count() <= 3 and found.filter(is_candidate=True).count() == found.count()
        assert not Label.objects.filter(pair__query=form).exists() and not found.exclude(teacher_score=None).exists()
    mine = {one.external_id for one in made.values()}
    pairs = set(
        Pair.objects.exclude(query__external_id__in=mine).values_list("query__external_id", "document__external_id")
    )
    assert pairs == kept
    counted = statistics_of(books)
    assert (counted["queries_keywords"], counted["queries_synthetic"]) == (len(made), 0)

    # Judged, they are trained on; dev and qrels are what they were.
    Label.objects.bulk_create(
        Label(pair=pair, grade=2 if place % 3 == 0 else 0, origin="ensemble")
        for form in made.values()
        for place, pair in enumerate(Pair.objects.filter(query=form).order_by("pk"))
    )
    export(books, "rtriever", tmp_path / "after", split=0.7)
    assert lines(tmp_path / "after" / "dev.jsonl") == lines(tmp_path / "before" / "dev.jsonl")
    rows = {row["query_id"]: row for row in lines(tmp_path / "after" / "train.jsonl")}
    assert mine & rows.keys() and all(rows[one]["synthetic"] for one in mine & rows.keys())
    rated = set(versions.labels_version(books).rows.values_list("query__external_id", flat=True))
    assert not rated & mine

    # Again: nothing is asked, nothing is new, also with the export that holds the forms.
    calls, count = RetrievalCall.objects.count(), Query.objects.count()
    for folder in ("before", "after"):
        again = call("rewrite_queries", "books", "--data", tmp_path / folder, "--pairs", "3", *OFFLINE)
        assert (again.code, again.json["synthesis"]) == (0, said.json["synthesis"]), again.err
    # Nor where more of them are drawn: a query keeps the form that it has.
    every = call("rewrite_queries", "books", "--data", tmp_path / "before", "--share", "1", "--pairs", "3", *OFFLINE)
    told = every.json["written"], every.json["there_before"], every.json["failed"]
    assert told == (len(before["train"]) - len(made), len(made), {}), every.err
    assert RetrievalCall.objects.count() - calls == Query.objects.count() - count == told[0]


def test_a_keyword_form_has_the_need_of_its_query_in_other_words(books):
    """The same answers and definition of relevance, and it excludes the same documents."""
    one = Query.objects.get(collection=books, external_id="q1")
    found = [Document.objects.get(pk=key).external_id for key, _ in index_for(books).search(one.text, 3)]
    Query.objects.filter(pk=one.pk).update(
        metadata={"excluded_ids": found[:2]}, answers=["1903", "in Kitty Hawk"], instruction="Only flights by people."
    )
    made = Synthesis.objects.create(collection=books, kind="keywords", key="k", options={"pairs": 1})
    bundle = {"query_id": "k1", "query": one.text, "rewritten_from": "q1", "models": {"judge": {"name": "w"}}}
    queries.import_synthetic(made, [SyntheticBundle(bundle=bundle)])
    form = forms(books)["q1"]
    assert form.metadata["excluded_ids"] == sorted(found[:2])
    assert (form.answers, form.instruction) == (["1903", "in Kitty Hawk"], "Only flights by people.")
    source = Query.objects.get(pk=one.pk)
    assert books.relevance.of(form).statement == books.relevance.of(source).statement
    names = set(Pair.objects.filter(query=form).values_list("document__external_id", flat=True))
    assert names == set(found[2:])


@pytest.mark.slow
def test_when_calls_run_out_what_is_whole_is_there_and_the_same_command_goes_on(books, worker, model_server, tmp_path):
    make_judge(model_server, "writer")
    model_server.script(writer=[{"text": json.dumps({"keywords": ["thing", "number"]})}])
    folder = training_set(books, tmp_path / "set", train=[f"q{n}" for n in range(20)])
    given = ("rewrite_queries", "books", "--data", folder, "--judge", "writer", "--yes", "--json")
    assert call(*given, "--estimate").code == 0 and not Campaign.objects.filter(policy="retrieval").exists()
    short = call(*given, "--max-calls", "4")
    assert (short.code, short.json["written"], short.json["waiting"]) == (3, 4, 2) and len(forms(books)) == 4, short.err
    assert "topped by" in short.err
    rest = call(*given)
    assert (rest.code, rest.json["written"], rest.json["waiting"]) == (0, 6, 0), rest.err
    assert rest.json["synthesis"] == short.json["synthesis"] and len(model_server.requests()) == 6 == len(forms(books))


def test_queries_are_written_from_documents_and_marked(books, worker):
    said = call("write_queries", "books", "--limit", "5", "--pairs", "2", *OFFLINE)
    assert (said.code, said.json["written"]) == (0, 5), said.err
    made = Query.objects.filter(collection=books, metadata__has_key="asked_of", metadata__synthetic=True)
    assert made.count() == 5 == statistics_of(books)["queries_synthetic"]
    for one in made:
        pairs = Pair.objects.filter(query=one)
        assert one.metadata["asked_of"] in pairs.values_list("document__external_id", flat=True)
        assert not Label.objects.filter(pair__in=pairs).exists()
    page = page_text(client_of(make_member(books, "alice", Role.ADMIN)), "/c/books/statistics/")
    assert "<dt>Synthetic queries</dt><dd>5</dd>" in page and "<dt>Keyword queries</dt><dd>0</dd>" in page


def test_what_cannot_be_written_is_refused_in_a_line(books, tmp_path):
    folder = training_set(books, tmp_path / "set", train=["q1", "q2"])
    bare = training_set(books, tmp_path / "bare", train=[])
    (bare / "train.jsonl").write_text('{"query": "a"}\n')
    for args, problem in (
        ((tmp_path / "none",), "no such file"),
        ((bare,), 'it has no "query_id"'),
        ((folder, "--share", "0.1"), "too few for this share"),
    ):
        said = call("rewrite_queries", "books", "--data", *args, *OFFLINE)
        assert (said.code, said.out) == (2, "") and problem in said.err, said.err
    assert not Synthesis.objects.exists()


def test_queries_that_a_killed_worker_stored_and_did_not_import_are_imported_by_the_next(books, monkeypatch):
    made = SYNTHESES.start_or_join(books, {"kind": "ask", "judge": "offline-rewriter", "limit": 3})
    held = leases.claim(Synthesis)
    with monkeypatch.context() as patched:
        patched.setattr(queries, "import_rows", Mock(side_effect=SystemExit))
        with pytest.raises(SystemExit):
            SYNTHESES.perform(held)
    assert SyntheticBundle.objects.filter(bundle__isnull=False).count() == 3
    assert not Query.objects.filter(collection=books, metadata__has_key="asked_of").exists()
    Synthesis.objects.update(state="waiting")
    calls = RetrievalCall.objects.count()
    SYNTHESES.perform(leases.claim(Synthesis))
    made.refresh_from_db()
    assert made.state == "ready" and RetrievalCall.objects.count() == calls
    assert Query.objects.filter(collection=books, metadata__has_key="asked_of").count() == 3
