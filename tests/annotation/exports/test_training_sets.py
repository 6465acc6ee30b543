"""Training sets: what enters, how it is split, and that every format loads in the library that reads it."""

import json
import re
from datetime import UTC, datetime
from unittest.mock import Mock

import pytest

from annotation.data.statistics import statistics_of
from annotation.exports.sets.building import WITHOUT_EVIDENCE
from benchmark.models import Run
from benchmark.qrels import versions
from benchmark.runs import rankings
from corpus.errors import BadInput
from corpus.models import Collection, Document, ExportRecord, Label, Pair, Query, Target
from judges.models import JudgeVersion
from tests.called import call
from tests.evidence import make_assessor, make_campaign, make_judgment, make_label, make_votes
from tests.factories import make_collection, make_document, make_item, make_pair, make_query
from tests.judged_books import export, lines, make_books

pytestmark = pytest.mark.django_db


def test_prism_has_the_fields_of_the_released_data_and_where_each_row_comes_from(books, tmp_path):
    manifest = export(books, "prism", tmp_path / "out", teacher="votes")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["dev.jsonl", "manifest.json", "train.jsonl"]
    train, dev = (lines(tmp_path / "out" / f"{split}.jsonl") for split in ("train", "dev"))
    assert (len(train), len(dev)) == (27, 3)
    assert train[0] == {
        "query": "What is thing 0 number0?",
        "document": "Title 0\n" + " ".join(f"word0x0x{w}" for w in range(20)),
        "loss_type": "point-wise", "revised_score": 0.8, "annotated_label": "yes", "contribution_evidence": "",
        **{f"judge-{n}_annotated_label": "yes" if n < 5 else "no" for n in range(1, 6)},
        "annotated_score": 0.8, "query_id": "q0", "doc_id": "d0-0", "instruction": "Holds the answer.",
        "source": "books", "origin": "ensemble", "assumed": False, "synthetic": False,
        "labelled_at": None,  # A label without a judgment.
    }  # fmt: skip
    second = [train[1][key] for key in ("annotated_label", "revised_score", "loss_type")]
    assert second == ["no", 0.2, "point-wise;sft"]
    assert manifest["options"]["teacher"] == "votes"
    assert manifest["counts"]["splits"]["dev"] == {"rows": 3, "pairs": 3, "queries": 1, "relevant": 1}
    assert [file["name"] for file in manifest["files"]] == ["train.jsonl", "dev.jsonl"]


def run_file(path, ranked):
    """A TREC run: documents of each query from the first rank on."""
    rows = [
        f"{q} Q0 {d} {rank} {100 - rank} system\n" for q, found in ranked.items() for rank, d in enumerate(found, 1)
    ]
    path.write_text("".join(rows))
    return str(path)


def test_hard_negatives_come_from_the_ranks_of_a_file_or_a_stored_run_and_are_marked_as_assumed(
    books, tmp_path, settings
):
    settings.VAR = tmp_path
    ids = ["d0-0", "d1-0", "d2-1", "d0-2", "d3-0"]
    file = run_file(tmp_path / "bm25.run", {"q0": ids, "q1": ["d4-1"], "q99": ["x"]})
    manifest = export(books, "prism", tmp_path / "out", teacher="labels", run=file, ranks="2-4", split=1)
    rows = [row for row in lines(tmp_path / "out" / "train.jsonl") if row["query_id"] == "q0"]
    assert [(row["doc_id"], row["assumed"], row["annotated_label"]) for row in rows] == [
        ("d0-0", False, "yes"), ("d0-1", False, "no"), ("d0-2", False, "no"),
        ("d1-0", True, "no"), ("d2-1", True, "no"),
    ]  # fmt: skip
    assert rows[3]["origin"] == "assumed" and {row["revised_score"] for row in rows} == {0.0, 1.0}
    assert manifest["counts"]["assumed"] == 2
    assert manifest["options"]["run"]["name"] == "bm25.run"
    assert len(manifest["options"]["run"]["sha256"]) == 64

    run = Run.objects.create(collection=books, name="bm25", kind="imported", state="ready")
    keys = dict(Document.objects.filter(collection=books, external_id__in=ids).values_list("external_id", "pk"))
    query = Query.objects.get(collection=books, external_id="q0")
    rankings.store(run, {query.pk: rankings.RankedQuery([keys[name] for name in ids], [9.0, 8.0, 7.0, 6.0, 5.0])})
    options = ("--teacher", "labels", "--split", "1", "--ranks", "2-4", "--format", "prism")
    assert call("export", "books", *options, "--run", "bm25", "--out", tmp_path / "named").code == 0
    assert (tmp_path / "named/train.jsonl").read_bytes() == (tmp_path / "out/train.jsonl").read_bytes()
    refused = call("export", "books", *options, "--run", "bm26", "--out", tmp_path / "no")
    assert refused.code == 2 and refused.err.startswith("--run: ") and "bm26" in refused.err


