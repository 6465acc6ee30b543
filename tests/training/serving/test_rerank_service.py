"""`serve_model`: /v1/rerank as Cohere, Jina, TEI ask, /v1/embeddings as OpenAI does; in parallel, beyond its limit."""

import asyncio
import base64
import gzip
import json
import math
import os
import socket
import time
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path
from threading import Event, Lock
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import httpx2
import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from openai import OpenAI
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from transformers import AutoModel, AutoTokenizer

from benchmark.models import Ranking
from benchmark.runs import rankings
from corpus.errors import BadInput
from corpus.models import Document
from judges.domain.verdicts import parse_vote
from judges.models import JudgeVersion
from judges.prompts.render import render_ballot
from judges.providers import close_providers, open_provider
from judges.records import Inputs, Judge, Reply
from judges.records import ModelRequest as JudgeRequest
from tests.called import call
from tests.instances import PATIENCE, until
from tests.rankings import make_wings, start_run, work_on
from tests.tiny_models import tiny
from tests.training.serving.served import serve_model
from training.published.embedder import is_embedder, open_embedder, pooling_of
from training.published.opening import open_scorer
from training.published.protocol import MOST_BYTES, ServingRequest
from training.published.scorer import Scorer
from training.published.tiny_bases import tiny_encoder
from training.published.tokens import EncodedRow
from training.recipes.calibration import Calibration
from training.recipes.rendering import RenderedPair
from training.serving import served_model
from training.serving.answers import parse_evidence_text
from training.serving.app import make_app
from training.serving.batcher import PASSES, Batcher
from training.serving.served_model import ServedModel

QUERY = "what is a dictionary"
BUILDING = Lock()
TEXTS = ["A dictionary maps keys to values.", "Trains leave at nine.", "A mapping object maps hashable values."]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("service") / "tiny")


@pytest.fixture(scope="module")
def address(encoder: Path) -> Iterator[str]:
    """The real command with a limit of 8 and a token."""
    with serve_model(encoder, {**os.environ, "QUORUM_RERANK_TOKEN": "secret"}, "--limit", "8") as said:
        assert said["model"] == "tiny" and len(said["pids"]) == 2
        yield said["url"]


def post(address: str, body: Any, token: str = "secret") -> tuple[int, dict[str, Any], Message]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    try:
        with urlopen(Request(address, data, headers), timeout=60) as answer:
            return answer.status, json.loads(answer.read()), answer.headers
    except HTTPError as error:
        with error:
            return error.code, json.loads(error.read()), error.headers


@pytest.mark.slow
def test_cohere_asks_and_gets_index_and_relevance_score_and_strangers_nothing(address, encoder):
    body = {"model": "rerank-v3.5", "query": QUERY, "documents": TEXTS, "top_n": 2}
    scorer = open_scorer(encoder)
    wanted = [scorer.probability(margin) for margin in scorer.margins(QUERY, TEXTS)]
    for path in (address, address.replace("/v1/", "/v2/")):
        status, found, _ = post(path, body)
        assert status == 200 and isinstance(found["id"], str) and found["meta"]["api_version"]["version"]
        assert [set(one) for one in found["results"]] == [{"index", "relevance_score", "margin", "is_cut"}] * 2
        scores = {one["index"]: one["relevance_score"] for one in found["results"]}
        assert list(scores) == sorted(range(3), key=lambda place: -wanted[place])[:2]
        assert all(score == pytest.approx(wanted[place], abs=1e-5) for place, score in scores.items())
    assert found["meta"]["device"] == "tiny model, CPU"
    # Strangers and other addresses.
    assert post(address, {"query": QUERY, "documents": TEXTS}, token="wrong")[0] == 401
    assert post(address + "x", {})[0] == 404
    with pytest.raises(HTTPError) as error:
        urlopen(address, timeout=60)
    with error.value as refused:
        assert refused.code == 405 and refused.headers["Allow"] == "POST"


