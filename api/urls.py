"""URLs of the API at /api/v1/, with its OpenAPI document (openapi.json) and reference page (docs)."""

import re
from codecs import BOM_UTF8
from typing import Any

from django.conf import settings as site
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, get_script_prefix, path, re_path
from django.utils import translation
from django.utils.cache import set_response_etag
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation
from ninja.parser import Parser
from pydantic_core import from_json

from annotation.access.audit_log import api as audit_log
from annotation.agreement import api as agreement
from annotation.data import api as data
from annotation.data.bulk import api as bulk
from annotation.data.imports import api as imports
from annotation.exports import api as exports
from annotation.home.campaigns import api as campaigns
from annotation.home.judge_setup import api as judge_setup
from annotation.home.overview import api as dashboard
from annotation.people import api as people
from annotation.quality.label_quality import api as label_quality
from annotation.work.adjudication import api as adjudication
from annotation.work.comparing import api as comparing
from annotation.work.judging import api as judging
from api import views
from api.authentication import AccessTokenAuth, Replayed, TokenThrottle
from api.etags import IF_MATCH
from api.problems import answer_not_found, describe_problems, handle_problems
from api.reference import views as reference
from api.webhooks import api as webhooks
from api.webhooks import urls as webhook_pages
from benchmark.gate import api as gate
from benchmark.hole_filling import api as hole_filling
from benchmark.qrels import api as qrels
from benchmark.report import api as report
from benchmark.runs import api as runs
from training.jobs import api as trainings

# In the order of the reference page.
ROOMS = (
    dashboard, data, bulk, people, judging, comparing, adjudication, judge_setup, campaigns, label_quality,
    agreement, imports, exports, audit_log, runs, qrels, report, hole_filling, gate, trainings, webhooks,
)  # fmt: skip


class StorableParser(Parser):
    """Parser of JSON bodies that refuses lone surrogates, which json.loads accepts and PostgreSQL cannot store."""

    def parse_body(self, request: HttpRequest) -> Any:
        # Like json.loads, accept the byte order mark that some programs send.
        return from_json(request.body.removeprefix(BOM_UTF8))


class ApiDocument(OpenAPISchema):
    """OpenAPI document whose operations name the scope that a token needs, and who may call them."""

    def operation_details(self, operation: Operation) -> dict[str, Any]:
        """Describe an operation."""
        auth = next(auth for auth in operation.auth_callbacks if isinstance(auth, AccessTokenAuth))
        details = super().operation_details(operation)
        # Exceptions are for readers of the code: a client sees the errors of the responses.
        text = re.sub(r"\s*Raises [^.]*\.", "", details.get("description", ""))
        return {**details, "description": text, "x-scope": auth.scope, "x-role": auth.action}


class QuorumAPI(NinjaAPI):
    """The API of Quorum, whose document describes If-Match of changes and refusals as problem+json."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._documents: dict[str, OpenAPISchema] = {}

    def create_response(self, request: HttpRequest, data: Any, **options: Any) -> HttpResponse:
        """Return an operation's response; that of a PATCH has the ETag of a read after it."""
        response = super().create_response(request, data, **options)
        if request.method == "GET":
            # Only the client may cache it, and must revalidate it each time.
            response["Cache-Control"] = "private, no-cache"
        elif request.method == "PATCH" and response.status_code == 200:
            set_response_etag(response)
        return response

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        """Return the OpenAPI document, cached for the life of the process; do not change it."""
        # Building it takes seconds, and the reference page, tools and tests request it often.
        key = str((get_script_prefix(), sorted(options.items())))
        if key in self._documents:
            return self._documents[key]
        # In English for every reader: it is the same document for all.
        with translation.override("en"):
            document = self._documents[key] = ApiDocument(self, options.get("path_prefix") or self.get_root_path({}))
        describe_problems(document)
        operations = [operation for path in document["paths"].values() for operation in path.items()]
        for method, operation in operations:
            changes = method == "patch" and 200 in operation["responses"]
            if changes:
                operation["responses"][200]["headers"] = {"ETag": {"schema": {"type": "string"}}}
            # A DELETE whose response has headers is that of an upload: tus does not use If-Match.
            if changes or (method == "delete" and "headers" not in operation["responses"].get(204, {})):
                header = {"name": IF_MATCH, "in": "header", "schema": {"type": "string"}}
                operation.setdefault("parameters", []).append(header)
        return document


api = QuorumAPI(
    title="Quorum",
    version=site.VERSION,
    description="Relevance annotation by people and models. Errors follow RFC 9457 (problem+json).",
    parser=StorableParser(),
    throttle=[TokenThrottle()],
    urls_namespace="api",
)
for room in ROOMS:
    api.add_router("", room.router)
handle_problems(api)
# A repeated request gets its stored answer.
api.add_exception_handler(Replayed, lambda request, error: error.answer)  # type: ignore[misc]
operations, api_name, api_namespace = api.urls

urlpatterns: list[URLPattern | URLResolver] = [
    # The last pattern matches all other addresses, with any method.
    path("api/v1/", ([*operations, re_path("", answer_not_found)], api_name, api_namespace)),
    path("api-reference/", reference.index, {"api": api}, name="api_reference"),
    path("api-reference/<slug:resource>/", reference.resource, {"api": api}, name="api_resource"),
    path("accounts/tokens/", views.tokens, name="tokens"),
    path("accounts/tokens/<int:token>/revoke/", views.revoke, name="revoke_token"),
    *webhook_pages.urlpatterns,
]
