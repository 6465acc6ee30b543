"""Queries of a log in a collection: ids, counts, samples, second imports, and what is refused whole."""

from pathlib import Path

import pytest
from django.contrib.messages import get_messages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse

from annotation.models import AuditEntry, Role
from benchmark.models import Run
from corpus.models import Collection, Query
from tests import factories
from tests.called import call

pytestmark = pytest.mark.django_db
LOG = "query,count\n" + "".join(f"query {n},{1000 // n}\n" for n in range(1, 101))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    return path


def counts() -> dict[str, int]:
    return {query.text: query.metadata["count"] for query in Query.objects.filter(is_current=True)}


def test_a_new_collection_gets_every_query_with_its_count(log: Path) -> None:
    report = call("import_queries", "shop", log, "--json").json
    assert (report["lines"], report["distinct"], report["new"], report["share"]) == (100, 100, 100, 1)
    assert counts()["query 1"] == 1000 and counts()["query 100"] == 10
    assert all(query.external_id.startswith("q") and len(query.external_id) == 17 for query in Query.objects.all())
    assert not any("sampled_by" in query.metadata for query in Query.objects.all())


def test_a_sample_is_the_same_again_and_says_how_it_was_drawn(log: Path) -> None:
    options = ("--sample", 20, "--by", "pptss", "--seed", 3)
    assert call("import_queries", "shop", log, *options).code == 0
    sample = set(Query.objects.values_list("external_id", flat=True))
    assert len(sample) == 20 and {query.metadata["sampled_by"] for query in Query.objects.all()} == {"pptss"}
    again = call("import_queries", "shop", log, *options, "--json").json
    assert (again["new"], again["renewed"], again["changed"]) == (0, 0, False)
    assert Query.objects.count() == 20
    assert AuditEntry.objects.filter(act="import.queries").count() == 1
    call("import_queries", "other", log, *options[:-1], 4)
    assert set(Query.objects.filter(collection__name="other").values_list("external_id", flat=True)) != sample


def test_a_newer_log_joins_the_same_queries_and_renews_their_counts(log: Path, tmp_path: Path) -> None:
    """A query keeps its text and its id, also one that was imported otherwise, and one that was not drawn again."""
    shop = factories.make_collection(name="shop")
    own = factories.make_query(shop, external_id="17", text="Query  2", metadata={"topic": "x"})
    call("import_queries", "shop", log, "--sample", 100)
    assert Query.objects.count() == 100, "query 2 is there already"
    before = {query.external_id: query.pk for query in Query.objects.all()}
    newer = tmp_path / "newer.csv"
    newer.write_text("query,count\nQUERY 1,5\nquery 2,7\nnew one,3\n")
    report = call("import_queries", "shop", newer, "--json").json
    assert (report["new"], report["renewed"], report["queries"]) == (1, 2, 101)
    own.refresh_from_db()
    assert own.metadata == {"topic": "x", "count": 7} and own.text == "Query  2"
    assert counts()["query 1"] == 5 and counts()["query 3"] == 333
    assert before.items() <= {query.external_id: query.pk for query in Query.objects.all()}.items()


@pytest.mark.parametrize(
    ("text", "options", "flag"),
    [
        ("boots\nhats\n", ["--sample", 1, "--by", "pptss"], "--by"),
        ("boots\nhats\n", ["--sample", 1, "--by", "head-torso-tail"], "--by"),
        ("boots\nhats\n", ["--sample", 3], "--sample"),
        ("boots\nhats\n", ["--by", "pptss"], "--sample"),
        ("boots\nhats\n", ["--sample", 0], "--sample"),
        ("boots\nhats\n", ["--by", "size"], "--by"),
        ("Wort,Anzahl\nboots,3\nhats,2\n", [], "--column"),
        ("query,count\nboots,3\nhats,x\n", [], "line 3"),
        ("", [], "empty"),
    ],
)
def test_a_log_that_cannot_be_imported_leaves_nothing(
    tmp_path: Path, text: str, options: list[object], flag: str
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    finished = call("import_queries", "shop", path, *options)
    assert finished.code == 2 and flag in finished.err and len(finished.err.strip().splitlines()) == 1, finished.err
    assert not Collection.objects.exists() and not Query.objects.exists()


def test_strata_and_what_was_skipped_are_printed(log: Path) -> None:
    log.write_text(LOG + ",4\nnever,0\n")
    finished = call("import_queries", "shop", log, "--sample", 30, "--by", "head-torso-tail")
    assert finished.code == 0, finished.err
    for figure in ("102 lines", "100 different", "Skipped: 1 lines without a query, 1 with a count of 0"):
        assert figure in finished.out
    assert "of the head" in finished.out


def test_queries_that_are_drawn_for_certain_are_named_for_they_count_too_little(log: Path) -> None:
    """Of all searches 20 queries are drawn: five have at least a place's share of what is left."""
    said = call("import_queries", "shop", log, "--sample", 20, "--by", "pptss", "--json")
    certain = said.json["certain"]
    assert certain == {"queries": 5, "traffic": 1000 + 500 + 333 + 250 + 200}
    share = certain["traffic"] / said.json["traffic"]
    assert f"5 queries with {share:.1%} of the traffic" in said.err and "25.0%" in said.err
    assert call("import_queries", "hats", log, "--sample", 20, "--json").json["certain"] == {"queries": 0, "traffic": 0}


def test_a_log_comes_in_by_the_page() -> None:
    """A bad log leaves the form with its sentence; a good one adds its queries and says how many."""
    shop = factories.make_collection(name="shop")
    client = factories.client_of(factories.make_member(shop, "alice", Role.ADMIN))

    def post(text: str, **fields: object) -> HttpResponse:
        upload = SimpleUploadedFile("log.csv", text.encode())
        return client.post("/c/shop/import/query-log/", {"log": upload, "by": "uniform", "seed": 0, **fields})

    for text, field, options in [("Wort,Anzahl\na b,3\n", None, {}), ("boots\n", "sample", {"sample": 9})]:
        answer = post(text, **options)
        assert answer.status_code == 422 and answer.context["form"].errors.get(field or "__all__")
    assert not Query.objects.exists()
    columns = {"query_column": "Wort", "count_column": "Anzahl"}
    answer = post("Wort,Anzahl\nred shoes,3\nboots,4\n", **columns, sample=1, by="pptss")
    assert answer["Location"] == "/c/shop/benchmark/runs/make/" and Query.objects.count() == 1
    assert client.get(answer["Location"]).context["kind"] == Run.Kind.SEARCH
    entry = AuditEntry.objects.get(act="import.queries")
    assert entry.details | {"file": "log.csv", "new": 1, "drawn_by": "pptss"} == entry.details
    (page,) = [str(message) for message in get_messages(answer.wsgi_request)]
    assert "1 of 2" in page
