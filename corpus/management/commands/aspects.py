"""`aspects NAME import|export F`: import or export the aspects of queries, with their documents."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from corpus.aspects.exchange import export_aspects, import_aspects
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput


class Command(QuorumCommand):
    help = "JSON lines {query_id, aspect_id, text, rationale, importance 1-5, doc_ids}. A bad line refuses the file."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("way", choices=["import", "export"], help="what to do")
        parser.add_argument("file", type=Path, metavar="F", help="aspects file to read or write (JSON Lines)")

    def run(self, **options: Any) -> object:
        collection, path = collection_named(options["name"]), options["file"]
        if options["way"] == "import":
            report = import_aspects(collection, path)
            self.say(
                "{collection}: {aspects:,} aspects of {queries:,} queries, {documents:,} documents under them; "
                "{changed:,} queries changed".format(**report)
            )
            return report
        if not path.parent.is_dir() or path.is_dir():
            raise BadInput(f"{path}: not a file that can be written; name one in a folder that exists")
        count = export_aspects(collection, path)
        self.say(f"{collection.name}: {count:,} aspects written to {path}")
        return {"collection": collection.name, "aspects": count, "file": str(path)}
