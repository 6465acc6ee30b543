"""Marking messages of pure modules for the catalogue, to be translated by pages. Pure."""


def gettext_noop(message: str) -> str:
    """Return the message unchanged; makemessages finds it by this name (Django's function needs settings)."""
    return message
