"""Documents of a search engine's answers: new ones, changed texts as versions, and what is not written."""

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from corpus.importing.options import ImportOptions
from corpus.importing.returned_documents import ReturnedDocument, StoredDocuments, store_returned
from corpus.importing.service import ImportFiles, import_collection
from corpus.models import Document
from tests.factories import make_collection


def shoe(text="A red shoe.", title="Shoe", name="p1", **metadata):
    return ReturnedDocument(name, title, text, metadata)


def store(collection, *documents):
    with transaction.atomic():
        return store_returned(collection, documents)


def versions(collection):
    rows = Document.objects.filter(collection=collection).order_by("external_id", "version")
    return list(rows.values_list("external_id", "version", "is_current", "text"))


@pytest.mark.django_db
def test_a_changed_text_is_a_new_version_and_an_earlier_text_is_current_again():
    collection = make_collection()
    assert store(collection) == StoredDocuments({}, 0, [])
    first = store(collection, shoe(price=5), shoe("A hat.", "Hat", "p2"))
    assert (first.new, first.changed) == (2, 0) and Document.objects.get(external_id="p1").metadata == {"price": 5}
    second = store(collection, shoe("A blue shoe."), shoe("A hat.", "Hat", "p2"))
    assert (second.new, second.changed) == (0, 1) and second.keys["p2"] == first.keys["p2"]
    assert versions(collection) == [
        ("p1", 1, False, "A red shoe."),
        ("p1", 2, True, "A blue shoe."),
        ("p2", 1, True, "A hat."),
    ]
    assert store(collection, shoe()).keys == {"p1": first.keys["p1"]}, "the text of before has its labels again"
    third = store(collection, shoe(title="Boot"))
    assert third.changed == 1 and versions(collection)[2] == ("p1", 3, True, "A red shoe."), "a title is read, too"


@pytest.mark.django_db
def test_the_same_text_writes_nothing_and_takes_two_statements_for_many():
    collection = make_collection()
    documents = [shoe(f"Shoe {n}.", name=f"p{n}", seen=1) for n in range(500)]
    keys = store(collection, *documents).keys
    Document.objects.filter(external_id="p3").update(metadata={"mine": True})
    with CaptureQueriesContext(connection) as statements:
        again = store(collection, *(document._replace(metadata={"seen": 2}) for document in documents))
    assert again == StoredDocuments(keys, 0, [])
    written = [row["sql"] for row in statements if row["sql"].startswith(("UPDATE", "INSERT"))]
    assert not written and len([row for row in statements if "SAVEPOINT" not in row["sql"]]) == 2
    assert Document.objects.get(external_id="p3").metadata == {"mine": True}


@pytest.mark.django_db
def test_a_hit_without_text_takes_the_document_as_it_is():
    collection = make_collection()
    keys = store(collection, shoe()).keys
    stored = store(collection, shoe(text=""), shoe(text="", title="Hat", name="p2"))
    assert stored.keys["p1"] == keys["p1"] and (stored.new, stored.changed) == (1, 0)
    assert versions(collection) == [("p1", 1, True, "A red shoe."), ("p2", 1, True, "")]
    assert store(collection, shoe("A hat.", "Hat", "p2")).changed == 1


@pytest.mark.django_db
def test_an_imported_html_document_with_the_same_text_stays(tmp_path):
    """Its hash is that of its source, too."""
    (tmp_path / "corpus.jsonl").write_text('{"_id": "p1", "title": "Shoe", "text": "<p>A <b>red</b> shoe.</p>"}')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "shoe"}')
    files = {part: tmp_path / f"{part}.jsonl" for part in ("corpus", "queries")}
    import_collection("shop", ImportFiles(**files, options=ImportOptions(document_format="html")))
    document = Document.objects.get()
    assert (document.text, bool(document.html)) == ("A red shoe.", True)
    assert store(document.collection, shoe()) == StoredDocuments({"p1": document.pk}, 0, [])
    assert store(document.collection, shoe("Sold out.")).changed == 1