@pytest.mark.slow
def test_the_served_model_is_a_judge(address, encoder, monkeypatch):
    """Provider `rerank-endpoint` asks it, and votes by the threshold."""
    monkeypatch.setenv("SERVICE_TOKEN", "secret")
    base = address.removesuffix("/rerank")
    scorer = open_scorer(encoder)
    score = scorer.probability(scorer.margins(QUERY, [f"Mappings\n{TEXTS[0]}"])[0])
    inputs = Inputs(QUERY, (), "Mappings", TEXTS[0])

    async def ask(threshold: float | None) -> Reply:
        parameters = {} if threshold is None else {"threshold": threshold}
        judge = Judge("ours", "rerank-endpoint", "tiny", base, "SERVICE_TOKEN", parameters, id=1)
        request = JudgeRequest(judge, *render_ballot(inputs, judge), inputs, "vote")
        try:
            return await open_provider(judge).complete(request)
        finally:
            await close_providers()

    for threshold, verdict in ((None, int(score >= 0.5)), (score - 0.01, 1), (score + 0.01, 0)):
        reply = asyncio.run(ask(threshold))
        assert parse_vote(reply.text).verdict == verdict
        assert reply.probabilities is not None and reply.probabilities["yes"] == pytest.approx(score, abs=1e-5)


@pytest.mark.slow
def test_jina_asks_with_objects_and_gets_its_documents_back(address):
    documents = [{"text": text, "id": place} for place, text in enumerate(TEXTS)]
    status, found, _ = post(
        address, {"model": "jina-reranker-v2", "query": QUERY, "documents": documents, "return_documents": True}
    )
    assert status == 200 and found["model"] == "tiny" and found["usage"]["total_tokens"] > 0
    assert sorted(one["document"]["id"] for one in found["results"]) == [0, 1, 2]
    assert all(one["document"] == documents[one["index"]] for one in found["results"])
    scores = [one["relevance_score"] for one in found["results"]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.slow
def test_sixty_four_at_once_are_all_answered_and_503_says_when_to_come_back(address):
    """Clients that obey Retry-After lose nothing: every one of 64 gets its own answer in the end."""
    refused = []

    def ask(number: int) -> list[int]:
        body = {"query": f"{QUERY} {number}", "documents": [f"{text} {number}" for text in TEXTS * 10]}
        places: list[int] = []

        def answered() -> bool:
            status, found, headers = post(address, body)
            if status == 200:
                places.extend(sorted(one["index"] for one in found["results"]))
                return True
            assert status == 503 and int(headers["Retry-After"]) >= 1 and "try again" in found["message"]
            refused.append(number)
            return False

        until(answered)
        return places

    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(ask, range(64)))
    assert answers == [list(range(30))] * 64
    assert refused


class Fake(Scorer):
    """A scorer that needs no model: a text is as relevant as it is long."""

    def __init__(self, waits: bool = False) -> None:
        self.words, self.precision, self.threshold, self.calibration = "test", "fp32", 0.5, Calibration()
        self.budget = 100
        self.steps: list[list[int]] = []
        self.go, self.pen = Event(), Event()
        self.pen.set()
        if not waits:
            self.go.set()

    def encode(self, request: ServingRequest) -> list[EncodedRow]:
        return [EncodedRow([0] * len(text)) for text in request.documents]

    def score_rows(self, rows: Sequence[EncodedRow]) -> list[float]:
        self.steps.append([len(row.ids) for row in rows])
        assert self.go.wait(PATIENCE)
        if any(len(row.ids) == 66 for row in rows):
            raise RuntimeError("the model fails on this text")
        return [float(len(row.ids)) for row in rows]

    def write(self, request: ServingRequest, max_new_tokens: int = 512) -> list[RenderedPair]:
        assert self.pen.wait(PATIENCE)
        return [RenderedPair("yes\n<contribution>C</contribution>\n<evidence>E</evidence>") for _ in request.documents]


