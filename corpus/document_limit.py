"""How much of a document judges read. Pure."""

# Characters of a document that judges are shown; the prompt says so where there were more.
SHOWN = 24_000
# Where the whole document shall be read: more than any model takes.
WHOLE = 4_000_000
