"""Files for search tools: valid by the tools' documents, with every label and its rating, and read back."""

import csv
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from django.core.management import call_command
from django.urls import reverse

from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.models import Role
from annotation.models.snapshots import Snapshot
from benchmark.models import SearchEndpoint
from benchmark.search_endpoints.options import EndpointOptions
from corpus.errors import BadOption
from corpus.models import Collection, Judgment, Label, Pair, Query
from tests.called import call
from tests.evidence import make_assessor, make_judgment, make_label
from tests.factories import client_of, make_collection, make_document, make_member, make_pair, make_query
from tests.imported_files import import_files

pytestmark = pytest.mark.django_db

TEXT = {"type": "string", "minLength": 1}
BODY_TYPES = {"type": ["object", "string"]}
FLOAT = {"type": "string", "pattern": r"^[0-9]+\.[0-9]+$"}


def an_object(properties: dict[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """The schema of an object with these properties and no others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def a_list(**properties: Any) -> dict[str, Any]:
    """The schema of a list of objects with these properties and no others."""
    return {"type": "array", "items": an_object(properties), "minItems": 1}


# https://docs.opensearch.org/3.9/search-plugins/search-relevance/judgments/, "Importing judgments", OpenSearch 3.9:
# name, description, type, judgmentRatings; its example has ratings as texts of floating-point numbers. The lengths, and
# texts without quotes, backslashes and angle brackets: TextValidationUtil of opensearch-project/search-relevance.
SRW = an_object(
    {
        "name": {"type": "string", "pattern": r'^[^"\\<>]{1,50}$'},
        "description": {"type": "string", "pattern": r'^[^"\\<>]{1,250}$'},
        "type": {"const": "IMPORT_JUDGMENT"},
        "judgmentRatings": a_list(query=TEXT, ratings=a_list(docId=TEXT, rating=FLOAT)),
    },
    optional=("description",),
)
# https://www.elastic.co/docs/reference/elasticsearch/rest-apis/search-rank-eval, Elasticsearch 9 (as in 7.17 and 8):
# requests with id, ratings, and request or template_id and params; templates of `inline` or `id`; one metric. The
# ratings are whole numbers.
RANK_EVAL = an_object(
    {
        "templates": a_list(id=TEXT, template={"oneOf": [an_object({"inline": BODY_TYPES}), an_object({"id": TEXT})]}),
        "requests": a_list(
            id=TEXT, template_id=TEXT, params={"type": "object", "minProperties": 1},
            ratings=a_list(_index=TEXT, _id=TEXT, rating={"type": "integer", "minimum": 0}),
        ),
        "metric": an_object({"dcg": an_object({"k": {"type": "integer"}, "normalize": {"type": "boolean"}})}),
    }
)  # fmt: skip
# https://github.com/o19s/quepid, app/services/book_importer.rb at 067eccf, and what it exports itself:
# app/views/api/v1/export/books at 3393ab0 (the books of Quepid 8.3 and later have a scale of their own).
BOOK = an_object(
    {
        "name": TEXT, "show_rank": {"type": "boolean"}, "support_implicit_judgements": {"type": "boolean"},
        "scale": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        "scale_with_labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "query_doc_pairs": a_list(
            query_text=TEXT | {"maxLength": 500}, doc_id=TEXT, position={"type": ["integer", "null"]},
            document_fields={"type": "string"},
            judgements=a_list(
                rating={"type": "number"}, unrateable={"const": False}, judge_later={"const": False},
                explanation={"type": "string"},
            ),
        ),
    }
)  # fmt: skip
BODY = '{"query": {"match": {"title": "{{query}}"}}, "size": {{k}}}'


@pytest.fixture
def shop():
    """Labels of people, a judge's policy and an audit on the grades 0 to 3; a query with quotes and a line end."""
    shop = make_collection("shop", grades=3)
    queries = [make_query(shop, text, external_id=name) for name, text in (("q10", 'the "best"\ntea'), ("Q2", "cup"))]
    documents = [make_document(shop, f"Text {name}.", external_id=name, title=name.upper()) for name in "abcd"]
    pairs = [make_pair(shop, queries[0], document) for document in documents]
    for pair, grade, origin in zip(pairs, (0, 1, 2, 3), ("people", "ensemble", "adjudicator", "audit"), strict=True):
        make_label(pair, grade, origin)
    make_label(make_pair(shop, queries[1], documents[0]), 3, "people")
    make_pair(shop, queries[1], documents[1])
    return shop


def export(collection: Collection, name: str, folder: Path, **options: Any) -> tuple[str, dict[str, Any]]:
    """Make an export; the text of its only file, and its manifest."""
    snapshot = write_snapshot(create_snapshot(collection, ExportOptions(format=name, **options), folder))
    (file,) = snapshot.manifest["files"]
    return (folder / file["name"]).read_text(), json.loads((folder / "manifest.json").read_text())


def grades_in(model, name):
    """Grades of the labels or judgments of a collection by the ids of query and document."""
    rows = model.objects.filter(pair__collection__name=name)
    return {(row.pair.query.external_id, row.pair.document.external_id): row.grade for row in rows}


def make_empty(folder):
    """A collection `back` with the queries and documents of the shop, and no label."""
    call_command("export", "shop", "--format", "beir", "--split", "1", "--out", str(folder / "beir"))
    Collection.objects.create(name="back", grades=3)
    import_files("back", "--corpus", folder / "beir" / "corpus.jsonl", "--queries", folder / "beir" / "queries.jsonl")
    assert Query.objects.filter(collection__name="back").count() == 2


def test_the_search_relevance_workbench_gets_every_label_as_a_share_of_the_scale(shop, tmp_path):
    text, manifest = export(shop, "srw", tmp_path / "out")
    body = json.loads(text)
    jsonschema.validate(body, SRW)
    assert body["name"] == "shop"
    assert {
        row["query"]: {one["docId"]: one["rating"] for one in row["ratings"]} for row in body["judgmentRatings"]
    } == {"cup": {"a": "1.0"}, 'the "best"\ntea': {"a": "0.0", "b": "0.333", "c": "0.667", "d": "1.0"}}
    assert manifest["ratings"] == {"scale": {"0": 0.0, "1": 0.333, "2": 0.667, "3": 1.0}, "scale_by": "default"}
    assert manifest["counts"] == {
        "rows": 5,
        "queries": 2,
        "grades": {"0": 1, "1": 1, "2": 1, "3": 2},
        "origins": {"adjudicator": 1, "audit": 1, "ensemble": 1, "people": 2},
    }
    assert export(shop, "srw", tmp_path / "people", origins=["people"])[1]["counts"]["rows"] == 2


def test_rank_eval_asks_with_the_request_of_the_endpoint(shop, tmp_path):
    engine = {"name": "engine", "kind": "opensearch", "base_url": "https://search.example.org:9200"}
    options = EndpointOptions(**engine, index="products", template=BODY, bearer_env="SHOP_TOKEN")
    SearchEndpoint.objects.create(name="engine", kind="opensearch", settings=options.complete_settings())
    SearchEndpoint.objects.create(name="other", kind="solr", settings={})
    text, manifest = export(shop, "rank-eval", tmp_path / "out", endpoint="engine")
    body = json.loads(text)
    jsonschema.validate(body, RANK_EVAL)
    (template,) = body["templates"]
    assert template["template"] == {"inline": {"query": {"match": {"title": "{{query}}"}}, "size": 10}}
    assert [(row["id"], row["template_id"], row["params"]) for row in body["requests"]] == [
        ("Q2", template["id"], {"query": "cup"}),
        ("q10", template["id"], {"query": 'the "best"\ntea'}),
    ]
    assert body["requests"][0]["ratings"] == [{"_index": "products", "_id": "a", "rating": 3}]
    assert [one["rating"] for one in body["requests"][1]["ratings"]] == [0, 1, 2, 3]
    assert manifest["ratings"] == {
        "scale": {"0": 0, "1": 1, "2": 2, "3": 3}, "scale_by": "default", "endpoint": "engine", "index": "products",
        "metric": body["metric"],
    }  # fmt: skip
    assert "example.org" not in text + json.dumps(manifest) and "SHOP_TOKEN" not in text + json.dumps(manifest)
    text, manifest = export(shop, "rank-eval", tmp_path / "index", endpoint="engine", index="v2")
    assert '"_index": "v2"' in text and "products" not in text
    text, manifest = export(shop, "rank-eval", tmp_path / "plain")
    jsonschema.validate(json.loads(text), RANK_EVAL)
    assert manifest["ratings"]["index"] == "shop"
    for name in ("other", "unknown"):
        with pytest.raises(BadOption, match="engine"):
            export(shop, "rank-eval", tmp_path / name, endpoint=name)
        assert not (tmp_path / name).exists()


def test_quepid_gets_ratings_and_a_book_on_the_collections_scale(shop, tmp_path):
    # https://quepid.com/docs/, and what Quepid exports itself: query, docid, rating.
    text, manifest = export(shop, "quepid", tmp_path / "csv")
    assert [*csv.reader(text.splitlines(keepends=True))] == [
        ["query", "docid", "rating"],
        ["cup", "a", "3"],
        *([['the "best"\ntea', name, str(grade)] for grade, name in enumerate("abcd")]),
    ]
    book = json.loads(export(shop, "quepid-book", tmp_path / "book")[0])
    jsonschema.validate(book, BOOK)
    assert book["scale"] == [0, 1, 2, 3] and set(book["scale_with_labels"]) == {"0", "1", "2", "3"}
    found = {(one["query_text"], one["doc_id"]): one["judgements"][0] for one in book["query_doc_pairs"]}
    assert len(found) == 5 and found["cup", "a"]["rating"] == 3.0
    assert found['the "best"\ntea', "b"]["explanation"] == "ensemble"
    assert json.loads(book["query_doc_pairs"][0]["document_fields"]) == {"title": "A", "text": "Text a."}
    Collection.objects.filter(pk=shop.pk).update(grades=4)
    shop.refresh_from_db()
    with pytest.raises(BadOption, match="from 0 to 3"):
        export(shop, "quepid", tmp_path / "five")
    text, manifest = export(shop, "quepid", tmp_path / "scaled", scale="0=0,1=1,2=1,3=2,4=3")
    assert text.splitlines()[1] == "cup,a,2" and manifest["ratings"]["scale_by"] == "option"
    book = json.loads(export(shop, "quepid-book", tmp_path / "wide")[0])
    assert book["scale"] == [0, 1, 2, 3, 4]


def test_ranklib_has_a_line_for_each_label_and_the_manifest_the_queries(shop, tmp_path):
    # https://sourceforge.net/p/lemur/wiki/RankLib%20File%20Format/ and http://svmlight.joachims.org (SVMlight 6.02):
    # <target> qid:<qid> <feature>:<value> ... # <info>; here without features.
    from sklearn.datasets import load_svmlight_file

    text, manifest = export(shop, "ranklib", tmp_path / "out")
    assert text.splitlines() == ["3 qid:1 # a", "0 qid:2 # a", "1 qid:2 # b", "2 qid:2 # c", "3 qid:2 # d"]
    assert manifest["ratings"]["qids"] == ["Q2", "q10"]
    _features, targets, numbers = load_svmlight_file(
        str(tmp_path / "out" / "judgments.txt"), query_id=True, n_features=1
    )
    assert (targets.tolist(), numbers.tolist()) == ([3, 0, 1, 2, 3], [1, 2, 2, 2, 2])


@pytest.mark.parametrize(
    ("name", "scale"),
    [("srw", ""), ("srw", "0=0,1=0.33,2=0.67,3=1"), ("srw", "0=0,1=0.1,2=0.5,3=0.9"), ("srw", "0=0,1=1,2=2,3=3"),
     ("rank-eval", ""), ("quepid", "")],
)  # fmt: skip
def test_an_export_comes_back_into_a_collection_with_the_queries(shop, tmp_path, name, scale):
    export(shop, name, tmp_path / "out", scale=scale)
    make_empty(tmp_path)
    (file,) = [path for path in (tmp_path / "out").iterdir() if path.name != "manifest.json"]
    report, said = import_files("back", file)
    assert grades_in(Judgment, "back") == grades_in(Label, "shop"), said
    assert (report["queries"], report["pairs"], report["new"]["queries"]) == (2, 5, 0)
    again, _said = import_files("back", file)
    assert not again["changed"] and again["judgments"] == 5


def test_the_highest_and_lowest_ratings_alone_come_back_as_what_they_were(shop, tmp_path):
    Label.objects.filter(grade__in=(1, 2)).delete()
    export(shop, "srw", tmp_path / "out")
    make_empty(tmp_path)
    import_files("back", tmp_path / "out" / "judgments.json")
    assert set(grades_in(Judgment, "back").values()) == {0, 3}


def test_a_long_name_and_a_long_scale_stay_within_the_workbenchs_limits(tmp_path):
    wide = make_collection("w" * 60, grades=50)
    pair = make_pair(wide, make_query(wide, "tea", external_id="q1"), make_document(wide, external_id="a"))
    make_label(pair, 17)
    body = json.loads(export(wide, "srw", tmp_path / "out")[0])
    jsonschema.validate(body, SRW)
    Label.objects.all().delete()
    import_files(wide.name, tmp_path / "out" / "judgments.json")
    assert Judgment.objects.get().grade == 17


def test_what_queries_with_one_text_label_differently_is_left_out_and_labels_of_all_grades_can_be_rated(shop, tmp_path):
    same = make_query(shop, "cup", external_id="q3")
    for name, grade in (("a", 3), ("b", 1), ("c", 2)):
        make_label(make_pair(shop, same, shop.document_set.get(external_id=name)), grade)
    make_label(Pair.objects.get(query__external_id="Q2", document__external_id="b"), 2)
    text, manifest = export(shop, "srw", tmp_path / "out")
    rated = {row["query"]: [one["docId"] for one in row["ratings"]] for row in json.loads(text)["judgmentRatings"]}
    assert rated["cup"] == ["a", "c"] and manifest["ratings"]["left_out_with_same_text"] == 1
    assert manifest["counts"]["queries"] == 2
    text, manifest = export(shop, "rank-eval", tmp_path / "ids")
    assert len(json.loads(text)["requests"]) == 3 and "left_out_with_same_text" not in manifest["ratings"]

    alice = make_assessor(shop, "alice")
    make_judgment(Pair.objects.get(query__external_id="Q2", document__external_id="b"), alice, 2)
    text, manifest = export(shop, "quepid", tmp_path / "majority", aggregate="majority")
    assert text == "query,docid,rating\ncup,b,2\n" and manifest["aggregate"]["by"] == "majority"


@pytest.fixture
def admin(shop):
    return client_of(make_member(shop, "ada", Role.ADMIN))


def test_the_page_shows_the_rating_of_each_grade_before_and_after_the_export(shop, admin):
    page = admin.get(reverse("exports", args=["shop"])).content.decode()
    assert "1 → 0.333" in page and 'name="scale"' in page and 'name="endpoint"' not in page
    SearchEndpoint.objects.create(name="engine", kind="elasticsearch", settings={"index": "products", "body": BODY})
    assert 'value="engine"' in admin.get(reverse("exports", args=["shop"])).content.decode()
    said = {"format": "srw", "scale": "0=0,1=0.2,2=0.6,3=1", "origins": ["people", "ensemble", "adjudicator", "audit"]}
    preview = admin.post(reverse("preview_export", args=["shop"]), said).content.decode()
    assert "1 → 0.2" in preview and "judgmentRatings" in preview and not Snapshot.objects.exists()
    assert admin.post(reverse("make_export", args=["shop"]), said).status_code == 302
    assert Snapshot.objects.get().manifest["ratings"]["scale"]["1"] == 0.2
    assert "1 → 0.2" in admin.get(reverse("exports", args=["shop"])).content.decode()


def test_the_page_and_the_command_refuse_a_scale_or_an_endpoint_by_its_option(shop, admin, tmp_path):
    for scale in ("0=0,1=1", "high"):
        response = admin.post(reverse("make_export", args=["shop"]), {"format": "srw", "scale": scale})
        assert response.status_code == 422 and scale in response.content.decode(), "the form is kept"
    assert not Snapshot.objects.exists()
    assert "0=0.0, 1=0.333, 2=0.667, 3=1.0" in call("export", "shop", "--format", "srw", "--out", tmp_path / "out").out
    refused = call("export", "shop", "--format", "rank-eval", "--endpoint", "none", "--out", tmp_path / "no")
    assert refused.code == 2 and "--endpoint" in refused.err and not (tmp_path / "no").exists()