def ask_app(
    served: ServedModel, *bodies: Any, path: str = "/v1/rerank", method: str = "POST", **headers: str
) -> list[Any]:
    """Send bodies to the application at the same time, without a socket; what is no bytes or stream as JSON."""
    with BUILDING:  # FastAPI reads the addresses' signatures, in one thread at a time.
        application = make_app(served)

    async def send() -> list[Any]:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(application), base_url="http://model") as client:
            contents = [json.dumps(body).encode() if isinstance(body, dict) else body for body in bodies]
            sent = (client.request(method, path, content=data, timeout=60, headers=headers) for data in contents)
            return list(await asyncio.gather(*sent))

    return asyncio.run(send())


def rerank_body(*lengths: int, **more: Any) -> dict[str, Any]:
    return {"query": "q", "documents": ["a" * length for length in lengths]} | more


@pytest.mark.parametrize(
    ("kind", "body", "status", "words"),
    [
        ("rerank", b"{", 400, "the body is not JSON"),
        ("rerank", rerank_body(1, max_new_tokens=5000), 422, "max_new_tokens must be a whole number"),
        ("rerank", rerank_body(1, score="percent"), 422, 'score must be "calibrated" or "raw"'),
        ("rerank", rerank_body(1, query=""), 422, "query must be a string"),
        ("rerank", rerank_body(), 422, "documents must be a list that is not empty"),
        ("rerank", rerank_body(1, top_n=0), 422, "top_n must be a whole number from 1"),
        ("rerank", rerank_body(*[1] * 1001), 422, "at most 1000"),
        ("rerank", rerank_body(*[1] * 30, return_evidence=True), 422, "at most 20 documents"),
        ("embeddings", b"{", 400, "not JSON"),
        ("embeddings", {"input": [""]}, 422, "input must be"),
        ("embeddings", {"input": [1, 2]}, 422, "input must be"),
        ("embeddings", {"input": ["a"] * 2049}, 422, "at most 2048"),
        ("embeddings", {"input": "a", "encoding_format": "int8"}, 422, "encoding_format"),
    ],
)
def test_a_bad_request_gets_one_clear_line(headless, kind, body, status, words):
    model = Fake() if kind == "rerank" else open_embedder(headless)
    (answer,) = ask_app(ServedModel("m", model), body, path=f"/v1/{kind}")
    assert answer.status_code == status and words in answer.json()["message"]


def test_beyond_the_limit_nothing_waits():
    """Three may be inside, the fourth is refused at once, and its place is free again afterwards."""
    scorer = Fake(waits=True)
    served = ServedModel("m", scorer, max_requests=3)
    with ThreadPoolExecutor(3) as pool:
        inside = [pool.submit(ask_app, served, rerank_body(n + 1)) for n in range(3)]
        until(lambda: len(served.reranker.batcher.waiting) == 3)  # type: ignore[union-attr]
        (refused,) = ask_app(served, rerank_body(4))
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        scorer.go.set()
        assert [one.result(PATIENCE)[0].json()["results"][0]["margin"] for one in inside] == [1, 2, 3]
    assert ask_app(served, rerank_body(4))[0].status_code == 200


def test_what_waits_is_scored_together_a_small_request_first_and_who_gave_up_is_not():
    scorer = Fake(waits=True)
    batcher = Batcher(scorer)
    first = batcher.submit([EncodedRow([0] * 5)])  # Holds the model until the others wait.
    until(lambda: scorer.steps == [[5]])
    large = batcher.submit([EncodedRow([0] * 50)] * 20)
    small = [batcher.submit([EncodedRow([0] * 10)] * 2) for _ in range(2)]
    order: list[str] = []
    large.add_done_callback(lambda _: order.append("large"))
    small[0].add_done_callback(lambda _: order.append("small"))
    scorer.go.set()
    assert large.result(PATIENCE) == [50.0] * 20 and small[1].result(PATIENCE) == [10.0] * 2
    assert first.result() == [5.0] and order == ["small", "large"]
    # Both small ones and a part of the large one were one step.
    assert scorer.steps[1] == [10, 10, 10, 10, 50, 50, 50]
    assert all(sum(step) <= 100 * PASSES for step in scorer.steps)
    scorer = Fake(waits=True)
    batcher = Batcher(scorer)
    first = batcher.submit([EncodedRow([0] * 5)])
    until(lambda: bool(scorer.steps))
    given_up, last = batcher.submit([EncodedRow([0] * 7)] * 9), batcher.submit([EncodedRow([0] * 9)])
    assert given_up.cancel()
    scorer.go.set()
    assert (first.result(PATIENCE), last.result(PATIENCE)) == ([5.0], [9.0])
    assert scorer.steps == [[5], [9]]


