"""Search endpoints by the owners' pages and by the command: added, changed, tested, deleted, and no key is shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from annotation.models import AuditEntry
from benchmark.models import SearchEndpoint
from benchmark.search_endpoints.kinds import KINDS
from tests.benchmark.search_endpoints.conftest import KEY
from tests.called import call

pytestmark = pytest.mark.django_db
SECRET = KEY.removeprefix("Bearer ")


def as_form(shop: dict[str, Any]) -> dict[str, Any]:
    """What a browser sends: lists and tables as lines."""
    lines = {"text": "\n".join(shop["text"]), "header_env": "Authorization = SHOP_AUTH"}
    return {name: value for name, value in {**shop, **lines}.items() if name != "kind"}


def test_an_endpoint_is_added_tested_changed_and_deleted(client, olga, engine, shop):
    page = client.get(reverse("search_endpoints")).text
    assert 'class="empty"' in page
    assert all(reverse("add_search_endpoint", args=[kind]) in page for kind in KINDS)
    response = client.post(reverse("add_search_endpoint", args=["http"]), as_form(shop))
    endpoint = SearchEndpoint.objects.get()
    here = reverse("search_endpoint", args=[endpoint.pk])
    assert response.url == here
    page = client.post(f"{here}test/", {"query": "warm boots", "k": 2}).content.decode()
    assert "Boot 1" in page and "Warm &amp; dry, 2" in page and "&lt;b&gt;" not in page
    assert "POST" in page and "warm boots" in page and SECRET not in page
    form = client.get(here).context["form"]
    fields = {name: form[name].value() or "" for name in form.fields}
    assert fields["header_env"] == "Authorization = SHOP_AUTH" and fields["text"] == "name\ndescription"
    assert client.post(here, {**fields, "timeout_s": "5"}).url == here
    endpoint.refresh_from_db()
    assert endpoint.settings["timeout_s"] == 5 and endpoint.settings["text"] == ["name", "description"]
    assert client.get(f"{here}delete/").status_code == 200 and not endpoint.is_deleted
    client.post(f"{here}delete/")
    assert client.get(here).status_code == 404
    acts = [entry.act for entry in AuditEntry.objects.filter(act__startswith="search_endpoint").order_by("pk")]
    assert acts == [f"search_endpoint.{act}" for act in ("added", "tested", "changed", "deleted")]
    assert SECRET not in str(list(AuditEntry.objects.values_list("details", flat=True)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_form_of_each_kind_saves_what_it_shows(client, olga, settings, kind):
    settings.SEARCH_HOSTS = frozenset({"127.0.0.1:9200"})
    plain = {"method": "GET", "path": "/s?q={{query}}", "hits": "h", "id": "i", "text": "t"} if kind == "http" else {}
    values = {"name": "shop", "base_url": "http://127.0.0.1:9200", "index": "goods", "parameters": "application = APP"}
    address = reverse("add_search_endpoint", args=[kind])
    assert client.get(address).status_code == 200
    client.post(address, {**values, **plain, "timeout_s": 10})
    endpoint = SearchEndpoint.objects.get()
    before, here = endpoint.settings, reverse("search_endpoint", args=[endpoint.pk])
    form = client.get(here).context["form"]
    response = client.post(here, {name: form[name].value() or "" for name in form.fields})
    assert response.status_code == 302, response.context["form"].errors
    endpoint.refresh_from_db()
    assert endpoint.settings == before
    assert not AuditEntry.objects.filter(act="search_endpoint.changed").exists()


def test_a_refused_form_is_kept_and_nothing_is_stored(client, olga, engine, shop):
    address = reverse("add_search_endpoint", args=["http"])
    response = client.post(address, {**as_form(shop), "body": '{"q": "{{quer}}"}', "name": "kept"})
    assert response.status_code == 422 and list(response.context["form"].errors) == ["body"]
    assert 'value="kept"' in response.text
    assert not SearchEndpoint.objects.exists()
    client.post(address, as_form(shop))
    again = client.post(address, as_form(shop))
    assert again.status_code == 422 and list(again.context["form"].errors) == ["name"]
    assert SearchEndpoint.objects.count() == 1


def test_a_test_that_fails_shows_one_line(client, olga, engine, shop):
    engine.plan("html", "<html>", media="text/html")
    client.post(reverse("add_search_endpoint", args=["http"]), as_form({**shop, "timeout_s": 0.8}))
    here = reverse("test_search_endpoint", args=[SearchEndpoint.objects.get().pk])
    for query, delay in (("html", 0.0), ("slow", 1.0), ("", 0.0)):
        engine.delay = delay
        response = client.post(here, {"query": query, "k": 3})
        assert response.status_code == 422 and ('id="failure"' in response.text) == bool(query)


def literal(value: Any) -> str:
    """A value as TOML has it."""
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{ " + ", ".join(f'"{name}" = {json.dumps(text)}' for name, text in value.items()) + " }"


def write_file(path: Path, *tables: dict[str, Any], more: str = "") -> str:
    lines = []
    for table in tables:
        lines += ["[[endpoint]]", *(f"{key} = {literal(value)}" for key, value in table.items())]
    path.write_text("\n".join([*lines, more]))
    return str(path)


def search_endpoints(*arguments: object, code: int = 0) -> tuple[str, str]:
    ended = call("search_endpoints", *arguments)
    assert ended.code == code and SECRET not in ended.out + ended.err
    return ended.out, ended.err


def test_an_endpoint_is_added_changed_listed_tested_and_deleted(engine, shop, tmp_path):
    file = write_file(tmp_path / "F.toml", shop)
    assert "shop: added" in search_endpoints("add", file)[0]
    assert "shop: unchanged" in search_endpoints("add", file)[0]
    assert "shop: changed" in search_endpoints("add", write_file(tmp_path / "F.toml", {**shop, "timeout_s": 5}))[0]
    assert engine.address in search_endpoints("list")[0]
    out, _err = search_endpoints("test", "shop", "--query", "warm boots", "--k", "2", "--json")
    document = json.loads(out)
    assert [hit["id"] for hit in document["hits"]] == ["1", "2"]
    assert document["request"]["body"] == '{"q": "warm boots", "n": 2}'
    search_endpoints("delete", "shop")
    assert "shop" in search_endpoints("test", "shop", "--query", "x", code=2)[1]
    acts = [entry.act for entry in AuditEntry.objects.order_by("pk")]
    assert acts == [f"search_endpoint.{act}" for act in ("added", "changed", "tested", "deleted")]
    assert SECRET not in json.dumps(list(SearchEndpoint.objects.values_list("settings", flat=True)))


def test_a_file_with_one_mistake_adds_nothing_and_names_the_line(shop, tmp_path):
    wrong = {**shop, "name": "other", "hits": "a["}
    _out, err = search_endpoints("add", write_file(tmp_path / "F.toml", shop, wrong), code=2)
    assert "F.toml, line 23: hits" in err and not SearchEndpoint.objects.exists()
    for tables, more, word in (
        ((shop,), "colour = 1", "colour"),
        ((), "[endpoint]\nname = 1", "[[endpoint]]"),
        ((shop, shop), "", "two endpoints"),
        ((shop,), "[x", "TOML"),
        ((shop,), "[more]\na = 1", "more"),
        (({key: value for key, value in shop.items() if key != "path"},), "", "path"),
    ):
        assert word in search_endpoints("add", write_file(tmp_path / "F.toml", *tables, more=more), code=2)[1]
    assert "cannot be read" in search_endpoints("add", str(tmp_path / "none.toml"), code=2)[1]
    assert not SearchEndpoint.objects.exists() and not AuditEntry.objects.exists()


def test_a_test_that_fails_ends_with_2_and_one_line(engine, shop, tmp_path):
    search_endpoints("add", write_file(tmp_path / "F.toml", shop))
    engine.plan("html", "<html>", media="text/html")
    out, err = search_endpoints("test", "shop", "--query", "html", code=2)
    assert "HTML" in err and err.count("\n") == 1 and "POST" in out
    engine.plan("poor", {"results": [{"id": 1, "x": 2}]})
    assert "text" in search_endpoints("test", "shop", "--query", "poor", code=2)[1]
    assert "query" in search_endpoints("test", "shop", code=2)[1]
    assert "query" in search_endpoints("list", "--query", "x", code=2)[1]
    assert "file" in search_endpoints("add", code=2)[1]
