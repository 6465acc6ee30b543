"""`serve_model`: POST /v1/rerank as stock Cohere and Jina clients send it, in parallel and beyond its limit (check 12).

The clients themselves are not installed; their requests are sent by plain HTTP, in the documented shape.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path
from threading import Event
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

torch = pytest.importorskip("torch")

from judges.domain.verdicts import parse_vote  # noqa: E402
from judges.prompts.render import render_ballot  # noqa: E402
from judges.providers import close_providers, open_provider  # noqa: E402
from judges.records import Inputs, Judge, Reply  # noqa: E402
from judges.records import ModelRequest as JudgeRequest  # noqa: E402
from tests.called import call  # noqa: E402
from tests.instances import PATIENCE, ROOT, until  # noqa: E402
from tests.tiny_models import tiny  # noqa: E402
from training.recipes.rendering import RenderedPair  # noqa: E402
from training.serving.app import Rerank  # noqa: E402
from training.serving.batcher import Batcher, Full  # noqa: E402
from training.serving.protocol import Wrong, read_request  # noqa: E402
from training.serving.scorer import Score, open_scorer  # noqa: E402
from training.trainers.tiny_bases import tiny_encoder  # noqa: E402

QUERY = "what is a dictionary"
TEXTS = ["A dictionary maps keys to values.", "Trains leave at nine.", "A mapping object maps hashable values."]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("service") / "tiny")


@pytest.fixture(scope="module")
def address(encoder: Path) -> Iterator[str]:
    """The real command with a limit of 8 and a token."""
    environment = {**os.environ, "QUORUM_RERANK_TOKEN": "secret", "OMP_NUM_THREADS": "1"}
    args = [sys.executable, "manage.py", "serve_model", "--model", str(encoder), "--port", "0", "--limit", "8"]
    child = subprocess.Popen(args, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        line = json.loads(child.stdout.readline())
        assert line["model"] == "tiny" and len(line["pids"]) == 2
        yield line["url"]
    finally:
        child.terminate()
        child.wait(PATIENCE)
        if child.stdout is not None:
            child.stdout.close()


def post(address: str, body: Any, token: str = "secret") -> tuple[int, dict[str, Any], Message]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    try:
        with urlopen(Request(address, data, headers), timeout=60) as answer:
            return answer.status, json.loads(answer.read()), answer.headers
    except HTTPError as error:
        with error:
            return error.code, json.loads(error.read()), error.headers


def test_cohere_asks_and_gets_index_and_relevance_score(address: str, encoder: Path) -> None:
    body = {"model": "rerank-v3.5", "query": QUERY, "documents": TEXTS, "top_n": 2}
    scorer = open_scorer(encoder)
    wanted = [scorer.probability(margin) for margin in scorer.margins(QUERY, TEXTS)]
    for path in (address, address.replace("/v1/", "/v2/")):
        status, found, _ = post(path, body)
        assert status == 200 and isinstance(found["id"], str) and found["meta"]["api_version"]["version"]
        assert [set(one) for one in found["results"]] == [{"index", "relevance_score"}] * 2
        scores = {one["index"]: one["relevance_score"] for one in found["results"]}
        assert list(scores) == sorted(range(3), key=lambda place: -wanted[place])[:2]
        assert all(score == pytest.approx(wanted[place], abs=1e-5) for place, score in scores.items())
    assert found["meta"]["device"] == "tiny model, CPU"


def test_the_served_model_is_a_judge(address: str, encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MECHANICS M10: provider `rerank-endpoint` asks it, and votes by the threshold."""
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


def test_jina_asks_with_objects_and_gets_its_documents_back(address: str) -> None:
    documents = [{"text": text, "id": place} for place, text in enumerate(TEXTS)]
    status, found, _ = post(
        address, {"model": "jina-reranker-v2", "query": QUERY, "documents": documents, "return_documents": True}
    )
    assert status == 200 and found["model"] == "tiny" and found["usage"]["total_tokens"] > 0
    assert sorted(one["document"]["id"] for one in found["results"]) == [0, 1, 2]
    assert all(one["document"] == documents[one["index"]] for one in found["results"])
    scores = [one["relevance_score"] for one in found["results"]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "the body is not JSON"),
        ([], 422, "must be a JSON object"),
        ({"query": "", "documents": ["a"]}, 422, "query must be a string"),
        ({"query": "a", "documents": []}, 422, "documents must be a list that is not empty"),
        ({"query": "a", "documents": [1]}, 422, "documents[0] must be a string"),
        ({"query": "a", "documents": ["a"], "top_n": 0}, 422, "top_n must be a whole number from 1"),
        ({"query": "a", "documents": ["a"] * 1001}, 422, "at most 1000"),
        ({"query": "a", "documents": ["a"] * 30, "return_evidence": True}, 422, "at most 20 documents"),
    ],
)
def test_a_bad_request_gets_one_clear_line(address: str, body: Any, status: int, words: str) -> None:
    found = post(address, body)
    assert found[0] == status and words in found[1]["message"]


