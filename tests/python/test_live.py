"""Subscriptions to records that change, as the official Python client sees them.

Another program changes the data, without notifying the server. Every rule holds for each way a client
may connect: over stdio and over HTTP, in the sessions of the older revisions and in the newest one.

Run it with a Python that has `mcp` 2.x:  python tests/python/test_live.py [-v] [NAME ...]
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
import unittest
from collections import Counter
from contextlib import asynccontextmanager

import mcp_types as types
import serving
from mcp import Client, MCPError
from mcp.client.subscriptions import ResourceUpdated
from serving import INVALID_PARAMS, PATIENCE, unwrapped

# Interval of the change feed, in seconds.
INTERVAL = 0.2
# Time in seconds within which a change is told while its source is there: many intervals, for a loaded machine.
SOON = 5
SHIP = "wayleave://kg/Ship"

MAPPING = """
[dataset]
name = "fleet"
kind = "sqlite"
iri = "https://example.org/fleet#"

[[connections]]
id = "fleet"
source = "fleet"

[streams.ships]
type = "Ship"
key = ["id"]
title = "name"
updated = "changed"

[streams.ships.fields.id]
datatype = "integer"

[streams.ships.fields.name]
datatype = "string"

[streams.ships.fields.port]
datatype = "string"

[streams.ships.fields.secret]
datatype = "string"

