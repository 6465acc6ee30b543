"""What gunicorn loads in its one worker: the model of QUORUM_MODEL behind the application that fits it."""

import os
from pathlib import Path

from training.embedder import is_embedder, open_embedder
from training.scorer import open_scorer
from training.service.app import Rerank
from training.service.base import Service
from training.service.embeddings import Embeddings

folder = Path(os.environ["QUORUM_MODEL"])
device, pooling = os.environ.get("QUORUM_MODEL_DEVICE", "cpu"), os.environ.get("QUORUM_MODEL_POOLING", "")
token, limit = os.environ.get("QUORUM_RERANK_TOKEN", ""), int(os.environ.get("QUORUM_RERANK_LIMIT", "32"))
application: Service
if pooling or is_embedder(folder):
    application = Embeddings(open_embedder(folder, device, pooling), folder.name, token=token, limit=limit)
else:
    application = Rerank(open_scorer(folder, device), folder.name, token=token, limit=limit)
