"""Actions: what a person or a program can have Quorum do, each defined once. This package imports no app.

An action is a record of options (`actions.options.Options`, in the room's `options.py`), one
service (`actions.services.action`, in its `services.py`) and three interfaces ("doors") of at most
fifteen lines: a page (`actions.pages.answer_action`), an operation (`api.operations.operation`) and a
command (`corpus.commands.ActionCommand`).

To move an action here: write its record, with title, help, bounds and choices of each option and a
validator for what depends on another; let the service take `(actor, collection, options)` and raise
`BadOption` for what it refuses; make the doors from it and delete their forms, arguments, bodies,
defaults, checks, transactions and audit-log entries; add it to `tests/actions/doors.py`. Where
doors had different names for an option, the command's stays. Options that a door leaves out are listed
in the record's `leaves_out`, with the reason. `benchmark/hole_filling/` is a complete example.

Services need no code for webhooks, whose events come from the rows that they write.
"""
