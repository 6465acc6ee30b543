"""Actions: what a person or a program can tell Quorum to do, each in one place. Knows no app.

An action is a record of options (`actions.options.Options`, in the room's `options.py`), one
service (`actions.services.action`, in its `services.py`) and three doors of at most fifteen lines:
a page (`actions.pages.answer_action`), an operation (`api.operations.operation`) and a command
(`corpus.commands.ActionCommand`).

To move an action here: write its record, with title, help, bounds and choices of each option and a
validator for what depends on another; let the service take `(actor, collection, options)` and raise
`BadOption` for what it refuses; make the doors from it and delete their forms, arguments, bodies,
defaults, checks, transactions and audit-log entries; add it to `tests/actions/doors.py`. Where
doors had different names for an option, the command's stays. What a door leaves out stands in the
record's `leaves_out`, with the reason. `benchmark/hole_filling/` is one whole.

Webhooks need no word of a service: their events come from the rows that it writes.
"""
