"""The pages of syntheses: estimate and start, preview, what was dropped, import, cancel and go on."""

import json

import pytest

from annotation.models import AuditEntry, Role
from benchmark.models import Synthesis, SyntheticBundle
from benchmark.synthesis.conversation import NEAR_DUPLICATE
from benchmark.synthesis.lifecycle import SYNTHESES, describe_synthesis
from benchmark.synthesis.page import name_reason
from benchmark.synthesis.queries import PRESENT
from corpus.models import Query
from jobs import leases
from tests.factories import make_collection, make_document, make_member, make_query
from tests.reading import hidden_fields, page_text
from training.jobs.pages import training_sets

HOME = "/c/steel/benchmark/synthesis/"


@pytest.fixture
def steel(settings, tmp_path, client):
    settings.VAR = tmp_path
    collection = make_collection("steel")
    for number in range(4):
        make_document(collection, f"Slab {number} cracks when its skin cools. It is held by core {number}.")
        make_query(collection, f"why does slab {number} crack", external_id=f"q{number}")
    client.force_login(make_member(collection, "alice", Role.ADMIN).user)
    return collection


@pytest.mark.django_db(transaction=True)
def test_from_the_estimate_to_bundles_that_training_offers(steel, client):
    assert client.get(f"{HOME}?type=poems").status_code == client.post(HOME, {"type": "poems"}).status_code == 404
    assert list(client.get(HOME).context["jobs"]) == []
    asked = client.post(HOME, {"judge": "offline-rewriter", "limit": "3"})
    assert "these calls are free" in asked.text and not Synthesis.objects.exists()
    started = client.post(HOME, {**hidden_fields(asked), "confirm": "1"})
    synthesis = Synthesis.objects.get()
    here = f"{HOME}{synthesis.number}/"
    assert started["Location"] == here and synthesis.total == 3
    assert 'hx-trigger="every 2s"' in client.get(here).text

    SYNTHESES.perform(leases.claim(Synthesis))
    news = client.get(here, headers={"HX-Request": "true"})
    assert news.status_code == 286 and "3 bundles from 3 seeds" in news.text
    bundle = client.get(f"{here}0/").text
    assert "Must not provide" in bundle and "synthetic" in bundle and "without a model" in bundle
    names = [row[0] for row in client.get(f"{here}?table=bundles&as=json").json()["rows"]]
    assert names == sorted(names) and len(names) == 3
    rows = client.get(f"{here}bundles.jsonl").text.splitlines()
    assert len(rows) == 3 and all(json.loads(row)["synthetic"] for row in rows)
    ((folder, label),) = training_sets(steel)
    assert folder == str(synthesis.folder) and "synthetic" in label

    client.post(f"{here}import/")
    assert Query.objects.filter(collection=steel, metadata__contains={"synthetic": True}).count() == 3
    assert "marked synthetic: 3" in client.get(here).text
    assert AuditEntry.objects.get(act="synthesis.imported").details["synthesis"] == synthesis.number


@pytest.mark.django_db
def test_what_was_dropped_is_counted_by_step_and_reason(steel, client):
    synthesis = SYNTHESES.start_or_join(steel, {"source": "queries", "judge": "offline-rewriter"})
    rows = SyntheticBundle.objects.filter(synthesis=synthesis)
    rows.filter(place__lt=2).update(step="negatives", reason="unparsed", problem="two titles are the same")
    rows.filter(place=2).update(step="compose", reason="near-duplicate", problem="every negative is a copy")
    Synthesis.objects.update(state="failed", error="Stopped by the budget: raise it")
    page = client.get(f"{HOME}{synthesis.number}/").content.decode()
    assert all(text in page for text in ("blueprints of negatives", "Stopped by the budget", "two titles are the same"))
    assert name_reason(NEAR_DUPLICATE) in page
    table = json.loads(client.get(f"{HOME}{synthesis.number}/?table=dropped&as=json").content)
    assert [row[-1] for row in table["rows"]] == [2, 1]

    refused = client.post(f"{HOME}{synthesis.number}/import/", follow=True)
    assert [message.level_tag for message in refused.context["messages"]] == ["error"]
    assert "bundle to import" in refused.text and not AuditEntry.objects.filter(act="synthesis.imported").exists()


