"""python -m tests.models MODEL --log FILE --port N: a real model behind OpenAI's API, on one thread, until killed.

MODEL is a GGUF file, served by llama.cpp's own server, or a folder of sentence-transformers, served as embeddings.
Calls go through a door that writes down what was asked and what was answered: one line of JSON when a call arrives, one
when its answer leaves. What the product stores is compared with these lines.
"""

import argparse
import asyncio
import base64
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientTimeout, web

Backend = Callable[[web.Request, bytes], Awaitable[tuple[int, bytes]]]
HEADERS = {"Content-Type": "application/json"}


def llama(model: Path, embedding: bool) -> Backend:
    """llama.cpp on a free port of its own: one call at a time on one thread, which sleeps while nothing is asked."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cpuparams.poll = params.cpuparams_batch.poll = 0
    params.n_parallel, params.n_ctx, params.n_predict = 1, 2048, 512
    params.use_jinja, params.warmup, params.verbosity = True, False, 0
    if embedding:
        params.embedding, params.pooling_type = True, xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server = xllamacpp.Server(params)

    async def forward(request: web.Request, body: bytes) -> tuple[int, bytes]:
        timeout = ClientTimeout(total=None)
        async with (
            ClientSession(timeout=timeout, headers=HEADERS) as session,
            session.request(request.method, server.listening_address + request.path_qs, data=body) as answer,
        ):
            return answer.status, await answer.read()

    return forward


def sentence_transformer(folder: Path) -> Backend:
    """POST /v1/embeddings by a model of sentence-transformers: vectors in base64, and its tokens."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    model.max_seq_length = 64  # a quarter of the model's own, for a quarter of the time

    def embed(texts: list[str]) -> dict[str, Any]:
        vectors = model.encode(texts, batch_size=32, show_progress_bar=False).astype("<f4")
        tokens = int(model.tokenize(texts)["attention_mask"].sum())
        data = [
            {"object": "embedding", "index": index, "embedding": base64.b64encode(vector.tobytes()).decode()}
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "model": folder.name, "data": data, "usage": usage}

    async def answer(request: web.Request, body: bytes) -> tuple[int, bytes]:
        if not body:
            return 200, b'{"data": []}'
        return 200, json.dumps(await asyncio.to_thread(embed, json.loads(body)["input"])).encode()

    return answer


def door(backend: Backend, log: Path) -> web.Application:
    """Answer by the backend, and append both sides of the calls that have a body to `log`."""
    numbers = iter(range(1, 1_000_000))

    def write(**line: object) -> None:
        with log.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({**line, "process": os.getpid(), "time": time.time()}) + "\n")

    async def handle(request: web.Request) -> web.Response:
        number, body = next(numbers), await request.read()
        if body:
            write(call=number, request=json.loads(body))
        status, content = await backend(request, body)
        if body:
            write(call=number, status=status, answer=json.loads(content))
        return web.Response(body=content, status=status, content_type="application/json")

    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", handle)
    return app


def main() -> None:
    """Parse the options, load the model, serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--log", type=Path, required=True, help="calls and answers, one JSON object a line, appended")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--embedding", action="store_true", help="have llama.cpp give mean-pooled vectors, no answers")
    options = parser.parse_args()
    folder = options.model.is_dir()
    backend = sentence_transformer(options.model) if folder else llama(options.model, options.embedding)
    web.run_app(door(backend, options.log), host="127.0.0.1", port=options.port, print=None)


main()
