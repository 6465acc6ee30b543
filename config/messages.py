"""Messages for translation: collected by Babel, and merged into catalogues by polib (docs/annotators.md).

Both packages are in requirements-dev.txt; GNU gettext is not needed.
"""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import to_locale
from django.utils.translation.template import templatize

if TYPE_CHECKING:
    from babel.messages import Catalog

HEADER = {"Content-Type": "text/plain; charset=UTF-8", "Plural-Forms": "nplurals=1; plural=0;"}
KEYWORDS: dict[str, Any] = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop")),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (1, 2)),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), ((1, "c"), 2)),
}


def extract_template(file: Any, keywords: Any, comment_tags: Any, options: Any) -> Any:
    """Extract {% translate %}, {% blocktranslate %} and _("...") from a template, for Babel."""
    from babel.messages.extract import extract_python

    # As in Django's own `makemessages`. The remains of the HTML do not follow Python's rules of indentation.
    lines = templatize(file.read().decode()).split("\n")
    unindented = "\n".join(line.lstrip() for line in lines)
    return extract_python(BytesIO(unindented.encode()), keywords, comment_tags, options)


def collect_messages(root: Path) -> "Catalog":
    """Return every marked string of the project with the files that contain it, in the order of the files."""
    from babel.messages import Catalog
    from babel.messages.extract import extract

    catalog = Catalog()
    apps = sorted(path.parent for path in root.glob("*/__init__.py") if path.parent.name != "tests")
    python = [path for app in apps for path in sorted(app.rglob("*.py")) if "migrations" not in path.parts]
    templates = sorted(path for path in (root / "templates").rglob("*") if path.suffix in {".html", ".txt"})
    for path in [*templates, *python]:
        location = (str(path.relative_to(root)), 0)
        with path.open("rb") as file:
            for _line, text, _comments, context in extract(
                "python" if path.suffix == ".py" else extract_template, file, KEYWORDS
            ):
                catalog.add(text, locations=[location], context=context)
    return catalog


def catalogue_path(root: Path, locale: str) -> Path:
    """Return the path of a catalogue, like locale/zh_Hans/LC_MESSAGES/django.po."""
    return root / "locale" / locale / "LC_MESSAGES" / "django.po"


def update_catalogue(path: Path, messages: "Catalog | None") -> tuple[int, int]:
    """Save and compile the catalogue at `path`; return the numbers of its strings and of untranslated ones.

    `messages`: what the catalogue then consists of, with the existing translations; None leaves it as it is.
    """
    import polib

    is_new = messages is not None and not path.exists()
    catalogue = polib.POFile(wrapwidth=0) if is_new else polib.pofile(str(path), wrapwidth=0)
    if messages is not None:
        old_entries = {(entry.msgid, entry.msgctxt or ""): entry for entry in catalogue}
        catalogue = polib.POFile(wrapwidth=0)
        catalogue.metadata = {**HEADER, "Language": path.parent.parent.name}
        for message in messages:
            text, *plural = (message.id,) if isinstance(message.id, str) else message.id
            if not text:
                continue
            occurrences = dict.fromkeys((file, "") for file, _line in message.locations)
            entry = polib.POEntry(msgid=text, msgctxt=message.context or None, occurrences=list(occurrences))
            old_entry = old_entries.get((text, message.context or ""))
            translation = (old_entry.msgstr or old_entry.msgstr_plural.get(0, "")) if old_entry else ""
            if plural:
                entry.msgid_plural, entry.msgstr_plural = plural[0], {0: translation}
            else:
                entry.msgstr = translation
            catalogue.append(entry)
    catalogue.save(str(path))
    path.with_suffix(".mo").write_bytes(catalogue.to_binary())
    return len(catalogue), len(catalogue.untranslated_entries())


def translated_locales() -> list[str]:
    """Return the locales of the translated languages: zh_Hans."""
    return [to_locale(code) for code, _ in settings.LANGUAGES if code != settings.LANGUAGE_CODE]
