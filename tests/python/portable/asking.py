"""Calls of a server by the portable rules, and measurements of its answers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import mcp_types as types
from mcp import Client
from serving import PATIENCE, Calls, text_of, unwrapped


def size(result: types.CallToolResult) -> int:
    """Size of the whole result, as sent on the wire."""
    return len(result.model_dump_json(by_alias=True, exclude_none=True).encode())


def keys_within(value) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(keys_within, value.values()))
    if isinstance(value, list):
        return set().union(*map(keys_within, value))
    return set()


class Asking(Calls):
    """Calls by the rules, for any transport and revision."""

    mode: str
    # The revision that client and server must agree on.
    revision: str

    @asynccontextmanager
    async def client(self, name: str = "pair"):
        async with unwrapped() as stack:
            client = Client(self.server(name), mode=self.mode, read_timeout_seconds=PATIENCE)
            await stack.enter_async_context(client)
            self.assertEqual(client.session.protocol_version, self.revision)
            yield client

    async def indexed(self, client: Client, *needed: str) -> None:
        """Waits until these connections are indexed: until a search finds their notes."""
        found = None
        try:
            async with asyncio.timeout(PATIENCE):
                while found is None or found.is_error or not set(needed) <= set(
                    found.structured_content["meta"]["source_mix"]
                ):
                    found = await client.call_tool("search", {"q": "pebble", "limit": 100})
        except TimeoutError:
            self.fail(f"no index of {needed} in time: {found and text_of(found)}")

    async def tools(self, client: Client) -> dict[str, dict]:
        listed = (await client.list_tools()).tools
        return {
            tool.name: tool.model_dump(by_alias=True, exclude_none=True) for tool in listed
        }
