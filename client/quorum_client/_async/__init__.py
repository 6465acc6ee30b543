"""The client for asyncio: the source of the one beside it (client/generate.py)."""
