"""Formats of answers: what each kind of question accepts, as a schema, and how an answer is read."""
