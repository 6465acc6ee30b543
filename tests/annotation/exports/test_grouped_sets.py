"""Sets with a line for each query, and MTEB's folder: exact fields, and what their libraries load."""

import pytest

from corpus.models import Document, Label
from tests.evidence import make_label
from tests.factories import make_document, make_pair
from tests.judged_books import export, lines, write_targets

pytestmark = pytest.mark.django_db
QUERY = "What is thing 0 number0?"
GROUPED = ("rtriever", "flagembedding", "ms-swift", "ms-swift-embedding", "tevatron")


def text_of(place):
    return f"Title {place}\n" + " ".join(f"word0x{place}x{w}" for w in range(20))


def first_line(folder):
    return lines(folder / "train.jsonl")[0]


def test_rtriever_has_each_query_with_its_positives_and_its_marked_negatives(books, tmp_path):
    Document.objects.filter(external_id="d0-2").update(title="", text="Unjudged.")
    Label.objects.filter(pair__document__external_id="d0-2").delete()
    (tmp_path / "a.run").write_text("q0 Q0 d0-2 1 9.0 system\n")
    manifest = export(books, "rtriever", tmp_path / "out", split=1, run=str(tmp_path / "a.run"), ranks="1-5")
    assert first_line(tmp_path / "out") == {
        "query_id": "q0",
        "query": QUERY,
        "positives": [{"doc_id": "d0-0", "text": text_of(0)}],
        "negatives": [
            {"doc_id": "d0-1", "text": text_of(1), "assumed": False},
            {"doc_id": "d0-2", "text": "Unjudged.", "assumed": True},
        ],
        "synthetic": False,
        "instruction": "Holds the answer.",
        "labelled_at": None,
    }
    assert (manifest["format"], manifest["counts"]["rows"], manifest["counts"]["pairs"]) == ("rtriever", 10, 30)


def test_flagembedding_has_the_teachers_scores_where_one_is_asked_for_and_tevatron_title_and_text_apart(
    books, tmp_path
):
    export(books, "flagembedding", tmp_path / "labels", split=1)
    plain = {"query": QUERY, "pos": [text_of(0)], "neg": [text_of(1), text_of(2)]}
    assert first_line(tmp_path / "labels") == plain | {"prompt": "Holds the answer."}
    export(books, "flagembedding", tmp_path / "votes", split=1, teacher="votes")
    line = first_line(tmp_path / "votes")
    assert (line["pos_scores"], line["neg_scores"]) == ([0.8], [0.2, 0.2])
    export(books, "tevatron", tmp_path / "tevatron", split=1)
    line = first_line(tmp_path / "tevatron")
    assert list(line) == ["query_id", "query", "positive_passages", "negative_passages"]
    assert line["positive_passages"] == [{"docid": "d0-0", "title": "Title 0", "text": text_of(0).split("\n")[1]}]
    assert [passage["docid"] for passage in line["negative_passages"]] == ["d0-1", "d0-2"]


@pytest.mark.parametrize(("name", "role"), [("ms-swift", "assistant"), ("ms-swift-embedding", "user")])
def test_ms_swift_has_messages_with_a_list_of_turns_for_each_document(books, tmp_path, name, role):
    export(books, name, tmp_path / "out", split=1)
    assert first_line(tmp_path / "out") == {
        "messages": [{"role": "user", "content": QUERY}],
        "positive_messages": [[{"role": role, "content": text_of(0)}]],
        "negative_messages": [[{"role": role, "content": text_of(1)}], [{"role": role, "content": text_of(2)}]],
    }


@pytest.mark.parametrize("name", [*GROUPED, "prism", "trl"])
def test_every_line_loads_with_one_type_a_column(books, tmp_path, load, name):
    write_targets(books)
    export(books, name, tmp_path / "out", teacher="votes" if name in ("flagembedding", "prism") else "labels")
    found = load(folder=tmp_path / "out")
    assert found["train"].features == found["dev"].features
    assert (len(found["train"]), len(found["dev"])) == ((9, 1) if name in GROUPED else (27, 3))


def test_queries_without_a_side_and_negatives_with_the_text_of_a_positive_are_left_out_and_counted(books, tmp_path):
    original = Document.objects.get(external_id="d0-0")
    copy = make_document(books, original.text, title=original.title, external_id="copy")
    make_label(make_pair(books, books.query_set.get(external_id="q0"), copy), 0)
    counts = export(books, "rtriever", tmp_path / "out", split=1, near_duplicates=0)["counts"]
    assert list(counts["left_out"].values()) == [1] and "same text" in str(counts["left_out"])
    line = first_line(tmp_path / "out")
    assert not {one["text"] for one in line["positives"]} & {one["text"] for one in line["negatives"]}
    copy.pair_set.get().labels.all().delete()
    for query, grade in (("q3", 0), ("q4", 2)):
        Label.objects.filter(pair__query__external_id=query).update(grade=grade)
    counts = export(books, "rtriever", tmp_path / "sides", split=1)["counts"]
    assert (counts["rows"], counts["pairs"]) == (8, 24)
    assert list(counts["left_out"].values()) == [6] and "too few relevant" in str(counts["left_out"])


def test_mteb_loads_as_the_three_configurations_that_its_loader_asks_for(books, tmp_path, load):
    """As mteb's own loader: the configurations by name, a split where there is one, else the only one, then a cast."""
    import datasets

    manifest = export(books, "mteb", tmp_path / "out")
    folder = str(tmp_path / "out")
    assert manifest["documents"] == 30
    splits = {
        name: datasets.get_dataset_split_names(folder, name) for name in datasets.get_dataset_config_names(folder)
    }
    assert splits == {"corpus": ["corpus"], "queries": ["queries"], "qrels": ["train", "dev"]}
    corpus, queries, qrels = (load(folder, name, split=splits[name][-1]) for name in ("corpus", "queries", "qrels"))
    assert (corpus.column_names, len(corpus)) == (["_id", "title", "text"], 30)
    assert (queries.column_names, len(queries)) == (["_id", "text"], 10)
    text, whole = datasets.Value("string"), datasets.Value("int32")
    rows = qrels.cast(datasets.Features({"query-id": text, "corpus-id": text, "score": whole})).to_list()
    assert sorted(row["score"] for row in rows) == [0, 0, 2]
    assert {row["query-id"] for row in rows} <= set(queries["_id"])
    assert {row["corpus-id"] for row in rows} <= set(corpus["_id"])
