"""Teacher scores from a rerank API: asked for once, every answer kept (SPEC S8)."""
