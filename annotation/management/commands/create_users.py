"""`create_users [NAME] --role R --count N`: accounts with random passwords."""

from typing import Any

from django.core.management.base import CommandParser

from annotation.people.accounts.invitations import create_accounts
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput

ROLES = ("viewer", "annotator", "adjudicator", "admin", "owner")


class Command(QuorumCommand):
    help = "Create accounts and print them as a JSON list of {username, password}. Passwords are not shown again."

    def arguments(self, parser: CommandParser) -> None:
        """Add the options. `run` checks their values, so that a wrong one exits with 2 and one line."""
        parser.add_argument("name", nargs="?", metavar="NAME", help="name of the collection (none for owners)")
        parser.add_argument("--role", default="", metavar="|".join(ROLES), help="role in the collection")
        parser.add_argument("--count", type=int, default=1, metavar="N", help="number of accounts (default: 1)")

    def run(self, **options: Any) -> object:
        """Create the accounts that do not exist yet."""
        name, role, count = options["name"], options["role"], options["count"]
        if role not in ROLES:
            raise BadInput(f"--role {role or 'is missing'}: choose one of {', '.join(ROLES)}")
        if not 1 <= count <= 1000:
            raise BadInput(f"--count {count}: choose 1 to 1000")
        self.as_json = True  # The output of this command is always the JSON list.
        if role == "owner" and name is not None:
            raise BadInput(f"Owner is a role of the whole site: leave out the collection {name}")
        if role != "owner" and name is None:
            raise BadInput(f"{role} is a role in a collection: name it, as in create_users NAME --role {role}")
        collection = collection_named(name) if name is not None else None
        return create_accounts(role=role, count=count, collection=collection)
