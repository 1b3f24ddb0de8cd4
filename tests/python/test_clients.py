"""The official Python client against a server built on `wayleave-mcp`.

Every rule holds for each way a client may connect: over stdio and over HTTP, with the handshake
of the older revisions (`legacy`), with the newest one pinned, and with the client left to find
out (`auto`). The server is the crate's example `plugin_host`; loading its plugin `demo` adds a
tool, a resource, a resource template and a prompt in one commit.

Run it with a Python that has `mcp` 2.x:  python tests/python/test_clients.py [-v] [NAME ...]
"""

from __future__ import annotations

import signal
import unittest
from contextlib import asynccontextmanager

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from serving import (
    INVALID_PARAMS,
    LAST_WITH_HANDSHAKE,
    MODERN,
    HttpServer,
    Notices,
    listening,
    plugin_host,
    text_of,
    unwrapped,
)


@asynccontextmanager
async def connected(server: str | StdioServerParameters, mode: str):
    async with unwrapped() as stack:
        yield await listening(server, mode, stack)


async def names(client: Client) -> dict[str, set[str]]:
    """The names that the server currently lists, by kind."""
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
    """Rules for every connection, in any mode and over any transport."""

    mode: str

    def client(self):
        """A client of a new server without the plugin."""
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
        """The text of a refusal, as an error or as a failed result."""
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
    """Each test has a server, which must end with success."""

    def setUp(self) -> None:
        self.http = HttpServer(plugin_host(), "--http", "127.0.0.1:0")

    def tearDown(self) -> None:
        code = self.http.stop(signal.SIGTERM)
        self.assertEqual(code, 0, "the exit code after a service manager's signal")

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
    """Clients of both eras on one server at the same time."""

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