def test_what_a_panel_or_a_reranker_scores_high_is_a_hole_and_no_negative(books, tmp_path):
    query = books.query_set.get(external_id="q0")
    judges = list(JudgeVersion.objects.filter(name__startswith="judge-").order_by("id"))
    voted, scored, waiting, quiet = (
        make_pair(books, query, books.document_set.get(external_id=name)) for name in ("d1-0", "d1-1", "d1-2", "d2-0")
    )
    make_votes(make_campaign(books, judges), voted, judges, [1, 1, 1, 0, 0])
    Pair.objects.filter(pk=scored.pk).update(teacher_score=0.7)
    Pair.objects.filter(pk=quiet.pk).update(teacher_score=0.1)
    make_item(waiting)
    run = run_file(tmp_path / "a.run", {"q0": ["d1-0", "d1-1", "d1-2", "d2-0"]})
    options = {"teacher": "labels", "run": run, "ranks": "1-10", "split": 1}
    manifest = export(books, "prism", tmp_path / "out", **options)
    assert manifest["counts"]["assumed"] == 1
    assert manifest["counts"]["left_out"] == {"in the run, but scored high or waiting for people (likely hole)": 3}
    assert export(books, "prism", tmp_path / "all", keep_holes=True, **options)["counts"]["assumed"] == 4


def test_the_label_that_wins_is_chosen(books, tmp_path):
    pair = Pair.objects.get(query__external_id="q0", document__external_id="d0-0")
    policy = make_assessor(books, "ensemble", "policy")
    make_judgment(pair, policy, 2, step="final")
    Label.objects.filter(pair=pair).update(grade=0, origin="people")
    for labels, found in (("resolved", {"no"}), ("people", {"no"}), ("machine", {"yes"})):
        manifest = export(
            books, "prism", tmp_path / labels, teacher="labels", labels=labels, split=1, allow_incomplete=True
        )
        others = {} if labels == "resolved" else {"no label from the selected sources": 29}
        assert manifest["counts"]["left_out"] == others
        rows = lines(tmp_path / labels / "train.jsonl")
        assert {row["annotated_label"] for row in rows if row["doc_id"] == "d0-0"} == found
        assert len(rows) == (30 if labels == "resolved" else 1)
    strict = {"teacher": "labels", "relevant_from": 3, "split": 1}
    export(books, "prism", tmp_path / "strict", allow_incomplete=True, **strict)
    assert {row["annotated_label"] for row in lines(tmp_path / "strict" / "train.jsonl")} == {"no"}


def test_pairs_with_fewer_votes_than_the_panel_has_have_no_score_of_votes(books, tmp_path):
    judges = list(JudgeVersion.objects.filter(name__startswith="judge-").order_by("id"))
    query = books.query_set.get(external_id="q0")
    pair = make_pair(books, query, make_document(books, "Quite another text.", external_id="extra"))
    make_label(pair, 1)
    make_votes(make_campaign(books, judges), pair, judges[:4], [1, 1, 1, 1])
    left_out = export(books, "prism", tmp_path / "votes", teacher="votes")["counts"]["left_out"]
    assert list(left_out.values()) == [1] and "fewer votes" in str(left_out)
    export(books, "prism", tmp_path / "labels", teacher="labels", split=1)
    row = next(row for row in lines(tmp_path / "labels" / "train.jsonl") if row["doc_id"] == "extra")
    values = (row["annotated_score"], row["judge-4_annotated_label"], row["judge-5_annotated_label"])
    assert values == (None, "yes", None)


