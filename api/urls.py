"""The API at /api/v1/: its document at openapi.json, its page at docs."""

from typing import Any

from django.urls import URLPattern, URLResolver, path
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from api.authentication import TokenThrottle
from api.page import views
from api.problems import JSON, handle_problems
from api.routes import campaigns, collections, files, results, tasks


class QuorumAPI(NinjaAPI):
    """The API, whose document says that refusals are problem+json."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        """Return the OpenAPI document."""
        document = super().get_openapi_schema(**options)
        for operations in document["paths"].values():
            for operation in operations.values():
                for status, answer in operation["responses"].items():
                    if int(status) >= 400:
                        answer["content"] = {JSON: answer["content"]["application/json"]}
        return document


api = QuorumAPI(
    title="Quorum",
    version="1",
    description="Relevance annotation by people and models. Errors are problem+json in the words of the commands.",
    throttle=[TokenThrottle()],
    urls_namespace="api",
)
for one in (collections, tasks, campaigns, files, results):
    api.add_router("", one.router)
handle_problems(api)

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", api.urls),
    path("accounts/tokens/", views.tokens, name="tokens"),
    path("accounts/tokens/<int:token>/revoke/", views.revoke, name="revoke_token"),
]
