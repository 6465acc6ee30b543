"""Requests and answers of the model endpoint, in the formats of Cohere, Jina, TEI and OpenAI (pydantic)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, Strict, Tag, model_validator

MOST_BYTES = 16 * 2**20
MOST_DOCUMENTS = 1000
MOST_TEXTS = 2048
# The most documents of a request with evidence, since writing takes far longer than scoring.
MOST_WRITTEN = 20
# Tokens of a written answer: the default, and the maximum.
NEW_TOKENS, MOST_NEW_TOKENS = 512, 4096
RERANK_PATH, EMBEDDINGS_PATH = "/v1/rerank", "/v1/embeddings"

# A field's description completes the sentence "<name> must be ..." in the error message of an invalid request.
NON_BLANK, FLAG, COUNT = "a string that is not empty", "true or false", "a whole number from 1"
ITEMS = {"documents": "a string, or an object whose text is a string", "texts": "a string", "rank_fields": "a string"}
NonBlank = Annotated[str, Strict(), Field(min_length=1, pattern=r"\S")]
Flag = Annotated[bool, Strict()]
Count = Annotated[int, Strict(), Field(ge=1)]


@dataclass(frozen=True, slots=True)
class ServingRequest:
    """A query with its documents, each cut after `document_tokens` tokens (0: at the model's limit)."""

    query: str
    documents: Sequence[str]
    instruction: str = ""
    document_tokens: int = 0


class RerankBody(BaseModel):
    """A request of Cohere's and Jina's clients, and what only this endpoint knows."""

    query: NonBlank = Field(description=NON_BLANK)
    documents: list[str | dict[str, Any]] = Field(
        min_length=1, max_length=MOST_DOCUMENTS, description="a list that is not empty"
    )
    model: str | None = Field(None, description="a string; one model is served, whatever is named")
    top_n: Count | None = Field(None, description=COUNT)
    return_documents: Flag | None = Field(False, description=FLAG)
    rank_fields: list[str] | None = Field(None, description="a list of names of the documents' fields")
    max_tokens_per_doc: Count | None = Field(None, description=COUNT)
    instruction: str | None = Field(None, description="a string: what relevant means")
    score: Literal["calibrated", "raw"] = Field("calibrated", description='"calibrated" or "raw"')
    return_evidence: Flag | None = Field(False, description=FLAG)
    max_new_tokens: Annotated[int, Strict(), Field(ge=1, le=MOST_NEW_TOKENS)] | None = Field(
        None, description=f"a whole number from 1 to {MOST_NEW_TOKENS}"
    )

    @model_validator(mode="after")
    def check_together(self) -> "RerankBody":
        """Refuse documents without a text, and evidence for too many."""
        for index in range(len(self.documents)):
            self.text_of(index)
        if self.return_evidence and self.top > MOST_WRITTEN:
            raise ValueError(f"return_evidence is answered for at most {MOST_WRITTEN} documents: give a smaller top_n")
        return self

    @property
    def top(self) -> int:
        """The number of results to return."""
        return min(self.top_n or len(self.documents), len(self.documents))

    def text_of(self, index: int) -> str:
        """Return the text of a document that is scored: the document itself, or its `rank_fields` in their order."""
        document = self.documents[index]
        if isinstance(document, str):
            return document
        names = self.rank_fields or ["text"]
        values = [document[name] for name in names if name in document]
        if not values or not all(isinstance(value, str | int | float) for value in values):
            raise ValueError(
                f"documents[{index}] must be a string, or an object whose {' or '.join(names)} is a string"
            )
        return "\n".join(map(str, values))

    def request(self) -> ServingRequest:
        """Return the request to the scorer."""
        texts = [self.text_of(index) for index in range(len(self.documents))]
        return ServingRequest(self.query, texts, self.instruction or "", self.max_tokens_per_doc or 0)


class TextsBody(BaseModel):
    """A request of TEI's clients."""

    query: NonBlank = Field(description=NON_BLANK)
    texts: list[Annotated[str, Strict()]] = Field(
        min_length=1, max_length=MOST_DOCUMENTS, description="a list that is not empty"
    )
    raw_scores: Flag = Field(False, description=FLAG)
    return_text: Flag = Field(False, description=FLAG)
    truncate: Flag | None = Field(None, description="true or false; texts are always cut, and those that were say so")

    def request(self) -> ServingRequest:
        """Return the request to the scorer."""
        return ServingRequest(self.query, self.texts)


AnyRerankBody = Annotated[
    Annotated[RerankBody, Tag("documents")] | Annotated[TextsBody, Tag("texts")],
    Discriminator(lambda body: "texts" if isinstance(body, dict) and "texts" in body else "documents"),
]


class EmbeddingsBody(BaseModel):
    """A request of OpenAI's clients for vectors."""

    input: NonBlank | list[NonBlank] = Field(description="a string that is not empty, or a list of such")
    model: str | None = Field(None, description="a string; one model is served, whatever is named")
    encoding_format: Literal["float", "base64"] = Field("float", description='"float" or "base64"')

    @model_validator(mode="after")
    def check_count(self) -> "EmbeddingsBody":
        """Refuse an empty list of texts, and too many texts."""
        if not self.texts:
            raise ValueError("input must be a string that is not empty, or a list of such")
        if len(self.texts) > MOST_TEXTS:
            raise ValueError(f"{len(self.texts)} texts: at most {MOST_TEXTS} in one request")
        return self

    @property
    def texts(self) -> list[str]:
        return [self.input] if isinstance(self.input, str) else self.input


class RerankResult(BaseModel):
    """A document's score. `is_cut`: longer than the model reads, scored without its end."""

    index: int
    relevance_score: float
    margin: float
    is_cut: bool
    document: dict[str, Any] | None = None
    contribution: str | None = None
    evidence: str | None = Field(
        default=None, description='"" where there is none; null where it was cut before it began'
    )
    evidence_cut: bool | None = Field(
        default=None, description="whether the model ran out of tokens before it was done"
    )


class RerankAnswer(BaseModel):
    """Results as both clients read them: Cohere's id and meta, Jina's model and usage."""

    id: str
    model: str
    results: list[RerankResult]
    usage: dict[str, int]
    meta: dict[str, Any]


class TextResult(BaseModel):
    """The score of a text, as TEI gives it."""

    index: int
    score: float
    margin: float
    is_cut: bool
    text: str | None = None


class Problem(BaseModel):
    """Reason why a request was refused: `message` for Cohere's client, `detail` for others."""

    message: str
    detail: str


def explain(problem: Mapping[str, Any]) -> str:
    """Return the error message of a body that pydantic refuses; `problem`: one of its errors."""
    location = list(problem["loc"][1:])
    # The first part of a location in the body of /rerank is the tag of one of its two forms.
    if len(location) > 1 and location[0] in ("documents", "texts") and isinstance(location[1], str):
        location = location[1:]
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    if not location:
        return "the body must be a JSON object"
    name = str(location[0])
    if len(location) > 1 and isinstance(location[1], int) and name in ITEMS:
        return f"{name}[{location[1]}] must be {ITEMS[name]}"
    if problem["type"] == "too_long":
        return f"{problem['ctx']['actual_length']} {name}: at most {problem['ctx']['max_length']} in one request"
    forms = (RerankBody, TextsBody, EmbeddingsBody)
    return f"{name} must be " + next(
        str(form.model_fields[name].description) for form in forms if name in form.model_fields
    )
