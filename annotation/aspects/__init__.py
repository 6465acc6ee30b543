"""The workshop of aspects (SPEC S7): a query's desk, passages on their way in, the second person."""