def test_the_released_preset_trains_point_wise_where_score_and_label_agree(books, tmp_path):
    Pair.objects.filter(collection=books).update(teacher_score=0.6)
    manifest = export(
        books, "prism", tmp_path / "out", teacher="scores", preset="released", split=1, allow_incomplete=True
    )
    rows = lines(tmp_path / "out" / "train.jsonl")
    assert {row["revised_score"] for row in rows} == {0.6**1.609}
    assert manifest["losses"] == {"point-wise;sft": 20}  # 0.44: agrees with "no"; "yes" has neither loss


def test_a_set_is_drawn_from_several_collections_with_a_quota(books, tmp_path):
    make_books("films", queries=4)
    manifest = export(
        books, "prism", tmp_path / "out", teacher="votes", collections=("films",), uniform=True, near_duplicates=0
    )
    assert manifest["counts"]["queries"] == 8
    rows = [row for split in ("train", "dev") for row in lines(tmp_path / "out" / f"{split}.jsonl")]
    assert {row["source"] for row in rows} == {"books", "films"}
    assert all(row["query_id"].startswith(f"{row['source']}:q") for row in rows)
    films = Collection.objects.get(name="films")
    assert ExportRecord.is_exported(films.pk, films.created_at) and not ExportRecord.is_exported(
        make_collection("songs").pk, films.created_at
    )


def test_the_same_texts_in_two_collections_and_near_copies_of_a_query_stay_on_one_side(books, tmp_path):
    def sides(folder, key, cut, **options):
        export(books, "prism", tmp_path / folder, **options)
        return [{row[key][cut:] for row in lines(tmp_path / folder / f"{name}.jsonl")} for name in ("train", "dev")]

    make_books("copies")
    train, dev = sides("out", "query", 0, teacher="votes", collections=("copies",), split=0.7)
    assert train and dev and not train & dev
    for n in range(10):
        twin = make_query(books, f"what IS thing {n} number{n}", external_id=f"z{n}")
        pair = make_pair(books, twin, make_document(books, " ".join(f"twin{n}x{w}" for w in range(20))))
        make_label(pair, 1)
    train, dev = sides("twins", "query_id", 1, teacher="labels", split=0.6)
    assert train and dev and not train & dev


def test_a_relevant_pair_with_contribution_and_evidence_carries_both_losses(books, tmp_path):
    pair = Pair.objects.get(query__external_id="q0", document__external_id="d0-0")
    for version, (text, good) in enumerate((("old", True), ("new", True), ("bad", False)), 1):
        values = {"contribution": f"{text} contribution", "evidence": f"{text} evidence", "good": good}
        Target.objects.create(pair=pair, version=version, kind="judge", writer="judge-1", **values)
    manifest = export(books, "prism", tmp_path / "out", teacher="votes", split=1)
    rows = {row["doc_id"]: row for row in lines(tmp_path / "out" / "train.jsonl")}
    written = "<contribution>new contribution</contribution>\n<evidence>new evidence</evidence>"
    assert (rows["d0-0"]["contribution_evidence"], rows["d0-0"]["loss_type"]) == (written, "point-wise;sft")
    assert (rows["d1-0"]["contribution_evidence"], rows["d1-0"]["loss_type"]) == ("", "point-wise")
    assert manifest["losses"] == {"point-wise": 9, "point-wise;sft": 21}
    assert manifest["relevant_without_target"] == 9
    trl = export(books, "trl", tmp_path / "trl", split=1)
    assert trl["counts"]["left_out"] == {WITHOUT_EVIDENCE: 9}
    assert (trl["counts"]["rows"], trl["counts"]["splits"]["train"]["relevant"]) == (21, 1)
    completions = [row["completion"] for row in lines(tmp_path / "trl" / "train.jsonl")]
    assert completions.count("no") == 20 and [one for one in completions if one != "no"] == [f"yes\n{written}"]
    Pair.objects.filter(collection=books).update(teacher_score=0.6)
    released = export(books, "prism", tmp_path / "released", teacher="scores", preset="released", split=1)
    assert released["losses"] == {"point-wise;sft": 20, "sft": 1}


