"""What gunicorn loads in its one worker: the model of QUORUM_MODEL behind the application."""

import os
from pathlib import Path

from training.scorer import open_scorer
from training.service.app import Rerank

folder = Path(os.environ["QUORUM_MODEL"])
application = Rerank(
    open_scorer(folder, os.environ.get("QUORUM_MODEL_DEVICE", "cpu")),
    folder.name,
    token=os.environ.get("QUORUM_RERANK_TOKEN", ""),
    limit=int(os.environ.get("QUORUM_RERANK_LIMIT", "32")),
)