@pytest.mark.django_db(transaction=True)
def test_queries_of_documents_are_written_from_the_page_into_the_collection(steel, client):
    form = client.get(f"{HOME}?type=ask").text
    assert 'name="limit"' in form and 'name="dev"' not in form
    asked = client.post(HOME, {"type": "ask", "judge": "offline-rewriter", "limit": "3", "pairs": "2"})
    assert "analytical" not in asked.text
    client.post(HOME, {**hidden_fields(asked), "confirm": "1"})
    synthesis = Synthesis.objects.get()
    here = f"{HOME}{synthesis.number}/"
    assert (synthesis.kind, synthesis.total) == ("ask", 3) and "Queries written: 0 of 3." in page_text(client, here)

    SYNTHESES.perform(leases.claim(Synthesis))
    page = page_text(client, here)
    assert "Queries written: 3 of 3." in page and "/import/" not in page
    assert f"{describe_synthesis(Synthesis.objects.get())['pairs']} pairs" in page
    texts = [query.text for query in Query.objects.filter(collection=steel, metadata__has_key="asked_of")]
    assert len(texts) == 3 and all(text in page for text in texts)
    table = client.get(f"{here}?table=queries&as=json").json()
    assert sorted(row[1] for row in table["rows"]) == sorted(texts)
    assert len(client.get(f"{here}bundles.jsonl").text.splitlines()) == 3
    # It has neither bundles to look at nor anything left to add, and is no training set.
    assert client.get(f"{here}0/").status_code == 404 and client.post(f"{here}import/").status_code == 404
    assert training_sets(steel) == [] and "Queries from documents" in client.get(HOME).text

    # A second one leaves out the documents that have their query.
    client.post(HOME, {**hidden_fields(asked), "limit": "4", "confirm": "1"})
    second = leases.claim(Synthesis)
    SYNTHESES.perform(second)
    page = page_text(client, f"{HOME}{second.number}/")
    assert "Queries written: 1 of 4." in page and "3 seeds" in page and name_reason(PRESENT) in page


@pytest.mark.django_db(transaction=True)
def test_training_queries_are_rewritten_from_the_page(steel, client, tmp_path):
    assert client.get(f"{HOME}?type=keywords").context["form"].lacks_seeds
    folder = tmp_path / "exports" / "steel" / "7-prism"
    folder.mkdir(parents=True)
    (folder / "train.jsonl").write_text("".join(json.dumps({"query_id": f"q{n}"}) + "\n" for n in range(3)))
    (folder / "dev.jsonl").write_text('{"query_id": "q3"}\n')
    (folder / "manifest.json").write_text(json.dumps({"format": "prism", "counts": {"rows": 9, "queries": 4}}))
    assert 'value="7-prism"' in client.get(f"{HOME}?type=keywords").text
    given = {"type": "keywords", "judge": "offline-rewriter", "data": "7-prism", "share": "0.01", "pairs": "2"}
    refused = client.post(HOME, given)
    assert refused.status_code == 422 and "for this share" in refused.text and str(tmp_path) not in refused.text
    assert client.post(HOME, {**given, "data": "../7-prism"}).status_code == 422
    asked = client.post(HOME, {**given, "share": "1"})
    client.post(HOME, {**hidden_fields(asked), "confirm": "1"})
    SYNTHESES.perform(leases.claim(Synthesis))
    page = client.get(f"{HOME}{Synthesis.objects.get().number}/").text
    assert "Queries written: 3 of 3." in page and "7-prism" in page and str(tmp_path) not in page
    forms = Query.objects.filter(collection=steel, metadata__has_key="rewritten_from")
    assert {query.metadata["rewritten_from"] for query in forms} == {"q0", "q1", "q2"}
