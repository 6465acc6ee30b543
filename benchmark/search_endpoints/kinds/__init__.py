"""Kinds of search engines: how each is asked and how its hits are read, as data in one TOML file per kind."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, Strict

from judges.presets.record import Fact, Texts

KindName = Literal[
    "opensearch", "elasticsearch", "solr", "vespa", "typesense", "meilisearch", "qdrant", "weaviate", "chroma",
    "algolia", "http",
]  # fmt: skip


class KindSettings(BaseModel):
    """Values that an endpoint of the kind has where its file names no others (benchmark.search_endpoints.options)."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    method: Literal["GET", "POST"] = "POST"
    path: str = ""
    body: str = ""
    hits: str = ""
    id: str = ""
    title: str = ""
    text: Texts = ()
    score: str = ""
    error: str = ""  # JMESPath of what an answer with status 200 says of its own failure.
    partial: str = ""  # JMESPath that is true of an answer with status 200 for which not all documents were searched.
    parameters: dict[str, Any] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)  # Templates of parameters.


class EndpointKind(BaseModel):
    """Value of `kind` in a search endpoint file, read from the TOML file of its name beside this module."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    name: str
    title: str  # The engine's name for people.
    documented: str  # The version whose documentation the facts are from.
    base_url: str = ""  # An example.
    needs: Texts = ()  # Options that an endpoint of this kind must have: index, text, or the name of a parameter.
    # The header of an API key (`api_key_env`), and what stands before the key in it; "": the engine has none.
    key_header: str = ""
    key_prefix: str = ""
    max_k: int = 10_000  # Most hits that one request returns.
    settings: KindSettings
    facts: Annotated[tuple[Fact, ...], Strict(False)] = ()


KINDS = {
    name: EndpointKind.model_validate(
        {"name": name, **tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))}
    )
    for name in get_args(KindName)
}
