"""Search endpoint files (TOML): a list of [[endpoint]] tables."""

from pathlib import Path

from django.utils.translation import gettext as _

from benchmark.search_endpoints.options import EndpointOptions
from corpus.errors import BadInput, BadOption
from corpus.importing.toml_files import find_lines, read_tables


def read_endpoints(path: Path) -> list[EndpointOptions]:
    """Return the endpoints of a file. Raises BadInput with the file, the line if known, and the key."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or _("it is not UTF-8 text")
        raise BadInput(_("%(name)s cannot be read: %(reason)s") % {"name": path, "reason": reason}) from None
    return parse_endpoints(text, path.name)


def parse_endpoints(text: str, name: str) -> list[EndpointOptions]:
    """Return the endpoints of the text of a file named `name`. Raises BadInput."""
    file = read_tables(text, name)
    tables = file.pop("endpoint", None)
    if file:
        words = _("%(name)s: “%(key)s” is unknown. Write [[endpoint]] tables only")
        raise BadInput(words % {"name": name, "key": next(iter(file))})
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise BadInput(_("%(name)s has no endpoint. Write each as [[endpoint]]") % {"name": name})
    lines = find_lines(text)
    endpoints = []
    for number, table in enumerate(tables):
        try:
            endpoints.append(EndpointOptions.read(table, strict=True))
        except BadOption as error:
            key, sentence = error.problems[0]
            line = lines.get(("endpoint", number, key)) or lines.get(("endpoint", number), 0)
            values = {"name": name, "line": line, "key": key or "endpoint", "sentence": sentence.removesuffix(".")}
            raise BadInput(_("%(name)s, line %(line)s: %(key)s: %(sentence)s") % values) from None
    names = [endpoint.name for endpoint in endpoints]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise BadInput(_("%(name)s has two endpoints named %(endpoint)s") % {"name": name, "endpoint": repeated})
    return endpoints