@pytest.mark.parametrize(("shape", "negatives"), [("n-tuple", 2), ("triplet", 1), ("triplet", None), ("list", None)])
def test_a_shape_counts_the_rows_it_writes_and_the_pairs_it_leaves_out(books, tmp_path, shape, negatives):
    Label.objects.filter(pair__query__external_id="q3", grade__gt=0).delete()  # two documents, none of them relevant
    manifest = export(books, "sentence-transformers", tmp_path / "out", shape=shape, negatives=negatives)
    counts = manifest["counts"]
    more = {"more negatives than requested": 9 if negatives == 1 else 0}
    lacks = 0 if negatives else 2  # a limit on negatives leaves none for a query without a relevant document
    more["more negatives than requested"] += 2 - lacks
    lacking = {"its query has too few relevant or other documents for a row of this shape": lacks}
    assert counts["left_out"] == {reason: n for reason, n in (more | lacking).items() if n}
    written = {split: len(lines(tmp_path / "out" / f"{split}.jsonl")) for split in counts["splits"]}
    assert {split: n["rows"] for split, n in counts["splits"].items()} == written
    assert counts["rows"] == sum(written.values()) == sum(file["rows"] for file in manifest["files"])
    assert sum(counts["left_out"].values()) + counts["pairs"] == 29
    assert counts["queries"] == 9 and min(written.values()) > 0


def refusal(books, folder, name, **options):
    """The reason for which no set is made, and the options that it names; nothing is left."""
    with pytest.raises(BadInput) as refused:
        export(books, name, folder, **options)
    assert not folder.exists()
    return str(refused.value), [option for option, _text in getattr(refused.value, "problems", [])]


def test_what_makes_no_set_is_refused_with_its_option_or_what_was_left_out(books, tmp_path, monkeypatch):
    elsewhere = run_file(tmp_path / "a.run", {"q0": ["nowhere"]})
    unbalanced = {"teacher": "votes", "balance": True, "balance_entropy": "prism"}
    for name, words, named, options in (
        ("prism", "30 of 30 pairs", ["teacher"], {}),
        ("beir", "first: nowhere", ["run"], {"run": elsewhere, "ranks": "1-10"}),
        ("prism", "only 2 cells", ["balance_entropy"], unbalanced),
        ("prism", "poems", ["collections"], {"teacher": "votes", "collections": ("poems",)}),
        ("sentence-transformers", "30 pairs left out: .*too few", [], {"shape": "n-tuple", "negatives": 5}),
        ("tevatron", "30 pairs left out: .*too few", [], {"relevant_from": 3}),
        ("trl", r"All 18 pairs of train would be not relevant \(10 pairs left out: relevant without contribution and "
                r"evidence\).*let a judge write them \(write_evidence\)", ["allow_incomplete"], {}),
    ):  # fmt: skip
        text, problems = refusal(books, tmp_path / "out", name, **options)
        assert re.search(words, text) and problems == named, (name, text)
    asked = export(books, "trl", tmp_path / "asked", allow_incomplete=True)
    assert asked["counts"]["left_out"] == {WITHOUT_EVIDENCE: 10}
    Pair.objects.filter(collection=books).update(teacher_score=7.5)
    text, problems = refusal(books, tmp_path / "out", "prism", teacher="scores")
    assert "score 7.5" in text and problems == ["teacher"], "off the scale"
    Document.objects.filter(collection=books).update(text="The same text everywhere.", title="")
    assert "nearly equals" in refusal(books, tmp_path / "out", "prism", teacher="votes")[0]
    export(books, "prism", tmp_path / "off", teacher="votes", near_duplicates=0)
    monkeypatch.setattr("annotation.exports.sets.benchmarks.read_corpus", Mock(side_effect=OSError("No space")))
    (tmp_path / "full").mkdir()
    with pytest.raises(OSError, match="No space"):
        export(books, "beir", tmp_path / "full")
    assert list((tmp_path / "full").iterdir()) == [], "a set that fails in the middle leaves nothing"


