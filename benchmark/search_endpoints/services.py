"""Actions on search endpoints: add, change, delete and test one. Endpoints are the site's: only its owners may."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models.functions import Now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from actions.options import Options, option
from actions.services import Actor, Unchanged, action
from benchmark.models import SearchEndpoint
from benchmark.search_endpoints.hits import describe_shape
from benchmark.search_endpoints.options import EndpointOptions
from benchmark.search_endpoints.searching import EndpointSession, SearchAnswer, SearchFailed, SentRequest
from benchmark.search_endpoints.selectors import endpoints
from corpus.errors import BadInput, BadOption
from corpus.holding import hold_row
from jobs.connections import without_connection

VARIABLES = ("user_env", "password_env", "bearer_env", "api_key_env")


def _note(options: EndpointOptions, endpoint: SearchEndpoint) -> dict[str, Any]:
    """Return the details for the audit log: no path, body or header, which may hold what nobody meant to show."""
    variables = [name for name in (getattr(options, key) for key in VARIABLES) if name]
    return {
        "endpoint": endpoint.name,
        "kind": endpoint.kind,
        "base_url": options.base_url,
        "variables": [*variables, *options.header_env.values()],
    }


@action("search_endpoint.added", role="own-site", noted=_note)
def add_endpoint(actor: Actor, site: None, options: EndpointOptions) -> SearchEndpoint:
    """Add a search endpoint to the site. Raises BadOption for a name that is in use."""
    endpoint, is_new = endpoints().get_or_create(
        name=options.name,
        is_deleted=False,
        defaults={"kind": options.kind, "settings": options.complete_settings(), "made_by": actor.name},
    )
    if not is_new:
        words = _("%(name)s exists. Choose another name, or edit that endpoint.")
        raise BadOption("name", words % {"name": options.name})
    return endpoint


@action("search_endpoint.changed", role="own-site", noted=_note)
def change_endpoint(actor: Actor, endpoint: SearchEndpoint, options: EndpointOptions) -> SearchEndpoint | Unchanged:
    """Change the settings of a search endpoint; runs that were made from it keep theirs. Raises BadOption."""
    hold_row(endpoint)
    if options.name != endpoint.name:
        raise BadOption("name", _("The name of an endpoint cannot be changed. Add another endpoint."))
    settings = options.complete_settings()
    if (endpoint.kind, endpoint.settings) == (options.kind, settings):
        return Unchanged(endpoint)
    endpoint.kind, endpoint.settings, endpoint.changed_at = options.kind, settings, Now()
    endpoint.save(update_fields=["kind", "settings", "changed_at"])
    return endpoint


@action("search_endpoint.deleted", role="own-site", noted=lambda options, endpoint: {"endpoint": endpoint.name})
def delete_endpoint(actor: Actor, endpoint: SearchEndpoint) -> SearchEndpoint:
    """Delete a search endpoint: its name can be used again, and its runs stay."""
    hold_row(endpoint)
    endpoint.is_deleted = True
    endpoint.save(update_fields=["is_deleted"])
    return endpoint


class EndpointTestOptions(Options):
    """A query for testing a search endpoint."""

    query: str = option(gettext_lazy("Query"), at_least=1, at_most=2000)
    k: int = option(gettext_lazy("Hits"), default=10, ge=1, le=100)


@dataclass(frozen=True, slots=True)
class EndpointTest:
    """What a test shows: request, the answer if one came, its shape, and what to change, a line each."""

    query: str
    request: SentRequest | None
    answer: SearchAnswer | None
    failure: str = ""
    problems: list[str] = field(default_factory=list)
    shape: Any = None

    @property
    def is_usable(self) -> bool:
        """Whether there are hits that people and judges could read."""
        return self.answer is not None and any(hit.text for hit in self.answer.page.hits)

    @property
    def shape_text(self) -> str:
        """The shape of the answer as indented JSON; "" where no JSON came."""
        return json.dumps(self.shape, ensure_ascii=False, indent=2) if self.shape is not None else ""


def try_endpoint(actor: Actor, endpoint: SearchEndpoint, options: EndpointTestOptions) -> EndpointTest:
    """Send one query to an endpoint, and return what came; a failure is part of the result."""
    actor.check("own-site")
    # Not within the transaction of the entry in the audit log: an engine may take its time.
    with without_connection():
        result = asyncio.run(ask_endpoint(endpoint.settings, options.query, options.k))
    note_test(actor, endpoint, result)
    return result


@action(
    "search_endpoint.tested",
    role="own-site",
    noted=lambda result, endpoint: {"endpoint": endpoint.name, "passes": result.is_usable},
)
def note_test(actor: Actor, endpoint: SearchEndpoint, result: EndpointTest) -> SearchEndpoint:
    """Note in the audit log that somebody tested an endpoint."""
    return endpoint


async def ask_endpoint(settings: Mapping[str, Any], query: str, k: int) -> EndpointTest:
    """Send one query with the settings of an endpoint."""
    request = None
    try:
        async with EndpointSession(settings, connections=1) as session:
            request, _body = session.build_request(query, k)
            answer = await session.search(query, k)
            document = json.loads(answer.raw)
            problems = [f"{name}: {sentence}" for name, sentence in session.mapping.problems(document, answer.page)]
    except SearchFailed as failure:
        return EndpointTest(query, request, failure.answer, f"{failure}.", shape=_shape_of(failure.answer))
    except BadInput as error:
        return EndpointTest(query, request, None, f"{error}.")
    if not answer.page.hits and not problems:
        problems = [_("The engine has no hits for this query. Try another one, or check the index.")]
    return EndpointTest(query, request, answer, problems=problems, shape=describe_shape(document))


def _shape_of(answer: SearchAnswer | None) -> Any:
    """Return the shape of an answer without hits; None where it is no JSON."""
    try:
        return None if answer is None else describe_shape(json.loads(answer.raw))
    except (ValueError, RecursionError):
        return None
