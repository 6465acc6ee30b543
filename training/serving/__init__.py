"""The model endpoint: a process with one model that answers POST /v1/rerank or /v1/embeddings (docs/train.md)."""
