"""The rerank service: one process that holds one model and answers POST /v1/rerank (docs/train.md)."""
