"""`serve_model --model DIR`: serve a reranker or embedding model behind an endpoint, in one process."""

import importlib.util
import json
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from config import serving
from corpus.collections.secrets import read_secret
from corpus.commands import QuorumCommand
from corpus.errors import BadInput
from store.files import fetch
from training.published.embedder import POOLINGS, is_embedder
from training.published.protocol import EMBEDDINGS_PATH, NEW_TOKENS, RERANK_PATH
from training.published.scorer import PRECISIONS, check_prompt, read_reranker_json
from training.recipes.rendering import PROMPT_NAMES


class Command(QuorumCommand):
    """The command that serves a model until Ctrl-C; it prints a JSON line {url, pids, model} when it is ready."""

    help = (
        "Answer POST /v1/rerank with a model folder, in the shape of Cohere's and Jina's APIs; with an embedding model "
        "POST /v1/embeddings, in OpenAI's."
    )

    def arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--model", type=Path, metavar="DIR", help="folder of the model")
        add("--openapi", action="store_true", help="print the endpoint's OpenAPI document and end")
        add("--port", type=int, default=8100, help="port to listen on; 0 takes a free one")
        bind = "address to listen on; other than 127.0.0.1 requires QUORUM_RERANK_TOKEN"
        add("--bind", default="127.0.0.1", help=bind)
        limit = "maximum number of requests in progress or waiting; more are answered 503"
        add("--limit", type=int, default=32, help=limit)
        add("--device", choices=("cpu", "cuda"), default="cpu", help="where the model runs (default: cpu)")
        pooling = "pooling of embedding models (default: as the model folder says)"
        precision = "number format (default: fp32 on a CPU, bf16 on a GPU)"
        add("--precision", choices=PRECISIONS, default="auto", help=precision)
        prompt = "how a model is asked that does not say so itself"
        add("--prompt", choices=PROMPT_NAMES, default="", help=prompt)
        max_new_tokens = f"tokens of an answer, where a request does not say (default: {NEW_TOKENS})"
        add("--max-new-tokens", type=int, default=NEW_TOKENS, metavar="N", help=max_new_tokens)
        add("--pooling", choices=POOLINGS, default="", help=pooling)

    def run(self, **options: Any) -> object:
        if importlib.util.find_spec("torch") is None or importlib.util.find_spec("fastapi") is None:
            raise BadInput("Serving a model needs the training extra: `make install-training` sets it up")
        if options["openapi"]:
            from training.serving.app import make_app
            from training.serving.served_model import ServedModel

            return self.stdout.write(json.dumps(make_app(ServedModel("model", None)).openapi(), ensure_ascii=False))
        folder = check_folder(options["model"], options["prompt"], options["pooling"])
        for name in ("limit", "max_new_tokens"):
            if options[name] < 1:
                raise BadInput(f"--{name.replace('_', '-')} must be 1 or more")
        token = read_secret("QUORUM_RERANK_TOKEN")
        if not token and not is_loopback(options["bind"]):
            raise BadInput(
                f"--bind {options['bind']} is open to others: set QUORUM_RERANK_TOKEN or QUORUM_RERANK_TOKEN_FILE"
            )
        children = serving.Children()
        serving.stop_on_signals()
        try:
            with serving.listen(options["bind"], options["port"]) as listener:
                settings = {"QUORUM_MODEL": str(folder), "QUORUM_MODEL_DEVICE": options["device"]}
                settings |= {"QUORUM_RERANK_LIMIT": str(options["limit"]), "QUORUM_RERANK_TOKEN": token}
                settings |= {"QUORUM_MODEL_POOLING": options["pooling"], "QUORUM_MODEL_PROMPT": options["prompt"]}
                settings |= {"QUORUM_MODEL_PRECISION": options["precision"]}
                settings |= {"QUORUM_MODEL_NEW_TOKENS": str(options["max_new_tokens"])}
                address = serving.address_of(listener)
                children.model(listener, settings)
                children.wait_until(lambda: serving.site_answers(address), "the model")
                path = EMBEDDINGS_PATH if options["pooling"] or is_embedder(folder) else RERANK_PATH
                line = {"url": f"{address}{path}", "pids": children.pids, "model": folder.name}
                self.stdout.write(json.dumps(line))
                self.stdout.flush()
                children.watch()
        except serving.ServingInterrupted as interruption:
            raise SystemExit(interruption.code) from None
        finally:
            children.stop()
        return None


def check_folder(folder: Path | None, prompt: str, pooling: str) -> Path:
    """Return the folder of a model, after checks. Raises BadInput."""
    if folder is None:
        raise BadInput("--model is missing: name the folder of a model")
    if not (fetch(folder.resolve()) / "config.json").exists():
        raise BadInput(f"{folder} has no config.json: name the folder of a model")
    read_reranker_json(folder)
    if not pooling and not is_embedder(folder):
        check_prompt(folder, prompt)
    return folder.resolve()


def is_loopback(address: str) -> bool:
    """Return whether an address can only be reached from this machine."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
