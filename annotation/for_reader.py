"""Errors of services as whole sentences for who reads them: on a page, and in a problem of the API.

Services speak to commands, which name an option by its flag and begin with a small letter, as compilers do. Here a flag
becomes the words of its field, a backtick a quotation mark, and a path of the server its last name; what begins with a
word gets its capital letter. Forms replace the options that they have a field for; this stands behind all of them.
"""

import re
from collections.abc import Callable

from django.conf import settings
from django.utils.translation import gettext_lazy

# What fields of pages call an option, where its own words would not be understood.
OPTIONS = {
    "--update": gettext_lazy("Update documents whose text changed"),
    "--skip-unknown": gettext_lazy("Leave out rows that name no known query or document"),
    "--empty": gettext_lazy("Documents without text"),
    "--teacher": gettext_lazy("Target score"),
    "--judges": gettext_lazy("Panel"),
    "--filter": gettext_lazy("Filter"),
    "--max-calls": gettext_lazy("Maximum number of calls"),
}
# Words with which errors begin. Any other first word is a name or a key, and stays as it is written.
_WORDS = """
    a agents all an another answers asking assessors attention broken budget byte bytes campaign cannot choose
    collection contexts depth dev device did does document documents enter every format give gold grade group half
    how in instruction it its job labels large less limit method more name nearly negatives neither no nobody none
    not nothing nowhere of one only over owner packed packing pairs panel password point policy port provider query
    queries reader recipe redirects remove rows run samples scheme scores see serving set share slow so some sparse
    status stopped suite such teacher temperature text that the there these they this those to top tracking two
    unknown unread weights what where with you your
"""
BEGINNINGS = frozenset(_WORDS.split())
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")
_CODE = re.compile(r"`([^`\n]+)`")
# Files of this instance and of Quorum itself, such as an upload that an error names.
_ROOTS = "|".join(re.escape(folder) for folder in sorted({str(settings.VAR), str(settings.BASE_DIR)}, reverse=True))
_PATH = re.compile(rf"(?<![\w./:])(?:{_ROOTS})(/[^\s:;,“”\"']+)")
_WORD = re.compile(r"[a-z]+(?=[ ,])")


def say_to_reader(text: str) -> str:
    """Return a text without flags, backticks and paths: “skip unknown” for the option --skip-unknown."""
    return _say(text, lambda flag: str(OPTIONS.get(f"--{flag}") or flag.replace("-", " ")))


def say_to_program(text: str) -> str:
    """Return an error as a problem of the API has it: a sentence, with an option as its field: “max_calls”."""
    return begin_sentence(_say(text, lambda flag: flag.replace("-", "_")))


def begin_sentence(text: str) -> str:
    """Return the text with a capital letter, unless it begins with a name, a key or what is quoted."""
    first = _WORD.match(text)
    return text[:1].upper() + text[1:] if first and first[0] in BEGINNINGS else text


def _say(text: str, name: Callable[[str], str]) -> str:
    # First the backticks, so that a flag within them is quoted once.
    plain = _CODE.sub(lambda code: code[1] if "--" in code[1] else f"“{code[1]}”", text)
    plain = _FLAG.sub(lambda flag: f"“{name(flag[1])}”", plain)
    return _PATH.sub(lambda path: path[1].rstrip("/").rpartition("/")[2] or path[0], plain)
