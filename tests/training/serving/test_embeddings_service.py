"""`serve_model` of an encoder: POST /v1/embeddings as OpenAI's client sends it, vectors as the model gives them."""

import asyncio
import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the training extra: make install-training")

from transformers import AutoModel, AutoTokenizer  # noqa: E402

from benchmark.models import Ranking  # noqa: E402
from benchmark.runs import rankings  # noqa: E402
from corpus.errors import BadInput  # noqa: E402
from corpus.models import Document  # noqa: E402
from judges.models import JudgeVersion  # noqa: E402
from tests.rankings import make_wings, start_run, work_on  # noqa: E402
from tests.tiny_models import tiny  # noqa: E402
from tests.training.serving.served import serve_model  # noqa: E402
from training.published.embedder import is_embedder, open_embedder, pooling_of  # noqa: E402
from training.published.tiny_bases import tiny_encoder  # noqa: E402
from training.serving.app import make_app  # noqa: E402
from training.serving.served_model import ServedModel  # noqa: E402

TEXTS = [
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
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("embedder")
    return bare(tiny_encoder(folder / "head"), folder / "tiny")


def plain(folder: Path, text: str, pooling: str) -> Any:
    """One text without padding, in three lines."""
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
    found = {"mean": states.mean(0), "last": states[-1], "cls": states[0]}[pooling].numpy()
    return found / np.linalg.norm(found)


def ask(served: ServedModel, body: Any, path: str = "/v1/embeddings", method: str = "POST") -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def send() -> Any:
        transport = httpx2.ASGITransport(make_app(served))
        async with httpx2.AsyncClient(transport=transport, base_url="http://model") as client:
            return await client.request(method, path, content=data)

    answer = asyncio.run(send())
    return answer.status_code, answer.json()


@pytest.mark.parametrize("pooling", ["mean", "last", "cls"])
def test_texts_of_one_request_get_the_vectors_that_each_has_alone(encoder: Path, pooling: str) -> None:
    service = ServedModel("tiny", open_embedder(encoder, pooling=pooling))
    status, found = ask(service, {"model": "tiny", "input": TEXTS})
    assert status == 200 and [one["index"] for one in found["data"]] == [0, 1, 2]
    for one, text in zip(found["data"], TEXTS, strict=True):
        assert one["embedding"] == pytest.approx(plain(encoder, text, pooling).tolist(), abs=1e-5)
        assert np.linalg.norm(one["embedding"]) == pytest.approx(1)
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    assert found["usage"]["prompt_tokens"] == sum(len(tokenizer(text)["input_ids"]) for text in TEXTS)


def test_base64_holds_the_same_numbers(encoder: Path) -> None:
    service = ServedModel("tiny", open_embedder(encoder))
    plain_numbers = ask(service, {"input": "Wings"})[1]["data"][0]["embedding"]
    packed = ask(service, {"input": "Wings", "encoding_format": "base64"})[1]["data"][0]["embedding"]
    assert np.frombuffer(base64.b64decode(packed), dtype="<f4").tolist() == pytest.approx(plain_numbers)


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        (b"{", 400, "not JSON"),
        ({"input": [""]}, 422, "input must be"),
        ({"input": [1, 2]}, 422, "input must be"),
        ({"input": ["a"] * 2049}, 422, "at most 2048"),
        ({"input": "a", "encoding_format": "int8"}, 422, "encoding_format"),
    ],
)
def test_a_request_that_says_something_else_gets_one_clear_line(
    encoder: Path, body: Any, status: int, problem: str
) -> None:
    found = ask(ServedModel("tiny", open_embedder(encoder)), body)
    assert found[0] == status and problem in found[1]["message"]


def test_other_addresses_and_ways_of_asking_are_refused(encoder: Path) -> None:
    service = ServedModel("tiny", open_embedder(encoder))
    assert ask(service, {"input": "a"}, path="/v1/rerank")[0] == 404
    assert ask(service, {"input": "a"}, method="GET")[0] == 405


