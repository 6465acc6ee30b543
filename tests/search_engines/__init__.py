"""Look-alikes of search engines: each answers as its engine's documentation says, and refuses what the engine refuses.

One file per kind names the version of the documentation and its address; all search the same few books.
"""

from tests.search_engines.algolia import Algolia
from tests.search_engines.base import LookAlike
from tests.search_engines.chroma import Chroma
from tests.search_engines.elasticsearch import Elasticsearch
from tests.search_engines.http import Http
from tests.search_engines.meilisearch import Meilisearch
from tests.search_engines.opensearch import OpenSearch
from tests.search_engines.qdrant import Qdrant
from tests.search_engines.solr import Solr
from tests.search_engines.typesense import Typesense
from tests.search_engines.vespa import Vespa
from tests.search_engines.weaviate import Weaviate

LOOK_ALIKES: dict[str, type[LookAlike]] = {
    engine.kind: engine
    for engine in (
        OpenSearch, Elasticsearch, Solr, Vespa, Typesense, Meilisearch, Qdrant, Weaviate, Chroma, Algolia, Http,
    )
}  # fmt: skip
