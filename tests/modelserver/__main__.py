"""python -m tests.modelserver --port 0 --log FILE: serves until it is stopped, or its parent's pipe closes."""

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

from tests.modelserver.behaviours import Script
from tests.modelserver.server import Connection, ModelServer


def main() -> None:
    """Parse the options, print the port as one JSON line, serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--log", type=Path, required=True, help="requests, one JSON object a line, appended")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds, where the script says nothing else")
    parser.add_argument("--script", type=Path, help="JSON file: {model: behaviour or [behaviour, ...]}")
    parser.add_argument("--hashes", action="store_true", help="log the sha256 of bodies only")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input closes")
    options = parser.parse_args()
    asyncio.run(serve(options))


async def serve(options: argparse.Namespace) -> None:
    """Listen on 127.0.0.1 until SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    if options.with_parent:
        loop.add_reader(sys.stdin.fileno(), stop.set)
    with options.log.open("a", encoding="utf-8") as log:
        server = ModelServer(log, options.latency, bodies=not options.hashes)
        if options.script:
            server.script = Script.load(json.loads(options.script.read_text()), options.latency)
        listener = await loop.create_server(lambda: Connection(server), "127.0.0.1", options.port, backlog=1024)
        server.port = listener.sockets[0].getsockname()[1]
        print(json.dumps({"port": server.port}), flush=True)
        await stop.wait()
        listener.close()


main()