def test_strangers_and_other_addresses(address: str) -> None:
    assert post(address, {"query": QUERY, "documents": TEXTS}, token="wrong")[0] == 401
    assert post(address + "x", {})[0] == 404
    with pytest.raises(HTTPError) as error:
        urlopen(address, timeout=60)
    with error.value as refused:
        assert refused.code == 405 and refused.headers["Allow"] == "POST"


def test_sixty_four_at_once_are_all_answered_and_503_says_when_to_come_back(address: str) -> None:
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
            assert status == 503 and int(headers["Retry-After"]) >= 1 and "try again in a second" in found["message"]
            refused.append(number)
            return False

        until(answered)
        return places

    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(ask, range(64)))
    assert answers == [list(range(30))] * 64
    assert refused


def test_beyond_the_limit_nothing_waits() -> None:
    """A scorer that holds still until it is let go: three may be inside, the fourth is refused at once."""
    go = Event()

    class Slow:
        threshold = 0.5
        words = "test"

        def score(self, asked: Any) -> list[list[Score]]:
            go.wait(PATIENCE)
            return [[Score(float(len(text))) for text in one.documents] for one in asked]

    batcher = Batcher(Slow(), 3)  # type: ignore[arg-type]
    requests = [read_request(json.dumps({"query": "q", "documents": ["a" * (n + 1)]}).encode()) for n in range(4)]
    futures = [batcher.submit(request) for request in requests[:3]]
    with pytest.raises(Full):
        batcher.submit(requests[3])
    go.set()
    assert [future.result(PATIENCE) for future in futures] == [[1.0], [2.0], [3.0]]
    assert batcher.submit(requests[3]).result(PATIENCE) == [4.0]


def test_a_model_that_fails_answers_500_and_goes_on(encoder: Path) -> None:
    class Broken:
        threshold = 0.5
        words = "test"
        fail = True

        def score(self, asked: Any) -> list[list[Score]]:
            if self.fail:
                raise RuntimeError("no")
            return [[Score(0.0)] for _ in asked]

        def probability(self, margin: float) -> float:
            return 0.5

    scorer = Broken()
    service = Rerank(scorer, "m")  # type: ignore[arg-type]
    body = json.dumps({"query": "q", "documents": ["a"]}).encode()
    with pytest.raises(RuntimeError):
        service.answer(body)
    scorer.fail = False
    assert service.answer(body)[0] == 200


def test_contribution_and_evidence_come_when_asked_for(tmp_path: Path) -> None:
    folder, _, _ = tiny(tmp_path / "base", "qwen3")
    service = Rerank(open_scorer(folder), "tiny")
    body = {"query": QUERY, "documents": TEXTS, "top_n": 1, "return_evidence": True}
    status, found = service.answer(json.dumps(body).encode())
    (result,) = found["results"]
    assert status == 200 and isinstance(result["contribution"], str) and isinstance(result["evidence"], str)
    assert result["finish_reason"] in ("stop", "length") and isinstance(result["evidence_truncated"], bool)
    with pytest.raises(Wrong):
        read_request(b"{}")


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (RenderedPair("yes\n<contribution>C</contribution>\n<evidence>E</evidence>"), ("C", "E", "stop", False)),
        (RenderedPair("yes\n<contribution>C</contribution>\n<evidence>all of", True), ("C", "all of", "length", True)),
        (RenderedPair("yes\n<contribution>C</contribution>\n<evidence>all</evid", True), ("C", "all", "length", True)),
        (RenderedPair("yes\n<contribution>as far", True), ("as far", "", "length", True)),
        (
            RenderedPair("yes\n<contribution>C</contribution>\n<evidence>E</evidence> and", True),
            ("C", "E", "length", False),
        ),
        (RenderedPair("no"), ("", "", "stop", False)),
    ],
)
def test_evidence_that_was_cut_says_so_and_keeps_what_was_written(
    written: RenderedPair, wanted: tuple[Any, ...]
) -> None:
    class Writing:
        threshold = 0.5
        words = "test"

        def score(self, asked: Any) -> list[list[Score]]:
            return [[Score(0.0) for _ in one.documents] for one in asked]

        def probability(self, margin: float) -> float:
            return 0.5

        def write(self, asked: Any) -> list[RenderedPair]:
            return [written]

    service = Rerank(Writing(), "m")  # type: ignore[arg-type]
    body = {"query": QUERY, "documents": ["d"], "return_evidence": True}
    (result,) = service.answer(json.dumps(body).encode())[1]["results"]
    names = ("contribution", "evidence", "finish_reason", "evidence_truncated")
    assert tuple(result[name] for name in names) == wanted


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "/nowhere"], "/nowhere has no config.json"),
        (["--model", "MODEL", "--bind", "0.0.0.0"], "is open to others: set QUORUM_RERANK_TOKEN"),
        (["--model", "MODEL", "--limit", "0"], "--limit must be 1 or more"),
    ],
)
def test_what_cannot_be_served_is_refused(
    options: list[str], words: str, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.serving.listen", lambda *where: pytest.fail("it would be served"))
    done = call("serve_model", *(encoder if one == "MODEL" else one for one in options))
    assert done.code == 2 and done.out == "" and words in done.err
