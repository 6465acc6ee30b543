"""Words of pure modules that pages translate later: marked for the catalogue only. Pure."""


def gettext_noop(message: str) -> str:
    """Return the message as it is; the name lets the extraction of messages find it (Django's own needs settings)."""
    return message
