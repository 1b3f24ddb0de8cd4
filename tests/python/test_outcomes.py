"""Every outcome of a call is recorded: panicked, denied, cancelled, disconnected.

The official client calls a program that embeds Wayleave and has operations that panic or never end, over
stdio and over HTTP, with the handshake of the older revisions (`legacy`) and with the newest one.

Run it with a Python that has `mcp` 2.x:  python tests/python/test_outcomes.py [-v] [NAME ...]
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import unittest
import uuid
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import serving
import test_audit
from mcp import Client, MCPError, StdioServerParameters
from serving import PATIENCE, Calls, HttpServer, unwrapped
from test_audit import ACTIVITY, activity, bare

GENERATED = 120
SEED = 20_261_118


def faulty() -> str:
    """The path of the example `faulty` of `wayleave`."""
    return serving.built("WAYLEAVE_FAULTY", "faulty", "--package", "wayleave", "--example", "faulty")


def stdio(path: str, token: str, env: dict[str, str]) -> StdioServerParameters:
    return StdioServerParameters(command=faulty(), args=[path], env={**env, "WAYLEAVE_TOKEN": token})


class Rules(Calls):
    mode: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.project = test_audit.Project()
        cls.addClassCleanup(cls.project.close)
        cls.begin()

    @asynccontextmanager
    async def client(self):
        async with unwrapped() as stack:
            server = await self.server(stack)
            yield await stack.enter_async_context(
                Client(server, mode=self.mode, read_timeout_seconds=PATIENCE)
            )

    def sign(self) -> Path:
        return self.project.path / f"sign-{uuid.uuid4().hex}"

    def shown(self, id: str) -> dict:
        return self.project.audit("show", bare(id))

    def calls(self) -> list[dict]:
        listed = self.project.list("--token", self.project.token_id)
        return [it for it in listed if it["method"] == "tools/call"]

    async def ended(self, count: int) -> list[dict]:
        """The calls of the token, once there are `count`."""
        for _ in range(PATIENCE * 10):
            if len(found := self.calls()) >= count:
                return found
            await asyncio.sleep(0.1)
        raise AssertionError(f"{len(found)} of {count} calls are recorded")

    async def test_a_panicking_call_is_answered_and_recorded_as_failed(self) -> None:
        async with self.client() as client:
            for later in (False, True):
                with self.assertRaises(MCPError) as caught:
                    await client.call_tool("fall", {"later": later})
                error = caught.exception.error
                self.assertEqual(error.code, -32603)
                self.assertNotIn("on purpose", str(error))
                shown = self.shown(error.data["_meta"][ACTIVITY])
                self.assertEqual(shown["outcome"], {"kind": "failed", "code": -32603})
                self.assertEqual((shown["target"], shown["agent"]["token"]), ("fall", self.project.token_id))
            # The server still serves.
            person = await self.good(client, "fetch", id="crm/people:1")
            self.assertEqual(self.shown(activity(person))["outcome"], {"kind": "completed"})

    async def test_a_denied_call_is_recorded_as_refused(self) -> None:
        async with self.client() as client:
            with self.assertRaises(MCPError) as caught:
                await client.call_tool("list_datasets", {})
            error = caught.exception.error
            self.assertEqual(error.code, -32004)
            shown = self.shown(error.data["_meta"][ACTIVITY])
            self.assertEqual(shown["outcome"], {"kind": "refused", "reason": "authorization"})
            self.assertEqual((shown["target"], shown["agent"]["token"]), ("list_datasets", self.project.token_id))

    async def begun(self, sign: Path) -> None:
        """Waits until the call with this sign runs."""
        async with asyncio.timeout(PATIENCE):
            while not sign.exists():
                await asyncio.sleep(0.01)

    async def cancelled(self, client: Client) -> None:
        sign = self.sign()
        call = asyncio.create_task(client.call_tool("linger", {"file": str(sign)}))
        await self.begun(sign)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    async def test_a_cancelled_call_is_recorded_as_cancelled(self) -> None:
        before = len(self.calls())
        async with self.client() as client:
            await self.cancelled(client)
            [latest, *_] = await self.ended(before + 1)
            self.assertEqual(latest["target"], "linger")
            self.assertEqual(latest["outcome"], {"kind": self.when_cancelled})
            await self.good(client, "fetch", id="crm/people:1")

    async def test_a_call_whose_client_is_killed_is_recorded_as_given_up(self) -> None:
        before, sign = len(self.calls()), self.sign()
        words = [sys.executable, __file__, "call", self.mode, str(sign), *self.way()]
        env = {**self.project.env, "TEST_TOKEN": self.project.token}
        client = subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL)
        try:
            await self.begun(sign)
        finally:
            client.kill()
            client.wait()
        [latest, *_] = await self.ended(before + 1)
        self.assertEqual(latest["target"], "linger")
        # It depends on who notices first: the server, which cancels the call, or the runtime, which drops it.
        self.assertIn(latest["outcome"]["kind"], ("abandoned", "cancelled"))
        self.assertEqual(len(self.calls()), before + 1)

    async def test_n_calls_of_all_kinds_are_n_activities(self) -> None:
        drawn = random.Random(SEED)
        before = {it["id"] for it in self.calls()}
        expected: Counter[str] = Counter()
        named: list[str] = []

        async def one(client: Client, kind: str) -> None:
            match kind:
                case "completed":
                    named.append(activity(await client.call_tool("fetch", {"id": "crm/people:3"})))
                case "tool_error":
                    named.append(activity(await client.call_tool("fetch", {"id": "crm/people:none"})))
                case "failed" | "refused" as kind:
                    tools = {"failed": ["fall", "no_such_tool"], "refused": ["list_datasets"]}
                    with self.assertRaises(MCPError) as caught:
                        await client.call_tool(drawn.choice(tools[kind]), {})
                    named.append(caught.exception.error.data["_meta"][ACTIVITY])
                case _:
                    await self.cancelled(client)

        kinds = ["completed", "tool_error", "failed", "refused", self.when_cancelled]
        async with self.client() as client, self.client() as other:
            for _ in range(GENERATED // 12):
                batch = drawn.choices(kinds, weights=[4, 2, 2, 2, 1], k=12)
                expected.update(batch)
                await asyncio.gather(*(one(drawn.choice([client, other]), kind) for kind in batch))
        await self.ended(len(before) + expected.total())
        found = [it for it in self.calls() if it["id"] not in before]
        self.assertEqual(Counter(it["outcome"]["kind"] for it in found), expected)
        ids = [it["id"] for it in found]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(len(named), len(set(named)))
        self.assertLessEqual({bare(it) for it in named}, set(ids))
        self.assertTrue(self.project.audit("verify")["ok"])


class Stdio(Rules):
    when_cancelled = "cancelled"

    @classmethod
    def begin(cls) -> None:
        pass

    async def server(self, stack: AsyncExitStack):
        return stdio(str(self.project.path), self.project.token, self.project.env)

    def way(self) -> list[str]:
        return ["stdio", str(self.project.path)]


class Http(Rules):
    @property
    def when_cancelled(self) -> str:
        # In the newest revision a client cancels over HTTP by closing the stream, as on disconnecting.
        return "cancelled" if self.mode == "legacy" else "abandoned"

    @classmethod
    def begin(cls) -> None:
        cls.http = HttpServer(faulty(), str(cls.project.path), "http", env=cls.project.env)
        cls.addClassCleanup(cls.http.stop)

    async def server(self, stack: AsyncExitStack):
        return await serving.with_token(self.http.url, self.project.token, stack)

    def way(self) -> list[str]:
        return ["http", self.http.url]


serving.define_every_way(globals(), Stdio, Http)


async def call(mode: str, sign: str, way: str, where: str) -> None:
    """Makes a call that never ends; runs until this process is killed."""
    import os

    token = os.environ["TEST_TOKEN"]
    async with AsyncExitStack() as stack:
        server = (
            stdio(where, token, dict(os.environ))
            if way == "stdio"
            else await serving.with_token(where, token, stack)
        )
        client = await stack.enter_async_context(Client(server, mode=mode, read_timeout_seconds=600))
        await client.call_tool("linger", {"file": sign})


if __name__ == "__main__":
    if sys.argv[1:2] == ["call"]:
        asyncio.run(call(*sys.argv[2:]))
    else:
        unittest.main()
