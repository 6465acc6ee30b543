"""The rerank service: a process with one model, POST /v1/rerank (docs/train.md)."""
