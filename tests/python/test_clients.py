"""The official Python client against a server built on `wayleave-mcp`.

Every rule holds for each way a client may connect: over stdio and over HTTP, with the handshake
of the older revisions (`legacy`), with the newest one pinned, and with the client left to find
out (`auto`). The server is the crate's example `plugin_host`; loading its plugin `demo` adds a
tool, a resource, a resource template and a prompt in one commit.

Run it with a Python that has `mcp` 2.x:  python tests/python/test_clients.py [-v] [NAME ...]
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import re
import signal
import subprocess
import threading
import unittest
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

ROOT = Path(__file__).resolve().parents[2]
MODERN = "2026-07-28"
LAST_WITH_HANDSHAKE = "2025-11-25"
# Long enough for a loaded machine; only a broken server ever waits this long.
PATIENCE = 20
INVALID_PARAMS = -32602

KINDS = {
    types.ToolListChangedNotification: "tools",
    types.ResourceListChangedNotification: "resources",
    types.PromptListChangedNotification: "prompts",
    ToolsListChanged: "tools",
    ResourcesListChanged: "resources",
    PromptsListChanged: "prompts",
}


@functools.cache
def plugin_host() -> str:
    """The example's binary: the one named by the environment, or built now."""
    if given := os.environ.get("WAYLEAVE_PLUGIN_HOST"):
        return given
    build = ["cargo", "build", "--quiet", "--package", "wayleave-mcp", "--example", "plugin_host"]
    output = subprocess.run(
        [*build, "--message-format", "json"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    for message in map(json.loads, output.splitlines()):
        if message.get("executable") and message["target"]["name"] == "plugin_host":
            return message["executable"]
    raise RuntimeError("cargo built no `plugin_host`")


class HttpServer:
    """A plugin host on a free port of this machine."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [plugin_host(), "--http", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
        )
        for line in self.process.stderr:
            if found := re.search(r"listening on (http://\S+)", line):
                self.url = found.group(1)
                # Whatever else it logs is read and dropped, so that a full pipe never stops it.
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return
        raise RuntimeError(f"the server ended with {self.process.wait()} before it listened")

    def stop(self) -> int:
        """Asks the server to end, as a service manager would, and returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


class Notices:
    """The list_changed notices one client has heard, in either era's way."""

    def __init__(self) -> None:
        self.heard: Counter[str] = Counter()
        self._news = asyncio.Condition()

    async def add(self, kind: str) -> None:
        async with self._news:
            self.heard[kind] += 1
            self._news.notify_all()

    async def on_message(self, message: object) -> None:
        """For the older era, where notices come unasked."""
        if kind := KINDS.get(type(message)):
            await self.add(kind)

    async def listen_on(self, subscription) -> None:
        """For the newer era, where they come on a stream the client opened."""
        async for event in subscription:
            await self.add(KINDS[type(event)])

    async def until(self, **wanted: int) -> None:
        """Returns once at least so many notices of each kind were heard."""
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(lambda: all(self.heard[k] >= n for k, n in wanted.items()))


@asynccontextmanager
async def connected(server: str | StdioServerParameters, mode: str):
    """A client, and the notices it hears; it listens to everything from the start."""
    notices = Notices()
    failure = None
    handler = notices.on_message if mode == "legacy" else None
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            Client(server, mode=mode, message_handler=handler, read_timeout_seconds=PATIENCE)
        )
        if mode != "legacy":
            subscription = await stack.enter_async_context(
                client.listen(
                    tools_list_changed=True,
                    resources_list_changed=True,
                    prompts_list_changed=True,
                )
            )
            listening = asyncio.create_task(notices.listen_on(subscription))
            stack.callback(listening.cancel)
        try:
            yield client, notices
        except Exception as error:
            failure = error
    # Raised out here, past the client's task groups, which would wrap it beyond recognition.
    if failure:
        raise failure


def text_of(result: types.CallToolResult) -> str:
    return "".join(part.text for part in result.content if part.type == "text")


async def names(client: Client) -> dict[str, set[str]]:
    """What the server lists now, by kind."""
    return {
        "tools": {tool.name for tool in (await client.list_tools()).tools},
        "resources": {str(each.uri) for each in (await client.list_resources()).resources},
        "templates": {
            each.uri_template
            for each in (await client.list_resource_templates()).resource_templates
        },
        "prompts": {prompt.name for prompt in (await client.list_prompts()).prompts},
    }


OF_THE_PLUGIN = {
    "tools": "demo_echo",
    "resources": "plugin://demo/about",
    "templates": "plugin://demo/{item}",
    "prompts": "demo_prompt",
}


class Rules:
    """What holds for every connection, whatever its mode and its transport."""

    mode: str

    def client(self):
        """A connection to a fresh server, without the plugin."""
        return connected(self.server(), self.mode)

    @asynccontextmanager
    async def client_with_plugin(self):
        async with self.client() as (client, notices):
            await self.load(client, notices)
            yield client, notices

    async def load(self, client: Client, notices: Notices) -> None:
        result = await client.call_tool("load_plugin", {"name": "demo"})
        self.assertFalse(result.is_error, text_of(result))
        await notices.until(tools=1, resources=1, prompts=1)

    async def test_the_revision_is_the_newest_the_mode_allows(self) -> None:
        async with self.client() as (client, _):
            expected = LAST_WITH_HANDSHAKE if self.mode == "legacy" else MODERN
            self.assertEqual(client.session.protocol_version, expected)

    async def test_a_loaded_plugin_appears_in_every_list(self) -> None:
        async with self.client() as (client, notices):
            before = await names(client)
            await self.load(client, notices)
            after = await names(client)
            for kind, name in OF_THE_PLUGIN.items():
                self.assertEqual(after[kind] - before[kind], {name}, kind)

    async def test_an_unloaded_plugin_leaves_every_list(self) -> None:
        async with self.client() as (client, notices):
            before = await names(client)
            await self.load(client, notices)
            await client.call_tool("unload_plugin", {"name": "demo"})
            await notices.until(tools=2, resources=2, prompts=2)
            self.assertEqual(await names(client), before)

    async def test_a_load_and_an_unload_are_one_notice_of_each_kind_each(self) -> None:
        async with self.client_with_plugin() as (client, notices):
            self.assertEqual(notices.heard, {"tools": 1, "resources": 1, "prompts": 1})
            await client.call_tool("unload_plugin", {"name": "demo"})
            await notices.until(tools=2, resources=2, prompts=2)
            self.assertEqual(notices.heard, {"tools": 2, "resources": 2, "prompts": 2})

    async def test_an_added_tool_can_be_called(self) -> None:
        async with self.client_with_plugin() as (client, _):
            result = await client.call_tool("demo_echo", {"text": "a right of way, ünïcode 🛤"})
            self.assertFalse(result.is_error)
            self.assertEqual(text_of(result), "a right of way, ünïcode 🛤")

    async def test_arguments_that_break_the_schema_are_refused_by_name(self) -> None:
        async with self.client_with_plugin() as (client, _):
            refusal = await self.refusal_of(client.call_tool("demo_echo", {"text": 7}))
            self.assertIn("text", refusal)

    async def test_a_removed_tool_is_refused_by_name(self) -> None:
        async with self.client_with_plugin() as (client, notices):
            await client.call_tool("unload_plugin", {"name": "demo"})
            await notices.until(tools=2)
            with self.assertRaises(MCPError) as refused:
                await client.call_tool("demo_echo", {"text": "gone"})
            self.assertEqual(refused.exception.error.code, INVALID_PARAMS)
            self.assertIn("demo_echo", refused.exception.error.message)

    async def test_an_added_resource_can_be_read(self) -> None:
        async with self.client_with_plugin() as (client, _):
            result = await client.read_resource("plugin://demo/about")
            (content,) = result.contents
            self.assertEqual(str(content.uri), "plugin://demo/about")
            self.assertTrue(content.text)

    async def test_a_resource_of_an_added_template_can_be_read(self) -> None:
        async with self.client_with_plugin() as (client, _):
            result = await client.read_resource("plugin://demo/gate")
            (content,) = result.contents
            self.assertEqual(str(content.uri), "plugin://demo/gate")
            self.assertIn("gate", content.text)

    async def test_a_removed_resource_can_not_be_read(self) -> None:
        async with self.client_with_plugin() as (client, notices):
            await client.call_tool("unload_plugin", {"name": "demo"})
            await notices.until(resources=2)
            with self.assertRaises(MCPError):
                await client.read_resource("plugin://demo/about")

    async def test_an_added_prompt_can_be_filled_in(self) -> None:
        async with self.client_with_plugin() as (client, _):
            result = await client.get_prompt("demo_prompt", {"topic": "beta"})
            self.assertTrue(result.messages)
            self.assertIn("beta", " ".join(message.content.text for message in result.messages))

    async def test_an_argument_is_completed_from_its_prefix(self) -> None:
        async with self.client_with_plugin() as (client, _):
            prompt = types.PromptReference(name="demo_prompt")
            for prefix, expected in [
                ("", ["alpha", "beta", "gamma"]),
                ("b", ["beta"]),
                ("zeta", []),
            ]:
                result = await client.complete(prompt, {"name": "topic", "value": prefix})
                self.assertEqual(result.completion.values, expected, prefix)

    async def refusal_of(self, call) -> str:
        """The text of a refusal, whether it came as an error or as a failed result."""
        try:
            result = await call
        except MCPError as error:
            return error.error.message
        self.assertTrue(result.is_error, "the call was not refused")
        return text_of(result)


class OverStdio:
    """Each connection starts its server."""

    def server(self) -> StdioServerParameters:
        return StdioServerParameters(command=plugin_host(), args=["--stdio"])


class OverHttp:
    """Each test has a server, which must also end well."""

    def setUp(self) -> None:
        self.http = HttpServer()

    def tearDown(self) -> None:
        self.assertEqual(self.http.stop(), 0, "the exit code after Ctrl-C")

    def server(self) -> str:
        return self.http.url


class LegacyOverStdio(Rules, OverStdio, unittest.IsolatedAsyncioTestCase):
    mode = "legacy"


class AutoOverStdio(Rules, OverStdio, unittest.IsolatedAsyncioTestCase):
    mode = "auto"


class ModernOverStdio(Rules, OverStdio, unittest.IsolatedAsyncioTestCase):
    mode = MODERN


class LegacyOverHttp(Rules, OverHttp, unittest.IsolatedAsyncioTestCase):
    mode = "legacy"


class AutoOverHttp(Rules, OverHttp, unittest.IsolatedAsyncioTestCase):
    mode = "auto"


class ModernOverHttp(Rules, OverHttp, unittest.IsolatedAsyncioTestCase):
    mode = MODERN


class ErasTogether(OverHttp, unittest.IsolatedAsyncioTestCase):
    """Clients of both eras on one server, at once."""

    async def test_a_change_made_in_one_era_is_heard_once_in_both(self) -> None:
        async with (
            connected(self.http.url, "legacy") as (older, older_notices),
            connected(self.http.url, MODERN) as (newer, newer_notices),
        ):
            everyone = [(older, older_notices), (newer, newer_notices)]
            for times, (maker, tool) in enumerate(
                [(older, "load_plugin"), (newer, "unload_plugin")], start=1
            ):
                await maker.call_tool(tool, {"name": "demo"})
                expected = {"tools": times, "resources": times, "prompts": times}
                for client, notices in everyone:
                    await notices.until(**expected)
                    self.assertEqual(notices.heard, expected)
                    loaded = "demo_echo" in (await names(client))["tools"]
                    self.assertEqual(loaded, tool == "load_plugin")


if __name__ == "__main__":
    unittest.main()
