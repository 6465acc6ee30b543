"""The ASGI application that granian loads, with the model in QUORUM_MODEL."""

import os
from pathlib import Path

from jobs.processes import end_with_server
from training.published.embedder import is_embedder, open_embedder
from training.published.opening import open_scorer
from training.serving.app import make_app
from training.serving.served_model import ServedModel

# If the server is killed, this process must not continue to occupy the model's memory.
end_with_server()
folder = Path(os.environ["QUORUM_MODEL"])
device, precision = os.environ.get("QUORUM_MODEL_DEVICE", "cpu"), os.environ.get("QUORUM_MODEL_PRECISION", "auto")
pooling = os.environ.get("QUORUM_MODEL_POOLING", "")
model = (
    open_embedder(folder, device, pooling, precision)
    if pooling or is_embedder(folder)
    else open_scorer(folder, device, precision=precision, prompt=os.environ.get("QUORUM_MODEL_PROMPT", ""))
)
application = make_app(
    ServedModel(
        folder.name,
        model,
        token=os.environ.get("QUORUM_RERANK_TOKEN", ""),
        max_requests=int(os.environ.get("QUORUM_RERANK_LIMIT", "32")),
        max_new_tokens=int(os.environ.get("QUORUM_MODEL_NEW_TOKENS", "512")),
    )
)
