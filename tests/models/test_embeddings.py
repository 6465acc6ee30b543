"""Dense runs over real vectors: what is sent, what is counted, and that the ranking is that of the cosines."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ir_measures
import numpy as np
import pytest

from corpus.models import Document, Query
from jobs.processes import stop_children
from judges.models import JudgeVersion
from judges.models.retrieval import RetrievalCall
from tests.judges.engine.test_engine_cranfield import CRANFIELD
from tests.models.fixtures import RealServer
from tests.models.judging import make_pairs

pytestmark = pytest.mark.django_db(transaction=True)
Vectors = dict[str, np.ndarray]
"""The vector of each text, as the server gave it."""


@contextmanager
def embedder(model: Path, folder: Path, *options: str) -> Iterator[RealServer]:
    """A server of vectors, until the block ends, and the judge `vectors` that asks it."""
    server = RealServer(model, folder / "calls.jsonl", *options)
    JudgeVersion.objects.create(
        name="vectors", provider="embed-endpoint", model="m", base_url=server.base_url, input_price=0.0,
        output_price=0.0, max_concurrency=1, parameters={"timeout_s": 300},
    )  # fmt: skip
    try:
        yield server
    finally:
        stop_children([server.process])


def vectors_in(server: RealServer) -> Vectors:
    """All vectors that the server gave."""
    return {
        text: np.frombuffer(base64.b64decode(entry["embedding"]), dtype="<f4").astype(float)
        for call in server.calls()
        for text, entry in zip(call["request"]["input"], call["answer"]["data"], strict=True)
    }


def cosines(vectors: Vectors, query_prefix: str, document_prefix: str) -> dict[str, dict[str, float]]:
    """The cosine of each query with each document, by their ids; the texts are those that retrievers are to see."""
    documents = {
        document.external_id: document_prefix + (f"{document.title}\n" if document.title else "") + document.text
        for document in Document.objects.all()
    }
    matrix = np.array([vectors[text] for text in documents.values()])
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    scores = {}
    for query in Query.objects.all():
        vector = vectors[query_prefix + query.text]
        scores[query.external_id] = dict(zip(documents, matrix @ (vector / np.linalg.norm(vector)), strict=True))
    return scores


PREFIXED = ("--query-prefix", "query: ", "--document-prefix", "passage: ")
INSTRUCTED = ("--instruction", "Find the answer")


@pytest.mark.parametrize(
    ("options", "query_prefix", "document_prefix"),
    [
        (PREFIXED, "query: ", "passage: "),
        pytest.param(INSTRUCTED, "Instruct: Find the answer\nQuery: ", "", marks=pytest.mark.weekly),
    ],
)
def test_llama_cpp_embeds_each_text_once_with_its_prefix(
    manage, smollm_gguf, tmp_path, options, query_prefix, document_prefix
):
    make_pairs()
    with embedder(smollm_gguf, tmp_path, "--embedding") as server:
        manage("retrieve", "books", "--system", "dense", "--judge", "vectors", "--name", "dense", *options, "--wait")
        texts = [text for call in server.calls() for text in call["request"]["input"]]
        queries = [query_prefix + text for text in Query.objects.values_list("text", flat=True)]
        documents = [document_prefix + text for text in Document.objects.values_list("text", flat=True)]
        assert sorted(texts) == sorted(queries + documents)
        tokens = sum(row.tokens_in for row in RetrievalCall.objects.all())
        assert tokens == sum(usage["prompt_tokens"] for usage in server.usages()) > 0
        scores = cosines(vectors_in(server), query_prefix, document_prefix)
    manage("runs", "books", "export", "dense", tmp_path / "dense.run")
    for line in ir_measures.read_trec_run(str(tmp_path / "dense.run")):
        assert line.score == pytest.approx(scores[line.query_id][line.doc_id], abs=1e-5)


@pytest.mark.weekly
@pytest.mark.skipif(not CRANFIELD.is_dir(), reason="1 test not run: Cranfield is not on this machine")
def test_a_dense_run_over_cranfield_equals_the_cosines_of_the_servers_vectors(manage, minilm_folder, tmp_path):
    """MiniLM, by sentence-transformers behind a server: SmolLM2 in llama.cpp would read Cranfield for half an hour."""
    files = {"corpus": "cran.all.1400.xml", "queries": "cran.qry.xml", "qrels": "cranqrel.trec.txt"}
    paths = [part for name, file in files.items() for part in (f"--{name}", CRANFIELD / file)]
    manage("import_collection", "cranfield", *paths, "--query-ids", "position", "--empty", "keep")
    with embedder(minilm_folder, tmp_path) as server:
        system = ("--system", "dense", "--judge", "vectors", "--name", "dense")
        manage("retrieve", "cranfield", *system, *PREFIXED, "--wait", timeout=540)
        tokens = sum(row.tokens_in for row in RetrievalCall.objects.all())
        assert tokens == sum(usage["prompt_tokens"] for usage in server.usages())
        scores = cosines(vectors_in(server), "query: ", "passage: ")
    manage("runs", "cranfield", "export", "dense", tmp_path / "dense.run")
    qrels = list(ir_measures.read_trec_qrels(str(CRANFIELD / "cranqrel.trec.txt")))
    run = list(ir_measures.read_trec_run(str(tmp_path / "dense.run")))
    ndcg, recall = ir_measures.nDCG @ 10, ir_measures.R @ 100
    ours, cosine = (ir_measures.calc_aggregate([ndcg, recall], qrels, ranking) for ranking in (run, scores))
    assert ours[ndcg] == pytest.approx(cosine[ndcg], abs=1e-4) and ours[ndcg] > 0.3
    assert ours[recall] == pytest.approx(cosine[recall], abs=1e-4)
