"""Jobs that ask models: one life, one page, one command for all of them. A room says what is its own (ModelJobKind)."""
