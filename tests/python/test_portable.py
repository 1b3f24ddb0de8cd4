"""Rules that any server of records must keep, checked on the program with the official Python client.

The rules, in the modules of `portable`, know nothing of the implementation: they read only what a
client can read, over stdio and over HTTP, by the older revisions and by the newest. Four projects are
created with the command line: `pair` (connections that share a stream, and a stream of one connection),
`wide` (25 connections, of which 24 have no store, so that an answer that touched one of them would be
a failure), `many` (80 streams) and `vast` (1,000 streams). The number in a name is the rule's; `x1` to
`x5` are the five that came later.

Left out: the parts of rule 30 about tokens and their exit codes, because these rules read without a
token; and the warning about a candidate window in rule 29, because search has no such window.

Run it with a Python that has `mcp` 2.x:  python tests/python/test_portable.py [-v] [NAME ...]
"""

from __future__ import annotations

import functools
import json
import subprocess
import unittest

from mcp import StdioServerParameters
from portable.describing import Connections, Schemas
from portable.listing import Arguments, Listing
from portable.projects import project
from portable.searching import Searching
from portable.showing import Documents, Texts
from serving import LAST_WITH_HANDSHAKE, MODERN, PATIENCE, HttpServer, program


class Rules(Listing, Arguments, Schemas, Connections, Searching, Documents, Texts):
    """Rules over either transport, in either era."""


@functools.cache
def served(name: str) -> HttpServer:
    """The server of a project that all clients over HTTP share."""
    server = project(name).over_http()

    def stop() -> None:
        if code := server.stop():
            raise AssertionError(f"the server of {name} ended with {code} after Ctrl-C")

    unittest.addModuleCleanup(stop)
    return server


class OverStdio(Rules):
    def server(self, name: str) -> StdioServerParameters:
        return project(name).over_stdio()


class OverHttp(Rules):
    def server(self, name: str) -> str:
        return served(name).url


class LegacyOverStdio(OverStdio, unittest.IsolatedAsyncioTestCase):
    mode = "legacy"
    revision = LAST_WITH_HANDSHAKE


class ModernOverStdio(OverStdio, unittest.IsolatedAsyncioTestCase):
    mode = "auto"
    revision = MODERN


class LegacyOverHttp(OverHttp, unittest.IsolatedAsyncioTestCase):
    mode = "legacy"
    revision = LAST_WITH_HANDSHAKE


class ModernOverHttp(OverHttp, unittest.IsolatedAsyncioTestCase):
    mode = "auto"
    revision = MODERN


class StandardOutput(unittest.TestCase):
    def test_30_standard_output_carries_messages_alone(self) -> None:
        """Whatever comes in, and even where a store is not there."""
        about = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        call = {"name": "query_records", "arguments": {"stream": "notes", "connection_id": "box07"}}
        messages = [
            {"id": 1, "method": "initialize", "params": about},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/list"},
            {"id": 3, "method": "tools/call", "params": call},
        ]
        lines = [json.dumps({"jsonrpc": "2.0", **each}) for each in messages]
        wide = project("wide")
        process = subprocess.Popen(
            [program(), "serve", "--stdio", "--project", str(wide.path)],
            env=wide.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True,
        )
        self.addCleanup(process.stdout.close)
        answered = set()
        process.stdin.write("\n".join(lines) + "\n")
        process.stdin.flush()
        while not answered >= {1, 2, 3}:  # in whichever order: answers overtake each other
            message = json.loads(process.stdout.readline())
            self.assertEqual(message["jsonrpc"], "2.0")
            answered.add(message.get("id"))
        process.stdin.close()
        for line in process.stdout:
            self.assertEqual(json.loads(line)["jsonrpc"], "2.0")
        self.assertEqual(process.wait(timeout=PATIENCE), 0)


if __name__ == "__main__":
    unittest.main()
