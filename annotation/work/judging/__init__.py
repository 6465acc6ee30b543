"""The judging page: one task with its text, debate and grades; submit, skip, flag, undo."""
