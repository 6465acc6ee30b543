"""Errors of services in the words of a page: an option is named by its words, without dashes and backticks.

Services speak to commands and to the API, too. Forms replace the options that they have a field for; this is what
stands behind all of them, so that no page ever shows a flag.
"""

import re

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
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")
_CODE = re.compile(r"`([^`\n]+)`")


def say_to_reader(text: str) -> str:
    """Return a sentence without flags and backticks: “skip unknown” for the option --skip-unknown."""

    def name(flag: "re.Match[str]") -> str:
        return f"“{OPTIONS.get(flag[0]) or flag[1].replace('-', ' ')}”"

    # First the backticks, so that a flag within them is quoted once.
    plain = _CODE.sub(lambda code: code[1] if "--" in code[1] else f"“{code[1]}”", text)
    return _FLAG.sub(name, plain)
