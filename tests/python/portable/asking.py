"""How the portable rules ask a server, and what they measure of its answers."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import mcp_types as types
import test_reading as reading
from mcp import Client
from test_reading import PATIENCE, text_of


def size(result: types.CallToolResult) -> int:
    """Of the whole result, as it goes over the wire."""
    return len(result.model_dump_json(by_alias=True, exclude_none=True).encode())


def keys_within(value) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(keys_within, value.values()))
    if isinstance(value, list):
        return set().union(*map(keys_within, value))
    return set()


class Asking:
    """How the rules ask, whatever the transport and the revision."""

    mode: str
    # What client and server are to agree on.
    revision: str

    good = reading.Rules.good
    refused = reading.Rules.refused

    @asynccontextmanager
    async def client(self, name: str = "pair"):
        failure = None
        async with Client(self.server(name), mode=self.mode, read_timeout_seconds=PATIENCE) as client:
            self.assertEqual(client.session.protocol_version, self.revision)
            try:
                yield client
            except Exception as error:
                failure = error
        # Raised out here, past the client's task groups, which would wrap it beyond recognition.
        if failure:
            raise failure

    async def indexed(self, client: Client, *needed: str) -> None:
        """Waits until these connections can be searched; each has notes with this word."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            result = await client.call_tool("search", {"q": "pebble", "limit": 100})
            if not result.is_error and set(needed) <= set(
                result.structured_content["meta"]["source_mix"]
            ):
                return
            await asyncio.sleep(0.05)
        self.fail(f"no index of {needed} in time: {text_of(result)}")

    async def tools(self, client: Client) -> dict[str, dict]:
        listed = (await client.list_tools()).tools
        return {
            tool.name: tool.model_dump(by_alias=True, exclude_none=True) for tool in listed
        }