def test_one_request_that_fails_does_so_alone():
    scorer = Fake(waits=True)
    served = ServedModel("m", scorer)
    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(ask_app, served, rerank_body(1))
        until(lambda: bool(scorer.steps))
        several = ThreadPoolExecutor(1).submit(ask_app, served, rerank_body(2), rerank_body(66), {"query": "q"})
        until(lambda: len(served.reranker.batcher.waiting) == 3)  # type: ignore[union-attr]
        scorer.go.set()
        good, failed, bad = several.result(PATIENCE)
        assert holding.result(PATIENCE)[0].status_code == 200
    assert (good.status_code, failed.status_code, bad.status_code) == (200, 500, 422)
    assert failed.json()["message"].startswith("the model failed") and "documents" in bad.json()["message"]
    assert [2, 66] in scorer.steps and ask_app(served, rerank_body(3))[0].status_code == 200


def test_a_request_that_takes_too_long_is_told_so_and_not_scored_further(monkeypatch):
    monkeypatch.setattr(served_model, "ANSWER_TIMEOUT_S", 0.2)
    scorer = Fake(waits=True)
    served = ServedModel("m", scorer)
    late, too = ask_app(served, rerank_body(1), rerank_body(60, 60, 60, 60))
    assert late.status_code == too.status_code == 503 and "fewer texts" in late.json()["message"]
    scorer.go.set()
    until(lambda: not served.reranker.batcher.waiting)  # type: ignore[union-attr]
    assert sum(len(step) for step in scorer.steps) < 5


def test_evidence_that_is_written_does_not_hold_up_scores():
    scorer = Fake()
    scorer.pen.clear()
    served = ServedModel("m", scorer)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(ask_app, served, rerank_body(1, return_evidence=True))
        until(lambda: bool(scorer.steps))
        assert ask_app(served, rerank_body(2))[0].status_code == 200
        assert not writing.done()
        scorer.pen.set()
        (result,) = writing.result(PATIENCE)[0].json()["results"]
    assert (result["contribution"], result["evidence"], result["evidence_cut"]) == ("C", "E", False)


def test_the_margin_is_always_there_and_the_score_is_calibrated_or_raw():
    scorer = Fake()
    scorer.calibration = Calibration(a=0.5, b=-1.0)
    served = ServedModel("m", scorer)
    calibrated, raw = ask_app(served, rerank_body(3), rerank_body(3, score="raw"))
    for answer, wanted in ((calibrated, 1 / (1 + math.exp(-0.5))), (raw, 1 / (1 + math.exp(-3)))):
        (result,) = answer.json()["results"]
        assert result["margin"] == 3 and result["relevance_score"] == pytest.approx(wanted)


