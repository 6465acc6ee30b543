"""`query_splits NAME`: lists of queries that stay out of training sets, such as fixed test queries."""

from typing import Any

from django.core.management.base import CommandParser

from annotation.exports.query_splits.lists import carried_names, delete_split, keep_split, list_splits, read_ids
from corpus.collections.audit_log import shell_user
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput
from corpus.formats.files import FileSource


class Command(QuorumCommand):
    help = "Show, keep or delete lists of queries that enter no training set, for `export --split test=LIST`."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        group = parser.add_mutually_exclusive_group()
        group.add_argument("--keep", metavar="LIST", help="keep the query ids of --file under this name")
        group.add_argument("--delete", metavar="LIST", help="delete the list")
        parser.add_argument("--file", metavar="F", help="with --keep: query ids, one per line")

    def run(self, **options: Any) -> object:
        collection = collection_named(options["name"])
        if (options["keep"] is None) != (options["file"] is None):
            raise BadInput("--keep LIST and --file F go together")
        if options["keep"] is not None:
            ids = read_ids(FileSource(options["file"]))
            split = keep_split(None, collection, options["keep"], ids, made_by=shell_user())
            self.say(f"{split.name}: {len(split.query_ids)} queries of {collection.name} stay out of training sets")
        if options["delete"] is not None:
            delete_split(None, collection, options["delete"])
            self.say(f"{options['delete']} is deleted: training sets may hold its queries")
        lists = [
            {"name": query_split.name, "queries": len(query_split.query_ids)} for query_split in list_splits(collection)
        ]
        carried = carried_names(collection)
        if options["keep"] is None and options["delete"] is None:
            for row in lists:
                self.say(f"{row['name']}: {row['queries']} queries")
            self.say(f"splits that queries carry: {', '.join(carried) or 'none'}")
        return {"collection": collection.name, "lists": lists, "carried": carried}
