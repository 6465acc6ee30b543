"""`messages`: collect the strings of all pages into the catalogues in locale/ and compile them (for developers)."""

from typing import Any

from django.core.management.base import CommandParser

from config import env, messages
from corpus.commands import QuorumCommand


class Command(QuorumCommand):
    """The command that updates locale/*/LC_MESSAGES/django.po and compiles django.mo beside it."""

    help = "Collect the strings of all pages into locale/*.po and compile them."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--compile", action="store_true", help="only compile the existing catalogues")

    def run(self, **options: Any) -> object:
        catalog = None if options["compile"] else messages.collect_messages(env.ROOT)
        document = {}
        for locale in messages.translated_locales():
            total, untranslated = messages.update_catalogue(messages.catalogue_path(env.ROOT, locale), catalog)
            document[locale] = {"strings": total, "untranslated": untranslated}
            self.say(f"{locale}: {total} strings, {untranslated} without a translation")
        return document