def test_fields_are_scored_by_those_that_are_asked_for_and_tei_asks_with_texts_without_a_version():
    documents = [{"title": "abc", "text": "defg", "id": 7}]
    served = ServedModel("m", Fake())
    texts = [{}, {"rank_fields": ["title", "text"]}, {"rank_fields": ["title"]}, {"rank_fields": ["body"]}]
    answers = ask_app(served, *({"query": "q", "documents": documents, **more} for more in texts))
    assert [one.json()["results"][0]["margin"] for one in answers[:3]] == [4, 8, 3]
    assert answers[3].status_code == 422 and "whose body is" in answers[3].json()["message"]
    body = {"query": "q", "texts": ["a", "abc"], "raw_scores": True, "return_text": True}
    raw, plain = ask_app(served, body, {**body, "raw_scores": False}, path="/rerank")
    assert [(one["index"], one["score"], one["text"]) for one in raw.json()] == [(1, 3.0, "abc"), (0, 1.0, "a")]
    assert plain.json()[0]["score"] == pytest.approx(1 / (1 + math.exp(-3)))
    (cohere,) = ask_app(served, rerank_body(2), path="/rerank")
    assert cohere.json()["results"][0]["margin"] == 2
    (bad,) = ask_app(served, {"query": "q", "texts": [3]}, path="/rerank")
    assert (bad.status_code, bad.json()["message"]) == (422, "texts[0] must be a string")


def test_bodies_may_be_packed_and_come_in_parts():
    data = json.dumps(rerank_body(2)).encode()

    async def parts(whole: bytes) -> AsyncIterator[bytes]:
        for at in range(0, len(whole), 7):
            yield whole[at : at + 7]

    def status(content: Any, packing: str) -> int:
        (answer,) = ask_app(ServedModel("m", Fake()), content, **{"Content-Encoding": packing})
        return int(answer.status_code)

    for content, packing in ((gzip.compress(data), "gzip"), (zlib.compress(data), "deflate"), (data, "identity")):
        assert status(parts(content), packing) == 200
    assert (status(b"no gzip", "gzip"), status(data, "br")) == (400, 415)
    bomb = gzip.compress(b" " * (MOST_BYTES + 1))
    assert len(bomb) < 100_000 and status(bomb, "gzip") == 413


@pytest.mark.slow
def test_a_caller_that_is_gone_is_not_scored_further(encoder):
    """Over a real connection: what its caller left is not scored, and the places are free again."""
    with serve_model(encoder, os.environ, "--limit", "2") as said:
        host, port = said["url"].split("/")[2].split(":")
        body = json.dumps({"query": QUERY, "documents": ["a long text of many words " * 60] * 400}).encode()
        head = f"POST /v1/rerank HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        began = time.monotonic()
        assert post(said["url"], body)[0] == 200
        alone = time.monotonic() - began
        for _ in range(2):
            with socket.create_connection((host, int(port))) as caller:
                caller.sendall(head + body)
        began = time.monotonic()
        until(lambda: post(said["url"], {"query": QUERY, "documents": ["short"]})[0] == 200)
        # Both would take twice as long as one alone took.
        assert time.monotonic() - began < alone


def test_the_endpoint_describes_itself(encoder):
    done = call("serve_model", "--openapi")
    assert done.code == 0
    paths = json.loads(done.out)["paths"]
    assert {"/v1/rerank", "/v2/rerank", "/rerank", "/v1/embeddings", "/v1/models", "/healthz"} <= set(paths)
    body = paths["/v1/rerank"]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    assert body.endswith("/RerankBody")


