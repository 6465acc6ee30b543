"""The command `search_endpoints`: a file is added whole or not at all, acts are in the audit log, no key is shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.models import AuditEntry
from benchmark.models import SearchEndpoint
from tests.benchmark.search_endpoints.conftest import KEY
from tests.called import call

pytestmark = pytest.mark.django_db
SECRET = KEY.removeprefix("Bearer ")


def literal(value: Any) -> str:
    """A value as TOML has it."""
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{ " + ", ".join(f'"{name}" = {json.dumps(text)}' for name, text in value.items()) + " }"


def write(path: Path, *tables: dict[str, Any], more: str = "") -> str:
    lines = []
    for table in tables:
        lines += ["[[endpoint]]", *(f"{key} = {literal(value)}" for key, value in table.items())]
    path.write_text("\n".join([*lines, more]))
    return str(path)


def run(*arguments: object, code: int = 0) -> tuple[str, str]:
    ended = call("search_endpoints", *arguments)
    assert ended.code == code and SECRET not in ended.out + ended.err
    return ended.out, ended.err


def test_an_endpoint_is_added_changed_listed_tested_and_deleted(engine, shop, tmp_path):
    file = write(tmp_path / "F.toml", shop)
    assert "shop: added" in run("add", file)[0]
    assert "shop: unchanged" in run("add", file)[0]
    assert "shop: changed" in run("add", write(tmp_path / "F.toml", {**shop, "timeout_s": 5}))[0]
    assert engine.address in run("list")[0]
    out, _err = run("test", "shop", "--query", "warm boots", "--k", "2", "--json")
    document = json.loads(out)
    assert [hit["id"] for hit in document["hits"]] == ["1", "2"]
    assert document["request"]["body"] == '{"q": "warm boots", "n": 2}'
    run("delete", "shop")
    assert "shop" in run("test", "shop", "--query", "x", code=2)[1]
    acts = [entry.act for entry in AuditEntry.objects.order_by("pk")]
    assert acts == [f"search_endpoint.{act}" for act in ("added", "changed", "tested", "deleted")]
    assert SECRET not in json.dumps(list(SearchEndpoint.objects.values_list("settings", flat=True)))


def test_a_file_with_one_mistake_adds_nothing_and_names_the_line(shop, tmp_path):
    wrong = {**shop, "name": "other", "hits": "a["}
    _out, err = run("add", write(tmp_path / "F.toml", shop, wrong), code=2)
    assert "F.toml, line 23: hits" in err and not SearchEndpoint.objects.exists()
    for tables, more, word in (
        ((shop,), "colour = 1", "colour"),
        ((), "[endpoint]\nname = 1", "[[endpoint]]"),
        ((shop, shop), "", "two endpoints"),
        ((shop,), "[x", "TOML"),
        ((shop,), "[more]\na = 1", "more"),
        (({key: value for key, value in shop.items() if key != "path"},), "", "path"),
    ):
        assert word in run("add", write(tmp_path / "F.toml", *tables, more=more), code=2)[1]
    assert "cannot be read" in run("add", str(tmp_path / "none.toml"), code=2)[1]
    assert not SearchEndpoint.objects.exists() and not AuditEntry.objects.exists()


def test_a_test_that_fails_ends_with_2_and_one_line(engine, shop, tmp_path):
    run("add", write(tmp_path / "F.toml", shop))
    engine.plan("html", "<html>", media="text/html")
    out, err = run("test", "shop", "--query", "html", code=2)
    assert "HTML" in err and err.count("\n") == 1 and "POST" in out
    engine.plan("poor", {"results": [{"id": 1, "x": 2}]})
    assert "text" in run("test", "shop", "--query", "poor", code=2)[1]
    assert "query" in run("test", "shop", code=2)[1]
    assert "query" in run("list", "--query", "x", code=2)[1]
    assert "file" in run("add", code=2)[1]
