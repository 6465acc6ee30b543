"""Acts on many selected pairs at once: planned, confirmed, done, and undone where that is possible."""
