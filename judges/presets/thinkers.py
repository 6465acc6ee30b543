"""Names of models that think before they answer, also where nobody asks them to: regular expressions."""

OPENAI = r"^(o\d|gpt-[5-9](?!.*chat))"
CLAUDE = r"claude-(fable|mythos)|claude-(opus|sonnet|haiku)-[5-9]"
"""Fable, Mythos and Opus 5.5 always think; the others from Claude 5 on unless they are told not to."""
GEMINI = r"gemini-(2\.5(?!-flash-lite)|[3-9])"
