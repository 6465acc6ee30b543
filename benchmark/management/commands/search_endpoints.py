"""`search_endpoints add F.toml | list | test NAME --query "..." | delete NAME`: addresses of search engines."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from actions.options import add_arguments, read_arguments
from benchmark.models import SearchEndpoint
from benchmark.search_endpoints import services
from benchmark.search_endpoints.files import read_endpoints
from benchmark.search_endpoints.options import EndpointOptions
from benchmark.search_endpoints.selectors import endpoints, find_endpoint
from corpus.commands import QuorumCommand
from corpus.errors import BadInput, BadOption


class Command(QuorumCommand):
    """The command of search endpoints; each act but `list` is in the audit log."""

    help = "Add search engines whose results are to be judged, test them, list and delete them."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "act",
            choices=("add", "list", "test", "delete"),
            help="add: add or change the endpoints of a file, all or none; test: send one query, and show request, "
            "answer and hits; delete: runs stay",
        )
        parser.add_argument("target", nargs="?", metavar="F|NAME", help="search endpoint file (TOML), or name")
        add_arguments(parser, services.EndpointTestOptions)

    def run(self, **arguments: Any) -> object:
        act = arguments["act"]
        if act != "list" and not arguments["target"]:
            raise BadInput(f"Name the {'file' if act == 'add' else 'endpoint'}: search_endpoints {act} ...")
        if act != "test" and (arguments["query"] or arguments["k"]):
            raise BadOption("query" if arguments["query"] else "k", "only test takes this")
        return getattr(self, act)(arguments)

    def add(self, arguments: dict[str, Any]) -> object:
        """Add or change the endpoints of a file."""
        options = read_endpoints(Path(arguments["target"]))
        with transaction.atomic():
            changes = [(endpoint.name, self.store(endpoint)) for endpoint in options]
        for name, change in changes:
            self.say(f"{name}: {change}")
        self.say("Try each with one query: manage.py search_endpoints test NAME --query ...")
        return [{"name": name, "change": change} for name, change in changes]

    def store(self, options: EndpointOptions) -> str:
        """Add or change an endpoint, and return which of the two happened."""
        endpoint = endpoints().filter(name=options.name).first()
        if endpoint is None:
            services.add_endpoint(self.actor, None, options)
            return "added"
        before = endpoint.changed_at
        return (
            "unchanged" if services.change_endpoint(self.actor, endpoint, options).changed_at == before else "changed"
        )

    def list(self, arguments: dict[str, Any]) -> object:
        """Print all endpoints, a line each."""
        rows = [
            {"name": row.name, "kind": row.kind, "base_url": row.settings["base_url"], "index": row.settings["index"]}
            for row in endpoints()
        ]
        for row in rows:
            self.say("  ".join(value for value in row.values() if value))
        if not rows:
            self.say("There is no search endpoint: manage.py search_endpoints add F.toml")
        return rows

    def delete(self, arguments: dict[str, Any]) -> object:
        """Delete an endpoint."""
        endpoint = services.delete_endpoint(self.actor, find_endpoint(arguments["target"]))
        self.say(f"{endpoint.name} is deleted; its runs stay.")
        return {"name": endpoint.name}

    def test(self, arguments: dict[str, Any]) -> object:
        """Send one query. Raises BadInput where no hit came that could be judged."""
        endpoint = find_endpoint(arguments["target"])
        options = read_arguments(services.EndpointTestOptions, arguments)
        test = services.try_endpoint(self.actor, endpoint, options)
        self.show(test)
        if test.failure:
            raise BadInput(test.failure)
        for problem in test.problems:
            self.say(problem)
        if not test.is_usable and test.answer is not None and (test.answer.page.hits or test.answer.page.without_id):
            raise BadInput(test.problems[0])
        return self.document(endpoint, test)

    def show(self, test: services.EndpointTest) -> None:
        """Print the request as it was sent, the shape of the answer, and the hits."""
        if (request := test.request) is not None:
            self.say(f"{request.method} {request.url}")
            for header, value in request.headers.items():
                self.say(f"{header}: {value}")
            if request.body:
                self.say(f"\n{request.body}")
        if (answer := test.answer) is not None:
            self.say(f"\nstatus {answer.status} after {answer.seconds:.2f} s, {len(answer.raw):,} bytes")
            if test.shape_text:
                self.say(test.shape_text)
            for rank, hit in enumerate(answer.page.hits, 1):
                score = "" if hit.score is None else f"  {hit.score:g}"
                self.say(f"\n{rank}. {hit.id}{score}  {hit.title}\n{hit.text[:600] or '(no text)'}")

    @staticmethod
    def document(endpoint: SearchEndpoint, test: services.EndpointTest) -> dict[str, Any]:
        """Return the document for --json."""
        answer = test.answer
        assert answer is not None
        page = answer.page
        return {
            "name": endpoint.name,
            "query": test.query,
            "request": {"method": answer.request.method, "url": answer.request.url, "headers": answer.request.headers,
                        "body": answer.request.body},
            "status": answer.status,
            "seconds": answer.seconds,
            "shape": test.shape,
            "hits": [{"id": hit.id, "title": hit.title, "text": hit.text, "score": hit.score, "metadata": hit.metadata}
                     for hit in page.hits],
            "duplicates": page.duplicates,
            "without_id": page.without_id,
            "without_text": page.without_text,
            "problems": test.problems,
        }  # fmt: skip