[streams.ships.fields.changed]
datatype = "datetime"
"""


def ship(number: int) -> str:
    return f"{SHIP}/fleet%2Fships:{number}"


class Project(serving.Project):
    def __init__(self) -> None:
        super().__init__(
            '[serve]\nhttp = "127.0.0.1:0"\n\n[live]\n'
            f"interval_ms = {int(INTERVAL * 1000)}\nsubscriptions = 3\n"
        )
        self.file = self.path / "fleet.db"
        self.sql(
            "CREATE TABLE ships (id INTEGER PRIMARY KEY, name TEXT, port TEXT, secret TEXT, changed TEXT)"
        )
        for number in range(1, 11):
            self.put(number, f"ship {number}", "Bergen" if number % 2 else "Oslo")
        self.add_source("fleet", self.file)
        self.draft("fleet").write_text(MAPPING)
        self.run("ratify", "fleet")
        self.run("connect", "fleet")
        self.reader = self.token("--all-of", "fleet")
        narrow = self.path / "narrow.toml"
        narrow.write_text(
            'dataset = "fleet"\n[streams.ships]\nfields = ["id", "name", "port"]\n'
            'rows = { port = "Bergen" }\n'
        )
        grant = json.loads(self.run("grant", "create", "--file", str(narrow), "--json"))
        self.grant = grant["grant"]["id"] if "grant" in grant else grant["id"]
        self.narrow = self.token("--grant", self.grant)

    def token(self, *words: str) -> str:
        return json.loads(self.run("token", "create", *words, "--json"))["secret"]

    def sql(self, statement: str, *values) -> None:
        connection = sqlite3.connect(self.file, timeout=PATIENCE)
        with connection:
            connection.execute(statement, values)
        connection.close()

    def put(self, number: int, name: str, port: str = "Bergen") -> None:
        self.sql(
            "INSERT INTO ships VALUES (?, ?, ?, 'x', strftime('%Y-%m-%dT%H:%M:%SZ')) "
            "ON CONFLICT (id) DO UPDATE SET name = excluded.name, port = excluded.port, "
            "changed = excluded.changed",
            number, name, port,
        )

    def delete(self, number: int) -> None:
        self.sql("DELETE FROM ships WHERE id = ?", number)


class Updates:
    """Number of updates that a client received, by URI."""

    def __init__(self) -> None:
        self.heard: Counter[str] = Counter()
        # The subscriptions that the server acknowledged, in the newest revision.
        self.honored: list[str] = []
        self.ended = asyncio.Event()
        self._news = asyncio.Condition()

    async def on_message(self, message: object) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            await self._add(str(message.params.uri))

    async def listen_on(self, subscription) -> None:
        async for event in subscription:
            if isinstance(event, ResourceUpdated):
                await self._add(str(event.uri))
        self.ended.set()

    async def _add(self, uri: str) -> None:
        async with self._news:
            self.heard[uri] += 1
            self._news.notify_all()

    async def exactly(self, wanted: dict[str, int], within: float = SOON) -> None:
        """Waits until these updates were received; fails if others follow."""
        wanted = Counter(wanted)
        async with asyncio.timeout(within), self._news:
            await self._news.wait_for(lambda: self.heard >= wanted)
        await asyncio.sleep(3 * INTERVAL)
        if self.heard != wanted:
            raise AssertionError(f"heard {self.heard}, not {wanted}")


class Rules:
    mode: str

    def setUp(self) -> None:
        self.project = Project()
        self.addCleanup(self.project.close)
        self.begin()

    @asynccontextmanager
    async def subscribed(self, token: str, *uris: str):
        """A client subscribed to these URIs, and its updates."""
        async with unwrapped() as stack:
            updates = Updates()
            server = await self.server(token, stack)
            handler = updates.on_message if self.mode == "legacy" else None
            client = await stack.enter_async_context(
                Client(server, mode=self.mode, message_handler=handler, read_timeout_seconds=PATIENCE)
            )
            if self.mode == "legacy":
                for uri in uris:
                    await client.session.subscribe_resource(uri)
            else:
                listening = await stack.enter_async_context(
                    client.listen(resource_subscriptions=list(uris))
                )
                updates.honored = list(listening.honored.resource_subscriptions or [])
                task = asyncio.create_task(updates.listen_on(listening))
                stack.callback(task.cancel)
            yield client, updates

    async def test_t14_create_update_and_delete_fire_once_each(self) -> None:
        put, delete = self.project.put, self.project.delete
        async with self.subscribed(self.project.reader, SHIP, ship(11), ship(2)) as (client, updates):
            put(11, "new")
            await updates.exactly({SHIP: 1, ship(11): 1})
            put(11, "renamed")
            await updates.exactly({SHIP: 2, ship(11): 2})
            read = await client.read_resource(ship(11))
            self.assertIn("renamed", read.contents[0].text)
            delete(11)
            await updates.exactly({SHIP: 3, ship(11): 3})
            # Writing the same values again is not a change.
            self.project.sql("UPDATE ships SET name = name")
            put(3, "other")
            await updates.exactly({SHIP: 4, ship(11): 3})

    async def test_t14_a_filter_cannot_be_subscribed_to(self) -> None:
        filters = [f"{SHIP}?where=port=Bergen", f"{SHIP}?limit=5"]
        if self.mode == "legacy":
            async with self.subscribed(self.project.reader) as (client, _):
                for uri in filters:
                    with self.assertRaises(MCPError) as caught:
                        await client.session.subscribe_resource(uri)
                    error = caught.exception.error
                    self.assertEqual(error.code, INVALID_PARAMS)
                    self.assertEqual(error.data["reason"], "query_not_subscribable")
                    self.assertEqual(error.data["subscribe_to"], SHIP)
        else:
            async with self.subscribed(self.project.reader, SHIP, *filters) as (_, updates):
                self.assertEqual(updates.honored, [SHIP])
                self.project.put(1, "changed")
                await updates.exactly({SHIP: 1})

    async def test_only_what_is_granted_is_told(self) -> None:
        put = self.project.put
        async with self.subscribed(self.project.narrow, SHIP, ship(1), ship(2)) as (_, updates):
            # An ungranted field, then ungranted rows: updated, created and deleted.
            self.project.sql("UPDATE ships SET secret = 'y', changed = '2020-01-01T00:00:00Z'")
            put(2, "hidden", "Oslo")
            put(20, "hidden", "Oslo")
            self.project.delete(20)
            await asyncio.sleep(4 * INTERVAL)
            await updates.exactly({})
            # A row that enters the filter counts as created, and one that leaves as deleted.
            put(2, "hidden", "Bergen")
            await updates.exactly({SHIP: 1, ship(2): 1})
            put(1, "ship 1", "Oslo")
            await updates.exactly({SHIP: 2, ship(2): 1, ship(1): 1})

    async def test_retiring_the_dataset_is_the_last_update(self) -> None:
        async with self.subscribed(self.project.reader, SHIP, ship(1)) as (_, updates):
            await asyncio.to_thread(self.project.run, "disconnect", "fleet")
            await updates.exactly({SHIP: 1, ship(1): 1})
            await asyncio.to_thread(self.project.run, "connect", "fleet")
            self.project.put(1, "unheard")
            await asyncio.sleep(4 * INTERVAL)
            await updates.exactly({SHIP: 1, ship(1): 1})

    async def test_losing_the_grant_ends_what_is_told(self) -> None:
        async with self.subscribed(self.project.narrow, SHIP, ship(1)) as (client, updates):
            await asyncio.to_thread(self.project.run, "grant", "revoke", self.project.grant)
            if self.mode != "legacy":
                # The stream ends with the grant it was opened under.
                await asyncio.wait_for(updates.ended.wait(), PATIENCE)
                await updates.exactly({})
                return
            # The next request of a session has the token's current rights.
            listed = (await client.list_resource_templates()).resource_templates
            self.assertEqual([it for it in listed if "kg/" in it.uri_template], [])
            await updates.exactly({SHIP: 1, ship(1): 1})
            self.project.put(1, "unheard")
            await asyncio.sleep(4 * INTERVAL)
            await updates.exactly({SHIP: 1, ship(1): 1})

    async def test_a_column_that_is_gone_is_the_last_update(self) -> None:
        async with self.subscribed(self.project.reader, SHIP, ship(1)) as (_, updates):
            self.project.sql("ALTER TABLE ships RENAME COLUMN port TO harbour")
            await updates.exactly({SHIP: 1, ship(1): 1})
            self.project.sql("UPDATE ships SET name = 'unheard'")
            await asyncio.sleep(4 * INTERVAL)
            await updates.exactly({SHIP: 1, ship(1): 1})

    async def test_without_a_feed_nothing_is_offered_or_accepted(self) -> None:
        settings = self.project.path / "wayleave.toml"
        settings.write_text(settings.read_text() + "enabled = false\n")
        self.restart()
        async with unwrapped() as stack:
            server = await self.server(self.project.reader, stack)
            client = await stack.enter_async_context(
                Client(server, mode=self.mode, read_timeout_seconds=PATIENCE)
            )
            if self.mode == "legacy":
                self.assertFalse(client.server_capabilities.resources.subscribe)
            listed = (await client.list_resources()).resources
            told = next(each for each in listed if str(each.uri) == SHIP).description
            self.assertNotIn("ubscri", told or "")
            if self.mode == "legacy":
                with self.assertRaises(MCPError):
                    await client.session.subscribe_resource(SHIP)
            else:
                async with client.listen(resource_subscriptions=[SHIP]) as listening:
                    self.assertFalse(listening.honored.resource_subscriptions)

    async def test_a_source_that_goes_away_is_told_of_once_it_is_back(self) -> None:
        file = self.project.file
        async with self.subscribed(self.project.reader, SHIP, ship(1)) as (_, updates):
            away = file.with_suffix(".away")
            file.rename(away)
            await asyncio.sleep(3 * INTERVAL)
            connection = sqlite3.connect(away)
            with connection:
                connection.execute("UPDATE ships SET name = 'meanwhile' WHERE id IN (1, 3, 5)")
            connection.close()
            away.rename(file)
            # A source that does not answer is read less and less often.
            await updates.exactly({SHIP: 1, ship(1): 1}, within=PATIENCE)

    async def test_a_stream_that_joins_its_type_while_away_is_watched_once_it_is_there(self) -> None:
        project = self.project
        file = project.path / "yard.db"
        shutil.copy(project.file, file)
        project.add_source("yard", file)
        project.draft("yard").write_text(MAPPING.replace("fleet", "yard"))
        await asyncio.to_thread(project.run, "ratify", "yard")
        away = file.with_suffix(".away")
        file.rename(away)
        self.restart()
        both = await asyncio.to_thread(project.token, "--all-of", "fleet", "--all-of", "yard")
        async with self.subscribed(both, SHIP) as (client, updates):
            await asyncio.to_thread(project.run, "connect", "yard", "--offline")
            async with asyncio.timeout(PATIENCE):
                while "yard" not in (await client.call_tool("schema", {})).content[0].text:
                    await asyncio.sleep(INTERVAL)
            # Subscriptions follow the served datasets at every interval.
            await asyncio.sleep(4 * INTERVAL)
            project.put(1, "changed")
            await updates.exactly({SHIP: 1})
            away.rename(file)
            await updates.exactly({SHIP: 2}, within=PATIENCE)
            with sqlite3.connect(file) as connection:
                connection.execute("UPDATE ships SET name = 'new' WHERE id = 1")
            connection.close()
            await updates.exactly({SHIP: 3})

    async def test_a_caller_has_so_many_subscriptions_and_no_more(self) -> None:
        if self.mode == "legacy":
            async with self.subscribed(self.project.reader, SHIP, ship(1), ship(2)) as (client, _):
                with self.assertRaises(MCPError) as caught:
                    await client.session.subscribe_resource(ship(3))
                self.assertEqual(caught.exception.error.data["reason"], "too_many_subscriptions")
                await client.session.unsubscribe_resource(ship(2))
                await client.session.subscribe_resource(ship(3))
        else:
            three, fourth = [SHIP, ship(1), ship(2)], [ship(3)]
            async with self.subscribed(self.project.reader) as (client, _):
                async with client.listen(resource_subscriptions=three) as full:
                    self.assertEqual(sorted(full.honored.resource_subscriptions or []), three)
                    async with client.listen(resource_subscriptions=fourth) as more:
                        self.assertFalse(more.honored.resource_subscriptions)
                # The server may take a moment to notice that the stream is closed.
                async with asyncio.timeout(PATIENCE):
                    accepted = False
                    while not accepted:
                        async with client.listen(resource_subscriptions=fourth) as again:
                            accepted = again.honored.resource_subscriptions == fourth
                        await asyncio.sleep(INTERVAL)

    async def test_the_capability_and_the_cost_are_stated(self) -> None:
        async with self.subscribed(self.project.reader) as (client, _):
            listed = (await client.list_resources()).resources
            told = next(each for each in listed if str(each.uri) == SHIP).description
            self.assertIn("every few seconds, once for all subscribers", told)
            if self.mode == "legacy":
                self.assertTrue(client.server_capabilities.resources.subscribe)


class CommandLine(unittest.TestCase):
    def test_watch_prints_each_change_as_a_subscriber_sees_it(self) -> None:
        project = Project()
        self.addCleanup(project.close)
        watch = [serving.program(), "watch", "ships", "--limit", "3", "--project", str(project.path)]
        running = subprocess.Popen(
            watch, env=project.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(running.kill)
        self.assertIn("watching ships", running.stderr.readline())
        for act, line in [
            (lambda: project.put(11, "new"), "created fleet/ships:11"),
            (lambda: project.put(11, "renamed"), "updated fleet/ships:11"),
            (lambda: project.delete(11), "deleted fleet/ships:11"),
        ]:
            act()
            self.assertEqual(running.stdout.readline().strip(), line)
        self.assertEqual(running.wait(timeout=PATIENCE), 0)
        running.stdout.close()
        running.stderr.close()
        project.run("watch", "boats", fails=True)


class OverStdio(Rules):
    def begin(self) -> None: ...

    def restart(self) -> None:
        """Lets the server see a changed environment or setting. Here, it starts with each client."""

    async def server(self, token: str, _):
        return self.project.over_stdio(token)


class OverHttp(Rules):
    def begin(self) -> None:
        self.http = self.project.over_http()
        self.addCleanup(self.http.stop)

    def restart(self) -> None:
        self.http.stop()
        self.begin()

    async def server(self, token: str, stack):
        return await serving.with_token(self.http.url, token, stack)


serving.define_every_way(globals(), OverStdio, OverHttp)


if __name__ == "__main__":
    unittest.main()
