"""Jobs that call models: one life cycle, page and command for all kinds, which their rooms define (ModelJobKind)."""