def test_contribution_and_evidence_come_when_asked_for(tmp_path):
    folder, _, _ = tiny(tmp_path / "base", "qwen3")
    served = ServedModel("tiny", open_scorer(folder))
    body = {"query": QUERY, "documents": TEXTS, "top_n": 1, "return_evidence": True, "max_new_tokens": 5}
    (answer,) = ask_app(served, body)
    (result,) = answer.json()["results"]
    assert answer.status_code == 200 and isinstance(result["evidence_cut"], bool)
    assert served.max_new_tokens == 512
    (long,) = ask_app(served, {**body, "max_tokens_per_doc": 2})
    assert long.json()["meta"]["cut"] == 3 and long.json()["results"][0]["is_cut"] is True
    (both,) = ask_app(served, {"input": "a"}, path="/v1/embeddings")
    assert both.status_code == 404 and "POST to /v1/rerank" in both.json()["message"]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (RenderedPair("yes\n<contribution>C</contribution>\n<evidence>E</evidence>"), ("C", "E", False)),
        (RenderedPair("yes\n<contribution>C</contribution>\n<evidence>all of", True), ("C", "all of", True)),
        (RenderedPair("yes\n<contribution>C</contribution>\n<evidence>all</evid", True), ("C", "all", True)),
        (RenderedPair("yes\n<contribution>as far", True), ("as far", None, True)),
        (RenderedPair("yes\n<contribution>C</contribution>\n<evidence>", True), ("C", None, True)),
        (RenderedPair("yes\n<contribution>C</contribution>\n<evidence>E</evidence> and", True), ("C", "E", False)),
        (RenderedPair("no"), ("", "", False)),
    ],
)
def test_evidence_that_was_cut_says_so_and_keeps_what_was_written(written, wanted):
    assert parse_evidence_text(written) == wanted


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "/nowhere"], "nowhere has no config.json"),
        (["--model", "MODEL", "--bind", "0.0.0.0"], "is open to others: set QUORUM_RERANK_TOKEN"),
        (["--model", "MODEL", "--limit", "0"], "--limit must be 1 or more"),
        (["--model", "MODEL", "--max-new-tokens", "0"], "--max-new-tokens must be 1 or more"),
        (["--model", "MODEL", "--prompt", "prism"], "is asked by no prompt: leave this out"),
        ([], "--model is missing"),
    ],
)
def test_what_cannot_be_served_is_refused(options, words, encoder, monkeypatch):
    monkeypatch.setattr("config.serving.listen", lambda *where: pytest.fail("it would be served"))
    done = call("serve_model", *(encoder if one == "MODEL" else one for one in options))
    assert done.code == 2 and done.out == "" and words in done.err


INPUTS = [
    "A dictionary maps keys to values, and a mapping object maps hashable values.",
    "Trains leave at nine.",
    "Wings",
]


def bare(source: Path, folder: Path, **more: Any) -> Path:
    """The model in `source` without its head, as embedding models are published."""
    AutoModel.from_pretrained(source).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    for name, content in more.items():
        path = folder / {"pooling": "1_Pooling/config.json", "modules": "modules.json"}[name]
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
    return folder


@pytest.fixture(scope="module")
def headless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("embedder")
    return bare(tiny_encoder(folder / "head"), folder / "tiny")


def plain(folder: Path, text: str, pooling: str) -> Any:
    """One text without padding, in three lines."""
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
    found = {"mean": states.mean(0), "last": states[-1], "cls": states[0]}[pooling].numpy()
    return found / np.linalg.norm(found)


def ask(served: ServedModel, body: Any, **more: Any) -> tuple[int, Any]:
    (answer,) = ask_app(served, body, **{"path": "/v1/embeddings", **more})
    return answer.status_code, answer.json()


@pytest.mark.parametrize("pooling", ["mean", "last", "cls"])
def test_texts_of_one_request_get_the_vectors_that_each_has_alone(headless, pooling):
    service = ServedModel("tiny", open_embedder(headless, pooling=pooling))
    status, found = ask(service, {"model": "tiny", "input": INPUTS})
    assert status == 200 and [one["index"] for one in found["data"]] == [0, 1, 2]
    for one, text in zip(found["data"], INPUTS, strict=True):
        assert one["embedding"] == pytest.approx(plain(headless, text, pooling).tolist(), abs=1e-5)
        assert np.linalg.norm(one["embedding"]) == pytest.approx(1)
    tokenizer = AutoTokenizer.from_pretrained(headless)
    assert found["usage"]["prompt_tokens"] == sum(len(tokenizer(text)["input_ids"]) for text in INPUTS)


def test_base64_holds_the_same_numbers_at_this_address_alone(headless):
    service = ServedModel("tiny", open_embedder(headless))
    assert ask(service, {"input": "a"}, path="/v1/rerank")[0] == 404
    assert ask(service, {"input": "a"}, method="GET")[0] == 405
    plain_numbers = ask(service, {"input": "Wings"})[1]["data"][0]["embedding"]
    packed = ask(service, {"input": "Wings", "encoding_format": "base64"})[1]["data"][0]["embedding"]
    assert np.frombuffer(base64.b64decode(packed), dtype="<f4").tolist() == pytest.approx(plain_numbers)


