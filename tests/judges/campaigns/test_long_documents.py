"""Documents longer than judges read are counted, marked, and handled as the collection says."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.models import Role
from corpus.document_limit import SHOWN
from corpus.models import Collection, Item, Pair
from judges.campaigns.configurations import build_configuration
from judges.campaigns.forecasts import forecast_judging
from judges.models import Attempt
from tests.engine_parts import _standing_worker, judge, make_panel, worker
from tests.factories import make_collection, make_document, make_member, make_pair, make_query
from tests.modelserver.fixtures import LocalModels

__all__ = ["_standing_worker", "worker"]

TIDES = "The tides of the sea are caused by the pull of the moon and by that of the sun. "
END = "The last sentence names the answer."


def books(**settings: object) -> Collection:
    """Two pairs with short documents and two with long ones, of which one has as many characters as are shown."""
    collection = make_collection("books")
    Collection.objects.filter(pk=collection.pk).update(**settings)
    texts = [TIDES, (TIDES * 400)[:SHOWN], TIDES * 400 + END, TIDES * 500 + END]
    for number, text in enumerate(texts):
        make_pair(collection, make_query(collection, f"What causes tide {number}?"), make_document(collection, text))
    return Collection.objects.get(pk=collection.pk)


def test_long_documents_are_cut_and_that_is_said(
    worker: object, model_server: LocalModels, client: Client, tmp_path: Path
) -> None:
    collection = books()
    make_panel(model_server, debate=(), votes=("yes",))
    estimate = forecast_judging(collection, build_configuration(panel="main", policy="single"))
    assert estimate is not None
    assert "2 pairs have documents of more than 24,000 characters: judges read their beginning" in estimate.line()
    judge("--policy", "single", check=True)
    assert not any(END in request["user"] for request in model_server.requests())
    out = StringIO()
    call_command("export", "books", "--format", "csv", "--out", str(tmp_path / "out"), "--json", stdout=out)
    told = json.loads(out.getvalue())["long_documents"]
    assert told == {"characters": SHOWN, "handling": "cut", "labels": 2}
    client.force_login(make_member(collection, "alice", Role.ADMIN).user)
    for pair in Pair.objects.select_related("document"):
        page = client.get(reverse("pair", args=["books", pair.pk])).content.decode()
        assert ("more than the 24,000 that judges are shown" in page) is (len(pair.document.text) > SHOWN)


def test_people_get_the_long_ones_without_a_call(worker: object, model_server: LocalModels) -> None:
    books(long_documents="people")
    make_panel(model_server, debate=(), votes=("yes",))
    done = judge("--policy", "single", check=True)
    assert (done.json["labelled"], done.json["escalated"]) == (2, 2) and done.json["escalations"]["long"] == 2
    assert len(model_server.requests()) == 2 == Attempt.objects.count()
    items = Item.objects.filter(reason="long").select_related("pair__document")
    assert len(items) == 2 and all(len(item.pair.document.text) > SHOWN for item in items)


def test_judges_read_them_whole_where_that_is_asked_for(worker: object, model_server: LocalModels) -> None:
    books(long_documents="context")
    make_panel(model_server, debate=(), votes=("yes",))
    judge("--policy", "single", check=True)
    assert sum(END in request["user"] for request in model_server.requests()) == 2
    assert not any("cut: the first" in request["user"] for request in model_server.requests())


@pytest.mark.django_db
def test_the_import_counts_them_and_the_settings_take_the_choice(tmp_path: Path) -> None:
    lines = [
        {"_id": f"d{n}", "text": text} for n, text in enumerate((TIDES, TIDES * 400, "潮" * 24_001, "潮" * 24_000))
    ]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "What causes tides?"}))
    out = StringIO()
    files = ("--corpus", str(tmp_path / "corpus.jsonl"), "--queries", str(tmp_path / "queries.jsonl"))
    call_command("import_collection", "tides", *files, stdout=out)
    assert "2 documents have more than 24,000 characters" in out.getvalue()
    (tmp_path / "settings.toml").write_text('long_documents = "people"\n')
    call_command("configure_collection", "tides", str(tmp_path / "settings.toml"), stdout=StringIO())
    assert Collection.objects.get(name="tides").long_documents == "people"
