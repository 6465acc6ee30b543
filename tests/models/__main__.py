"""python -m tests.models MODEL.gguf --log FILE: llama.cpp's own server, one thread, until it is killed.

Calls go through a door that writes down what was asked and what llama.cpp answered: one line of JSON when a call
arrives, one when its answer leaves. What the product stores is compared with these lines.
"""

import argparse
import json
import os
import time
from pathlib import Path

import xllamacpp
from aiohttp import ClientSession, ClientTimeout, web


def start_llama(options: argparse.Namespace) -> xllamacpp.Server:
    """llama.cpp on a free port of its own: one call at a time on one thread, which sleeps while nothing is asked."""
    params = xllamacpp.CommonParams()
    params.model.path = str(options.model)
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cpuparams.poll = params.cpuparams_batch.poll = 0
    params.n_parallel, params.n_ctx, params.n_predict = 1, 2048, 512
    params.use_jinja, params.warmup, params.verbosity = True, False, 0
    if options.embedding:
        params.embedding, params.pooling_type = True, xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return xllamacpp.Server(params)


def door(llama: str, log: Path) -> web.Application:
    """Forward all requests to llama.cpp, and append both sides of those with a body to `log`."""
    numbers = iter(range(1, 1_000_000))

    def write(**line: object) -> None:
        with log.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({**line, "process": os.getpid(), "time": time.time()}) + "\n")

    async def forward(request: web.Request) -> web.Response:
        number, body = next(numbers), await request.read()
        if body:
            write(call=number, request=json.loads(body))
        async with request.app["llama"].request(request.method, llama + request.path_qs, data=body) as answer:
            content = await answer.read()
        if body:
            write(call=number, status=answer.status, answer=json.loads(content))
        return web.Response(body=content, status=answer.status, content_type=answer.content_type)

    async def session(app: web.Application) -> object:
        async with ClientSession(
            timeout=ClientTimeout(total=None), headers={"Content-Type": "application/json"}
        ) as llama:
            app["llama"] = llama
            yield

    app = web.Application(client_max_size=2**26)
    app.cleanup_ctx.append(session)
    app.router.add_route("*", "/{path:.*}", forward)
    return app


def main() -> None:
    """Parse the options, load the model, serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--log", type=Path, required=True, help="calls and answers, one JSON object a line, appended")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--embedding", action="store_true", help="serve mean-pooled embeddings in place of answers")
    options = parser.parse_args()
    llama = start_llama(options)
    app = door(llama.listening_address, options.log)
    web.run_app(app, host="127.0.0.1", port=options.port, print=None)


main()
