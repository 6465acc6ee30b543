"""What granian loads in its one process: the model of QUORUM_MODEL behind the application that fits it."""

import os
from pathlib import Path

from jobs.processes import end_with_server
from training.serving.app import Rerank
from training.serving.base import Service
from training.serving.embedder import is_embedder, open_embedder
from training.serving.embeddings import Embeddings
from training.serving.scorer import open_scorer

# A killed server must not leave a process behind that holds the model's memory.
end_with_server()
folder = Path(os.environ["QUORUM_MODEL"])
device, pooling = os.environ.get("QUORUM_MODEL_DEVICE", "cpu"), os.environ.get("QUORUM_MODEL_POOLING", "")
token, limit = os.environ.get("QUORUM_RERANK_TOKEN", ""), int(os.environ.get("QUORUM_RERANK_LIMIT", "32"))
application: Service
if pooling or is_embedder(folder):
    application = Embeddings(open_embedder(folder, device, pooling), folder.name, token=token, limit=limit)
else:
    application = Rerank(open_scorer(folder, device), folder.name, token=token, limit=limit)
