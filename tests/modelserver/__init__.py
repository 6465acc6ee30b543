"""A local server that speaks the wire formats of OpenAI, Anthropic and Google, by a script, with faults."""
