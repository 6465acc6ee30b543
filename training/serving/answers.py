"""The answers of the model endpoint: scores, written evidence and vectors, in the shapes of several APIs.

Everything that waits for the model raises RequestRefused as `served_model.await_result` does.
"""

import base64
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import uuid4

from fastapi import Request

from corpus.evidence import measures
from training.published.protocol import EmbeddingsBody, RerankAnswer, RerankBody, RerankResult, TextResult, TextsBody
from training.published.scorer import Score
from training.recipes.rendering import RenderedPair
from training.serving.served_model import ServedEmbedder, ServedModel, ServedReranker

CHARACTERS_PER_TOKEN = 4  # An estimate, for the usage that answers report.


async def answer_rerank(
    served: ServedModel, reranker: ServedReranker, body: RerankBody, http_request: Request
) -> RerankAnswer:
    """Score and rank the documents of a request, and write evidence about the best ones if the request asks for it."""
    scorer = reranker.scorer
    request = body.request()
    scores = await reranker.score(request, http_request)
    ranking = rank_by_margin(scores)[: body.top]
    probability = scorer.own_probability if body.score == "raw" else scorer.probability
    results = [_build_result(body, index, scores[index], probability) for index in ranking]
    if body.return_evidence:
        top_request = replace(request, documents=[request.documents[index] for index in ranking])
        written_texts = await reranker.write(top_request, body.max_new_tokens or served.max_new_tokens, http_request)
        for result, written_text in zip(results, written_texts, strict=True):
            evidence = parse_evidence_text(written_text)
            result.contribution = evidence.contribution
            result.evidence = evidence.evidence
            result.evidence_cut = evidence.is_cut
    # The model reads the query with each document.
    characters = sum(map(len, request.documents)) + len(request.query) * len(request.documents)
    return RerankAnswer(
        id=str(uuid4()),
        model=served.name,
        results=results,
        usage={"total_tokens": math.ceil(characters / CHARACTERS_PER_TOKEN)},
        meta={
            "api_version": {"version": "1"},
            "billed_units": {"search_units": 0},
            "device": served.setup,
            "precision": scorer.precision,
            "threshold": scorer.threshold,
            "cut": sum(score.is_cut for score in scores),
        },
    )


def _build_result(body: RerankBody, index: int, score: Score, probability: Callable[[float], float]) -> RerankResult:
    """Return the result of one document of a request, and with it the document if the request asks for it.

    Fields that are not set do not appear in the response.
    """
    result = RerankResult(
        index=index, relevance_score=probability(score.margin), margin=score.margin, is_cut=score.is_cut
    )
    if body.return_documents:
        document = body.documents[index]
        result.document = document if isinstance(document, dict) else {"text": document}
    return result


async def answer_texts(reranker: ServedReranker, body: TextsBody, http_request: Request) -> list[TextResult]:
    """Score and rank the texts of a request, in the format of TEI."""
    scores = await reranker.score(body.request(), http_request)
    results = []
    for index in rank_by_margin(scores):
        margin, is_cut = scores[index]
        score = margin if body.raw_scores else reranker.scorer.probability(margin)
        result = TextResult(index=index, score=score, margin=margin, is_cut=is_cut)
        if body.return_text:
            result.text = body.texts[index]
        results.append(result)
    return results


def rank_by_margin(scores: Sequence[Score]) -> list[int]:
    """Return the positions of the scores, best first.

    The margins are compared, because probabilities near 1 round to the same number.
    """
    return sorted(range(len(scores)), key=lambda index: (-scores[index].margin, index))


async def answer_embeddings(
    served: ServedModel, embedder: ServedEmbedder, body: EmbeddingsBody, http_request: Request
) -> dict[str, Any]:
    """Return the vectors of the texts of a request in the format of OpenAI, as lists of numbers or in base64."""
    vectors, token_count = await embedder.embed(body.texts, http_request)
    embeddings: list[Any]
    if body.encoding_format == "base64":
        # OpenAI's clients read base64 as little-endian fp32.
        embeddings = [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
    else:
        embeddings = vectors.astype(float).tolist()
    return {
        "object": "list",
        "model": served.name,
        "data": [
            {"object": "embedding", "index": index, "embedding": embedding}
            for index, embedding in enumerate(embeddings)
        ],
        "usage": {"prompt_tokens": token_count, "total_tokens": token_count},
    }


class EvidenceFields(NamedTuple):
    """The contribution and the evidence that a model wrote about a document.

    A field is empty if the model wrote none. It is None if the model ran out of tokens before the field began.
    """

    contribution: str | None
    evidence: str | None
    is_cut: bool  # Whether the model ran out of tokens before the evidence ended.


def parse_evidence_text(written_text: RenderedPair) -> EvidenceFields:
    """Return the contribution and the evidence in a text that a model wrote.

    Both are empty if the model answers that the document is not relevant, or in an unexpected form. In a text that was
    cut off, the last field contains what was written of it.
    """
    parsed = measures.parse_output(written_text.text)
    if not written_text.is_cut or parsed.verdict != 1 or parsed.evidence is not None:
        return EvidenceFields(parsed.contribution or "", parsed.evidence or "", is_cut=False)
    closed = measures.parse_output(measures.close_fields(written_text.text))
    return EvidenceFields(closed.contribution or None, closed.evidence or None, is_cut=True)
