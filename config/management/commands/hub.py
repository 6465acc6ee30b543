"""`hub push NAME OWNER/REPO`: push an export or a model to the Hugging Face Hub, or to a compatible server."""

from typing import Any

from django.core.management.base import CommandParser

from actions.options import add_arguments, read_arguments
from config.hub.options import PushOptions
from config.hub.pushing import push_folder
from corpus.commands import QuorumCommand, collection_named


class Command(QuorumCommand):
    """The command that pushes the folder of an export or a published model."""

    help = "Push an export or a model to a hub (HF_TOKEN, HF_ENDPOINT), private unless --public."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("act", choices=["push"])
        parser.add_argument("name", help="name of the collection")
        add_arguments(parser, PushOptions, positional=("repository",))
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--export", type=int, metavar="N", help="number of an export, as its page shows it")
        source.add_argument("--model", type=int, metavar="N", help="number of a published model")

    def run(self, **options: Any) -> object:
        kind, number = ("dataset", options["export"]) if options["export"] else ("model", options["model"])
        collection = collection_named(options["name"])
        push_options = read_arguments(PushOptions, options)
        pushed = push_folder(collection, kind, number, push_options.repository, public=push_options.public)
        self.say(f"pushed: {pushed['address']}, commit {pushed['commit']}")
        return pushed