def test_a_folder_says_what_it_is_and_how_it_is_pooled_a_causal_model_by_its_last_token(headless, tmp_path):
    head = headless.parent / "head"
    assert is_embedder(headless) and not is_embedder(head)
    assert pooling_of(headless) == "mean"
    causal = tiny(tmp_path / "causal", "qwen3")[0]
    assert not is_embedder(causal)
    folder = bare(causal, tmp_path / "bare")
    assert pooling_of(folder) == "last"
    said = bare(
        headless, tmp_path / "said", pooling={"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    )
    assert is_embedder(said) and pooling_of(said) == "cls" and pooling_of(said, "mean") == "mean"
    strange = bare(headless, tmp_path / "strange", pooling={"pooling_mode_max_tokens": True})
    with pytest.raises(BadInput, match="no known pooling"):
        pooling_of(strange)
    dense = bare(headless, tmp_path / "dense", modules=[{"type": "sentence_transformers.models.Dense"}])
    with pytest.raises(BadInput, match="module Dense"):
        pooling_of(dense)
    vectors, _ = open_embedder(folder).encode(INPUTS)
    for row, text in zip(vectors, INPUTS, strict=True):
        assert row.tolist() == pytest.approx(plain(folder, text, "last").tolist(), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["mean", "lasttoken", "cls"])
def test_vectors_equal_those_of_sentence_transformers(headless, tmp_path, mode):
    pooling = Pooling(64, pooling_mode=mode)
    theirs = SentenceTransformer(modules=[Transformer(str(headless)), pooling, Normalize()], device="cpu")
    theirs.save(str(tmp_path / "st"))
    assert is_embedder(tmp_path / "st")
    ours, _ = open_embedder(tmp_path / "st").encode(INPUTS)
    assert np.abs(ours - theirs.encode(INPUTS)).max() < 1e-5


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_served_encoder_makes_dense_runs_and_answers_openais_client(headless, settings, tmp_path, monkeypatch):
    settings.VAR = tmp_path
    monkeypatch.setenv("SERVICE_TOKEN", "secret")
    wings = make_wings(INPUTS, ["hashable keys"])
    keys = dict(Document.objects.filter(collection=wings).values_list("pk", "text"))
    with serve_model(headless, {**os.environ, "QUORUM_RERANK_TOKEN": "secret"}) as said:
        assert said["url"].endswith("/v1/embeddings")
        base = said["url"].removesuffix("/embeddings")
        with OpenAI(base_url=base, api_key="secret", max_retries=0) as client:
            answer = client.embeddings.create(model="tiny", input=INPUTS)
        judge = {"name": "ours", "provider": "embed-endpoint", "model": "tiny", "base_url": base}
        JudgeVersion.objects.create(**judge, api_key_env="SERVICE_TOKEN")
        run = work_on(start_run(wings, "dense", "dense", judge="ours", depth=3))
    embedder = open_embedder(headless)
    expected, tokens = embedder.encode(INPUTS)
    assert np.abs(np.array([one.embedding for one in answer.data]) - expected).max() < 1e-5
    assert answer.usage.prompt_tokens == tokens
    assert (run.state, run.error) == ("ready", "")
    ((documents, scores),) = rankings.scores_of(run).values()
    asked = embedder.encode(["hashable keys"])[0][0]
    cosines = {key: float(embedder.encode([text])[0][0] @ asked) for key, text in keys.items()}
    assert documents.tolist() == sorted(cosines, key=lambda key: -cosines[key])
    assert scores.tolist() == pytest.approx(sorted(cosines.values(), reverse=True), abs=1e-5)
    assert Ranking.objects.get(run=run).tokens_in > 0