def test_an_empty_dev_set_is_refused_unless_it_is_asked_for(db, tmp_path):
    books = make_books(queries=1)
    text, problems = refusal(books, tmp_path / "out", "prism", teacher="votes")
    assert text.startswith("Dev ") and problems == ["allow_incomplete"]
    export(books, "prism", tmp_path / "whole", teacher="votes", split=1)
    manifest = export(books, "prism", tmp_path / "asked", teacher="votes", allow_incomplete=True)
    assert manifest["counts"]["splits"]["dev"]["rows"] == 0


def test_lengths_are_counted_in_the_tokens_of_a_tokenizer_and_the_entropy_over_all_cells_is_selectable(books, tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")  # a token for each character
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    options = {"teacher": "votes", "balance": True, "tokenizer": str(tmp_path)}
    manifest = export(books, "prism", tmp_path / "out", **options)
    assert manifest["balance"]["length_unit"] == "tokens" and manifest["balance"]["after"]["entropy"] >= 0.99
    assert manifest["counts"]["splits"]["dev"]["rows"] == 3, "dev stays whole"
    assert manifest["options"]["tokenizer"]["name"] == "tokenizer.json"
    shares = [sum(column) for column in zip(*manifest["balance"]["before"]["cells"], strict=True)]
    assert shares == [0, 0, 27, 0, 0, 0, 0, 0]  # 20 words are 128 to 255 characters
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(BadInput, match=r"no\.json"):
        export(books, "prism", tmp_path / "no", **options | {"tokenizer": str(tmp_path / "no.json")})


def test_rows_say_when_their_newest_judgment_was_made(books, tmp_path):
    pair = Pair.objects.get(query__external_id="q0", document__external_id="d0-0")
    for number, name in enumerate(("alice", "bob"), 1):
        moment = datetime(2026, 10, number, 9, 30, tzinfo=UTC)
        make_judgment(pair, make_assessor(books, name), 2, created_at=moment)
    export(books, "prism", tmp_path / "prism", teacher="votes", split=1)
    rows = {row["doc_id"]: row["labelled_at"] for row in lines(tmp_path / "prism" / "train.jsonl")}
    assert rows["d0-0"] == "2026-10-02T09:30:00.000000Z" and rows["d1-0"] is None
    export(books, "rtriever", tmp_path / "rtriever", split=1)
    bundles = {row["query_id"]: row["labelled_at"] for row in lines(tmp_path / "rtriever" / "train.jsonl")}
    assert bundles["q0"] == rows["d0-0"] and bundles["q1"] is None


@pytest.fixture
def synthetic(books):
    """A query that a model wrote, and one that it rewrote."""
    Query.objects.filter(collection=books, external_id="q0").update(metadata={"synthetic": True})
    Query.objects.filter(collection=books, external_id="q1").update(metadata={"rewritten_from": "q2"})
    return books


def test_every_row_of_an_export_says_that_a_model_wrote_its_query(synthetic, tmp_path):
    def made(name, **options):
        manifest = export(synthetic, name, tmp_path / name, split=1, **options)
        assert manifest["counts"]["synthetic_queries"] == 1
        return lines(tmp_path / name / "train.jsonl")

    for name, options in (("prism", {"teacher": "labels"}), ("rtriever", {})):
        assert {row["query_id"] for row in made(name, **options) if row["synthetic"]} == {"q0"}
    for name in ("flagembedding", "sentence-transformers", "tevatron"):
        rows, marks = made(name), lines(tmp_path / name / "synthetic.jsonl")
        marked = [json.dumps(rows[mark["line"] - 1]) for mark in marks]
        assert marked == [json.dumps(row) for row in rows if "thing 0 number0" in json.dumps(row)]
        assert all(mark["file"] == "train.jsonl" for mark in marks)
    export(synthetic, "beir", tmp_path / "beir", split=1)
    metadata = {row["_id"]: row.get("metadata") for row in lines(tmp_path / "beir" / "queries.jsonl")}
    assert metadata["q0"] == {"synthetic": True} and metadata["q3"] is None


def test_synthetic_queries_are_counted_and_no_qrels_of_all_labels_hold_one(synthetic):
    counts = statistics_of(synthetic)
    assert (counts["queries_synthetic"], counts["queries_keywords"]) == (1, 1)
    rated = set(versions.labels_version(synthetic).rows.values_list("query__external_id", flat=True))
    assert "q0" not in rated and "q3" in rated
