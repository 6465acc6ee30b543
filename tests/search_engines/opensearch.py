"""OpenSearch 3.3: https://docs.opensearch.org/latest/api-reference/search-apis/search/.

It searches as Elasticsearch does, and signs in otherwise.
"""

from tests.search_engines.base import INDEX, Refusal, basic
from tests.search_engines.elasticsearch import Elasticsearch
from tests.search_engines.server import Request


class OpenSearch(Elasticsearch):
    kind = "opensearch"
    version = "3.3"
    documentation = "https://docs.opensearch.org/latest/api-reference/search-apis/search/"
    options = {"index": INDEX, "user_env": "ENGINE_USER", "password_env": "ENGINE_KEY"}

    def sign_in(self, request: Request) -> None:
        """Raise Refusal without user and password: the security plugin answers with a plain word."""
        if request.headers.get("authorization") != basic():
            raise Refusal(401, "Unauthorized", "text/plain")
