"""Rows for tests: plain functions with sensible defaults. Actors are Alice, Bob and Charlie."""

from hashlib import sha256
from itertools import count

from django.test import Client

from annotation.models import Membership, Role, User
from benchmark.models import SearchEndpoint
from benchmark.search_endpoints.options import EndpointOptions
from corpus.models import Assessor, Collection, Document, Item, Pair, Query

_numbers = count(1)


def make_collection(name: str | None = None, **values: object) -> Collection:
    """A collection with binary grades and without audits, which takes grades at any speed, unless told otherwise."""
    values.setdefault("min_judgment_ms", 0)
    values.setdefault("grades", 1)
    values.setdefault("audit", 0.0)
    return Collection.objects.create(name=name or f"collection-{next(_numbers)}", **values)


def make_document(
    collection: Collection, text: str = "A mapping object maps hashable values.", **values: object
) -> Document:
    external_id = values.pop("external_id", None) or f"d{next(_numbers)}"
    digest = sha256(f"{external_id}{values.get('title', '')}{text}".encode()).hexdigest()
    return Document.objects.create(
        collection=collection, external_id=external_id, text=text, content_hash=digest, **values
    )


def make_query(collection: Collection, text: str = "What does a mapping map?", **values: object) -> Query:
    """A current query with one answer."""
    external_id = values.pop("external_id", None) or f"q{next(_numbers)}"
    values.setdefault("answers", ["It maps hashable values to objects."])
    digest = sha256(f"{external_id}{text}".encode()).hexdigest()
    return Query.objects.create(
        collection=collection, external_id=external_id, text=text, content_hash=digest, **values
    )


def make_pair(collection: Collection, query: Query | None = None, document: Document | None = None) -> Pair:
    return Pair.objects.create(
        collection=collection, query=query or make_query(collection), document=document or make_document(collection)
    )


def make_item(pair: Pair, reason: str = "disagreement", **values: object) -> Item:
    values.setdefault("place", next(_numbers))
    return Item.objects.create(collection=pair.collection, pair=pair, reason=reason, **values)


def make_user(username: str, **values: object) -> User:
    """An account whose password is the user name and "-password"."""
    return User.objects.create_user(username=username, password=f"{username}-password", **values)


def make_member(collection: Collection, username: str, role: Role = Role.ANNOTATOR) -> Membership:
    """A user (made when missing) with a role in the collection."""
    user = User.objects.filter(username=username).first() or make_user(username)
    assessor = Assessor.objects.create(collection=collection, kind=Assessor.Kind.PERSON, name=username)
    return Membership.objects.create(user=user, collection=collection, role=role, assessor=assessor)


def client_of(member: Membership) -> Client:
    """A browser in which the member is signed in."""
    client = Client()
    client.force_login(member.user)
    return client


def make_endpoint(name: str = "shop", **keys: object) -> SearchEndpoint:
    """A search endpoint of the site: OpenSearch at a public address, unless told otherwise."""
    usual = {"name": name, "kind": "opensearch", "base_url": "https://search.example.org", "index": "goods"}
    options = EndpointOptions.read({**usual, **keys})
    return SearchEndpoint.objects.create(name=name, kind=options.kind, settings=options.complete_settings())
