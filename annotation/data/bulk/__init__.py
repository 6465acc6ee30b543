"""Acts on many selected pairs at once: planned, confirmed, done, undone where possible."""