def test_a_folder_says_what_it_is_and_how_it_is_pooled(encoder: Path, tmp_path: Path) -> None:
    head = encoder.parent / "head"
    assert is_embedder(encoder) and not is_embedder(head)
    assert pooling_of(encoder) == "mean"
    causal = tiny(tmp_path / "causal", "qwen3")[0]
    assert not is_embedder(causal)
    assert pooling_of(bare(causal, tmp_path / "bare")) == "last"
    said = bare(encoder, tmp_path / "said", pooling={"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})
    assert is_embedder(said) and pooling_of(said) == "cls" and pooling_of(said, "mean") == "mean"
    strange = bare(encoder, tmp_path / "strange", pooling={"pooling_mode_max_tokens": True})
    with pytest.raises(BadInput, match="no known pooling"):
        pooling_of(strange)
    dense = bare(encoder, tmp_path / "dense", modules=[{"type": "sentence_transformers.models.Dense"}])
    with pytest.raises(BadInput, match="module Dense"):
        pooling_of(dense)


def test_a_causal_model_gives_the_vector_of_its_last_token(tmp_path: Path) -> None:
    folder = bare(tiny(tmp_path / "causal", "qwen3")[0], tmp_path / "bare")
    vectors, _ = open_embedder(folder).encode(TEXTS)
    for row, text in zip(vectors, TEXTS, strict=True):
        assert row.tolist() == pytest.approx(plain(folder, text, "last").tolist(), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["mean", "lasttoken", "cls"])
def test_vectors_equal_those_of_sentence_transformers(encoder: Path, tmp_path: Path, mode: str) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    pooling = Pooling(64, pooling_mode=mode)
    theirs = SentenceTransformer(modules=[Transformer(str(encoder)), pooling, Normalize()], device="cpu")
    theirs.save(str(tmp_path / "st"))
    assert is_embedder(tmp_path / "st")
    ours, _ = open_embedder(tmp_path / "st").encode(TEXTS)
    assert np.abs(ours - theirs.encode(TEXTS)).max() < 1e-5


@pytest.fixture
def served(encoder: Path) -> Iterator[str]:
    """The real command with a token; the address that it prints."""
    with serve_model(encoder, {**os.environ, "QUORUM_RERANK_TOKEN": "secret"}) as said:
        yield said["url"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_served_encoder_makes_dense_runs_and_answers_openais_client(
    served: str, encoder: Path, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from openai import OpenAI

    assert served.endswith("/v1/embeddings")
    base = served.removesuffix("/embeddings")
    with OpenAI(base_url=base, api_key="secret", max_retries=0) as client:
        answer = client.embeddings.create(model="tiny", input=TEXTS)
    embedder = open_embedder(encoder)
    expected, tokens = embedder.encode(TEXTS)
    assert np.abs(np.array([one.embedding for one in answer.data]) - expected).max() < 1e-5
    assert answer.usage.prompt_tokens == tokens

    settings.VAR = tmp_path
    monkeypatch.setenv("SERVICE_TOKEN", "secret")
    JudgeVersion.objects.create(
        name="ours", provider="embed-endpoint", model="tiny", base_url=base, api_key_env="SERVICE_TOKEN"
    )
    wings = make_wings(TEXTS, ["hashable keys"])
    keys = dict(Document.objects.filter(collection=wings).values_list("pk", "text"))
    run = work_on(start_run(wings, "dense", "dense", judge="ours", depth=3))
    assert (run.state, run.error) == ("ready", "")
    ((documents, scores),) = rankings.scores_of(run).values()
    asked = embedder.encode(["hashable keys"])[0][0]
    cosines = {key: float(embedder.encode([text])[0][0] @ asked) for key, text in keys.items()}
    assert documents.tolist() == sorted(cosines, key=lambda key: -cosines[key])
    assert scores.tolist() == pytest.approx(sorted(cosines.values(), reverse=True), abs=1e-5)
    assert Ranking.objects.get(run=run).tokens_in > 0
