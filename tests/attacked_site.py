"""A site of which every text that anybody may have written is hostile, and a reader of its pages. For tests."""

from collections.abc import Iterator
from html.parser import HTMLParser

import pgtrigger
from django.apps import apps
from django.db import models
from django.db.models import Value
from django.db.models.functions import Cast, Concat

from annotation.models import Role
from corpus.models import Assessor, Document, Query
from judges.models import JudgeVersion
from tests.evidence import make_campaign, make_judge, make_judgment, make_label, make_turn, make_votes
from tests.factories import make_document, make_item, make_member, make_pair, make_query
from tests.site.test_permissions import World

MARK = "xss-probe"
HTML = f"\"'><{MARK} onfocus=1 style=color:red><script>{MARK}()</script></textarea></title><{MARK}>${{7*7}}{{{{7*7}}}}"
FORMULA = "=HYPERLINK(1,2)"

FIXED = {
    # What the program itself writes and reads: names of files, states, hashes, addresses and keys.
    "folder", "state", "format", "kind", "act", "provider", "panel", "policy", "token", "cache_key", "sha256",
    "content_hash", "api", "url", "base_url", "api_key_env", "request_sha256", "device", "phase", "session_key",
    "outcome", "role", "name_of_file", "recipe", "arm", "step", "reason_code", "password", "ip", "language", "key",
    "stop_reason", "request", "shown_as", "origin", "rung", "side", "section", "media", "unit", "model", "scale",
}  # fmt: skip
APPS = ("corpus", "judges", "annotation", "training", "api")


class Attacked(World):
    """The world of the permission walk with a judged, debated, labelled pair in it, every text of it replaced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        judges = [make_judge(f"judge-{n}") for n in range(5)]
        campaign = make_campaign(self.collection, judges, policy="debate+ensemble")
        for n in range(3):
            pair = make_pair(self.collection, make_query(self.collection), make_document(self.collection))
            make_votes(campaign, pair, judges, [1, 1, 0, 1, 0])
            for side, judge in zip(("for", "against"), judges, strict=False):
                make_turn(campaign, pair, judge, side, 1, n % 2)
            make_label(pair, 1)
            make_item(pair, campaign=campaign.pk, reason="disagreement")
            make_judgment(pair, self.bystander.assessor, 1, comment="a comment")
        conflict = make_item(pair, reason="conflict", state="conflict", campaign=campaign.pk)
        second = make_member(self.collection, "second", Role.ANNOTATOR)
        make_judgment(pair, second.assessor, 0, item=conflict, comment="another")
        poison(text)


def poison(text: str) -> list[str]:
    """Put the text into every column of words, as much of it as fits; the names of the columns."""
    touched = []
    bare = "".join(text.split())[:80]  # ids and names of judges hold no white space
    for model, field in ((Document, "external_id"), (Query, "external_id"), (Assessor, "name"), (JudgeVersion, "name")):
        with pgtrigger.ignore():
            model.objects.update(**{field: Concat(Value(bare), Cast("pk", models.TextField()))})
        touched.append(f"{model.__name__}.{field}")
    for app in APPS:
        for model in filter(lambda model: model._meta.managed, apps.get_app_config(app).get_models()):
            for field in model._meta.concrete_fields:
                if not is_free(field):
                    continue
                with pgtrigger.ignore():
                    model._base_manager.update(**{field.name: text[: field.max_length] if field.max_length else text})
                touched.append(f"{model.__name__}.{field.name}")
    return touched


def is_free(field: models.Field) -> bool:
    """A column whose words come from people, judges or files."""
    words = isinstance(field, models.CharField | models.TextField) and not isinstance(field, models.EmailField)
    return words and not (field.choices or field.unique or field.name in FIXED or field.name in ("name", "external_id"))


class Reader(HTMLParser):
    """What a browser would make of a page: elements with the mark, handlers, inline scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.source: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.found += [f"<{tag}>"] if tag == MARK else []
        self.found += [f"{name}=" for name in given if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action", "formaction", "hx-get", "hx-post"):
            scheme = (given.get(name) or "").strip().lower().split(":")[0]
            self.found += [f"{name}={scheme}:"] if scheme in ("javascript", "data", "vbscript") else []
        if tag in ("script", "style"):
            self.found += [f"<{tag}> inline"] if "src" not in given else []


def dangers(page: str) -> list[str]:
    """Everything on the page that the policy forbids or that somebody smuggled in; empty is good."""
    reader = Reader()
    reader.feed(page)
    return sorted(set(reader.found))


def pages(world: World, who: str, query: str = "") -> Iterator[tuple[str, str]]:
    """(address, HTML) of every page that answers this person."""
    from tests.site.test_permissions import routes

    client = world.client(who)
    for route in routes(world):
        response = client.get(route.path + query)
        if response.headers.get("Content-Type", "").startswith("text/html"):
            yield route.path, response.content.decode()
