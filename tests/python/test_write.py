"""Validated writes, as the official Python client sees them.

Every rule holds for each way a client may connect: over stdio and over HTTP, in the sessions of the
older revisions and in the newest one.

Run it with a Python that has `mcp` 2.x:  python tests/python/test_write.py [-v] [NAME ...]
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import unittest
from contextlib import asynccontextmanager

import mcp_types as types
import serving
from mcp import Client, MCPError
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from serving import INVALID_PARAMS, MODERN, PATIENCE, READING, text_of, unwrapped

POLICY = -32002
BUDGET = -32003
INTERNAL = -32603
WRITING = {"crm_open", "crm_hire", "crm_change", "crm_forget"}

MAPPING = r"""
[dataset]
name = "crm"
kind = "sqlite"

[[connections]]
id = "crm"
source = "crm"

[streams.orgs]
type = "Org"
key = ["id"]
title = "name"
unique = [["name", "country"]]

[streams.orgs.fields.id]
datatype = "integer"
generated = true

[streams.orgs.fields.name]
datatype = "string"
required = true

[streams.orgs.fields.country]
datatype = "string"
pattern = "^[A-Z]{2}$"

[streams.people]
type = "Person"
key = ["id"]
title = "name"
updated = "changed"
search = ["name"]

[streams.people.fields.id]
datatype = "integer"
generated = true

[streams.people.fields.name]
datatype = "string"
required = true
min_length = 2
max_length = 40

[streams.people.fields.status]
datatype = "string"
required = true
one_of = ["proposed", "accepted", "rejected"]

[streams.people.fields.badge]
datatype = "string"
pattern = "^B-[0-9]{4}$"

[streams.people.fields.age]
datatype = "integer"
min_value = 16
max_value = 99

[streams.people.fields.load]
datatype = "number"
min_value = 0
max_value = 1.5

[streams.people.fields.pay]
datatype = "decimal"
min_value = 0

[streams.people.fields.org_id]
datatype = "integer"

[streams.people.fields.region]
datatype = "string"
required = true

[streams.people.fields.secret]
datatype = "string"

[streams.people.fields.changed]
datatype = "datetime"

[streams.people.relations.org]
to = "orgs"
on = { org_id = "id" }

[capabilities.open]
stream = "orgs"
action = "create"
fields = ["name", "country"]
source = "crm_rw"

[capabilities.hire]
stream = "people"
action = "create"
fields = ["name", "status", "badge", "age", "load", "pay", "org_id", "region"]
source = "crm_rw"
idempotency = true
description = "Adds a person"

[capabilities.change]
stream = "people"
action = "update"
fields = ["status", "badge", "org_id", "region"]
source = "crm_rw"

[capabilities.forget]
stream = "people"
action = "delete"
source = "crm_rw"
"""

TABLES = """
CREATE TABLE orgs (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT, UNIQUE (name, country));
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, status TEXT NOT NULL, badge TEXT UNIQUE,
  age INTEGER, load REAL, pay TEXT, org_id INTEGER REFERENCES orgs (id), region TEXT NOT NULL,
  secret TEXT, changed TEXT, CHECK (name <> 'nobody'));
INSERT INTO orgs VALUES (1, 'Acme', 'NO'), (2, 'Umbrella', 'DE');
INSERT INTO people (id, name, status, badge, region, changed) VALUES
  (1, 'Ann', 'proposed', 'B-0001', 'eu', '2026-01-01T00:00:00Z'),
  (2, 'Bob', 'accepted', 'B-0002', 'us', '2026-01-01T00:00:00Z');
"""
ANN = {"name": "Eve", "status": "proposed", "region": "eu"}


class Project(serving.Project):
    def __init__(self) -> None:
        # Notices that arrive before these intervals elapse were not found by polling.
        super().__init__(
            '[serve]\nhttp = "127.0.0.1:0"\n\n[live]\ninterval_ms = 60000\n\n[search]\nrefresh_seconds = 3600\n'
        )
        self.file = self.path / "crm.db"
        connection = sqlite3.connect(self.file)
        connection.executescript(TABLES)
        connection.close()
        self.add_source("crm", self.file)
        self.add_source("crm_rw", self.file)
        self.sql(self.run("source", "prepare", "crm_rw"))
        self.draft("crm").write_text(MAPPING)
        self.run("ratify", "crm")
        self.run("connect", "crm")
        self.reader = self.token("--all-of", "crm")
        self.writer = self.granted(
            "capabilities = ['open', 'hire', 'change', 'forget']", "[streams.people]", "[streams.orgs]"
        )
        # Reads and writes the people of one region, except for their secret.
        self.narrow = self.granted(
            "capabilities = ['change']",
            "[streams.people]",
            'fields = ["name", "status", "badge", "org_id", "region", "changed"]',
            "rows = { region = 'eu' }",
            "[streams.orgs]",
        )

    def granted(self, *lines: str) -> str:
        file = self.path / "grant.toml"
        file.write_text("\n".join(["dataset = 'crm'", *lines]))
        grant = json.loads(self.run("grant", "create", "--file", str(file), "--json"))
        return self.token("--grant", grant["grant"]["id"] if "grant" in grant else grant["id"])

    def token(self, *words: str) -> str:
        return json.loads(self.run("token", "create", *words, "--json"))["secret"]

    def sql(self, statement: str, *values) -> list[tuple]:
        connection = sqlite3.connect(self.file, timeout=PATIENCE)
        with connection:
            rows = connection.execute(statement, values).fetchall()
        connection.close()
        return rows

    def dump(self) -> str:
        connection = sqlite3.connect(self.file, timeout=PATIENCE)
        dumped = "\n".join(connection.iterdump())
        connection.close()
        return dumped


class Rules:
    mode: str

    def setUp(self) -> None:
        self.project = Project()
        self.addCleanup(self.project.close)
        self.begin()

    @asynccontextmanager
    async def client(self, token: str, handler=None):
        async with unwrapped() as stack:
            server = await self.server(token, stack)
            yield await stack.enter_async_context(
                Client(server, mode=self.mode, message_handler=handler, read_timeout_seconds=PATIENCE)
            )

    async def done(self, client: Client, tool: str, **arguments) -> dict:
        result = await client.call_tool(tool, arguments)
        self.assertFalse(result.is_error, text_of(result))
        return result.structured_content

    async def fails(self, client: Client, tool: str, code: int, **arguments):
        """The JSON-RPC error of a call, which must leave the file unchanged byte for byte."""
        before = self.project.dump()
        with self.assertRaises(MCPError) as caught:
            await client.call_tool(tool, arguments)
        error = caught.exception.error
        self.assertEqual(error.code, code, error)
        self.assertEqual(self.project.dump(), before)
        return error

    async def fields(self, client: Client, tool: str, **arguments) -> dict[str, str]:
        error = await self.fails(client, tool, INVALID_PARAMS, **arguments)
        for entry in error.data["fields"]:
            self.assertEqual(set(entry), {"field", "code", "message", "value", "constraint"})
            self.assertIn(entry["message"], error.message)
        return {entry["field"]: entry["code"] for entry in error.data["fields"]}

    # The seed's criteria.

    async def test_criterion_4_validation_errors_surface_as_32602_with_data_fields_and_not_as_is_error(self):
        async with self.client(self.project.writer) as client:
            error = await self.fails(
                client, "crm_hire", INVALID_PARAMS, name="Eve", status="draft", badge="R1", region="eu"
            )
            status, badge = error.data["fields"]
            self.assertEqual(
                status,
                {
                    "field": "status",
                    "code": "one_of",
                    "message": "`status` must be one of `proposed`, `accepted`, `rejected`",
                    "value": "draft",
                    "constraint": ["proposed", "accepted", "rejected"],
                },
            )
            self.assertEqual((badge["code"], badge["constraint"]), ("pattern", "^B-[0-9]{4}$"))
            self.assertIn("validation failed on 2 field(s)", error.message)

    async def test_criterion_6_there_is_no_validation_bypass(self):
        async with self.client(self.project.writer) as client:
            # A change that is forbidden in one step is forbidden in several too.
            made = await self.done(client, "crm_hire", **ANN)
            key = int(made["data"]["id"].split(":")[1])
            self.assertEqual(await self.fields(client, "crm_change", id=key, status="draft"), {"status": "one_of"})
            self.assertEqual(await self.fields(client, "crm_change", id=key, status=None), {"status": "required"})
            for tool in READING:
                result = await client.call_tool(tool, {"stream": "people", "status": "draft"})
                self.assertTrue(result.is_error)

    async def test_criterion_7_without_a_token_a_client_reads_and_sees_no_capability(self):
        if isinstance(self, OverHttp):
            self.skipTest("without a token nobody is admitted over HTTP here")
        async with self.client("") as client:
            tools = await client.list_tools()
            self.assertEqual({tool.name for tool in tools.tools}, READING)
            await self.fails(client, "crm_hire", INVALID_PARAMS, **ANN)

    # The cases.

    async def test_t5_every_tool_name_maps_back_to_one_capability(self):
        async with self.client(self.project.writer) as client:
            seen = {}
            for tool in (await client.list_tools()).tools:
                meta = tool.meta["io.wayleave/tool"]
                if "capability" in meta:
                    seen[(meta["dataset"], meta["capability"])] = tool.name
                    self.assertEqual(tool.name, f"{meta['dataset']}_{meta['capability']}")
            self.assertEqual(set(seen.values()), WRITING)

    async def test_t6_each_listed_tool_has_a_machine_readable_kind(self):
        async with self.client(self.project.writer) as client:
            tools = (await client.list_tools()).tools
            self.assertEqual({tool.name for tool in tools}, READING | WRITING)
            for tool in tools:
                self.assertEqual(tool.meta["io.wayleave/tool"]["kind"], "runtime")
        async with self.client(self.project.reader) as client:
            self.assertEqual({tool.name for tool in (await client.list_tools()).tools}, READING)
            await self.fails(client, "crm_hire", INVALID_PARAMS, **ANN)

    async def test_t7_every_constraint_is_emitted_as_its_keyword(self):
        async with self.client(self.project.writer) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            hire = tools["crm_hire"]
            schema = hire.input_schema
            self.assertEqual(schema["required"], ["name", "status", "region"])
            self.assertEqual(schema["additionalProperties"], False)
            properties = schema["properties"]
            self.assertEqual(properties["name"], {"type": "string", "minLength": 2, "maxLength": 40})
            self.assertEqual(properties["status"]["enum"], ["proposed", "accepted", "rejected"])
            self.assertEqual(properties["badge"]["pattern"], "^B-[0-9]{4}$")
            self.assertEqual(properties["age"], {"type": "integer", "minimum": 16, "maximum": 99})
            self.assertEqual(properties["load"], {"type": "number", "minimum": 0, "maximum": 1.5})
            org = properties["org_id"]
            self.assertEqual((org["format"], org["io.wayleave/type"]), ("iri", "Org"))
            self.assertIn("No two records have the same `name` and `country`", tools["crm_open"].description)
            self.assertNotIn("$ref", json.dumps(schema))
            for name, destructive, idempotent in [
                ("crm_hire", False, False), ("crm_change", True, True), ("crm_forget", True, True)
            ]:
                hints = tools[name].annotations
                self.assertEqual(
                    (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint),
                    (False, destructive, idempotent, False),
                )

    async def test_t8_all_invalid_fields_are_returned_as_structured_entries(self):
        async with self.client(self.project.writer) as client:
            told = await self.fields(
                client, "crm_hire", name="E", status="draft", badge="x", age=7, load=2.5, pay="x",
                org_id="wayleave://kg/Org/crm%2Forgs:x", region=1, salary=3,
            )
            self.assertEqual(
                told,
                {
                    "name": "min_length", "status": "one_of", "badge": "pattern", "age": "min_value",
                    "load": "max_value", "pay": "datatype", "org_id": "reference",
                    "region": "datatype", "salary": "unknown",
                },
            )
            self.assertEqual(
                await self.fields(client, "crm_hire"),
                {"name": "required", "status": "required", "region": "required"},
            )

    async def test_t9_after_a_refusal_nothing_is_written(self):
        async with self.client(self.project.writer) as client:
            # `fails` compares the whole file.
            await self.fields(client, "crm_hire", **ANN | {"age": 7, "name": ""})
            await self.fields(client, "crm_hire", **ANN | {"name": "nobody"})
            await self.fields(client, "crm_change", id=1, badge="B-0002")
            await self.fields(client, "crm_change", id=77, status="accepted")

    async def test_t15_one_activity_record_with_agent_times_used_and_generated(self):
        async with self.client(self.project.writer) as client:
            made = await client.call_tool("crm_hire", dict(ANN))
            record = made.structured_content["data"]["id"]
            tried = await client.call_tool("crm_hire", dict(ANN) | {"dry_run": True})
            key = int(record.removeprefix("crm/people:"))
            gone = await client.call_tool("crm_forget", {"id": key})
        for result, used, generated in [(made, [], [record]), (tried, [], []), (gone, [record], [record])]:
            id = result.meta["io.wayleave/activity"].removeprefix("urn:uuid:")
            shown = json.loads(self.project.run("audit", "show", id, "--json"))
            self.assertEqual(shown["used"].get("ids", []), used, shown)
            self.assertEqual(shown["generated"].get("ids", []), generated, shown)
            self.assertTrue(shown["agent"]["token"] and shown["micros"] > 0, shown)

    # What a write does.

    async def test_a_record_is_created_changed_and_deleted(self):
        async with self.client(self.project.writer) as client:
            given = ANN | {"age": 30, "load": 0.5, "pay": "12.50",
                           "org_id": "wayleave://kg/Org/crm%2Forgs:2"}
            made = (await self.done(client, "crm_hire", **given))["data"]
            key = int(made["id"].removeprefix("crm/people:"))
            record = made["record"]
            self.assertEqual((record["org_id"], record["pay"]), (2, "12.5"))
            fetched = await client.call_tool("fetch", {"id": made["id"]})
            self.assertIn("Eve", text_of(fetched))
            changed = (await self.done(client, "crm_change", id=key, status="accepted", org_id=None))["data"]
            self.assertEqual(changed["changed"]["status"], {"from": "proposed", "to": "accepted"})
            self.assertEqual(changed["changed"]["org_id"], {"from": 2, "to": None})
            await self.done(client, "crm_forget", id=key)
            self.assertEqual(await self.fields(client, "crm_forget", id=key), {"id": "not_found"})

    async def test_references_must_exist_and_sets_stay_unique(self):
        async with self.client(self.project.writer) as client:
            nobody = "wayleave://kg/Org/crm%2Forgs:9"
            self.assertEqual(await self.fields(client, "crm_hire", **ANN | {"org_id": nobody}), {"org_id": "reference"})
            self.assertEqual(await self.fields(client, "crm_hire", **ANN | {"org_id": "2"}), {"org_id": "datatype"})
            self.assertEqual(
                await self.fields(client, "crm_open", name="Acme", country="NO"),
                {"name": "unique", "country": "unique"},
            )
            await self.done(client, "crm_open", name="Acme", country="SE")
            # A rule of the store itself, which the mapping does not declare.
            self.assertEqual(await self.fields(client, "crm_hire", **ANN | {"badge": "B-0001"}), {"badge": "unique"})

    async def test_a_dry_run_tells_the_change_or_the_errors_and_writes_nothing(self):
        async with self.client(self.project.writer) as client:
            before = self.project.dump()
            told = await self.done(client, "crm_change", id=1, status="accepted", dry_run=True)
            self.assertEqual(told["data"]["changed"]["status"], {"from": "proposed", "to": "accepted"})
            self.assertTrue(told["meta"]["dry_run"])
            await self.done(client, "crm_forget", id=1, dry_run=True)
            await self.done(client, "crm_hire", **ANN, dry_run=True)
            self.assertEqual(self.project.dump(), before)
            self.assertEqual(await self.fields(client, "crm_change", id=1, badge="B-0002", dry_run=True), {"badge": "unique"})

    async def test_a_change_of_somebody_else_is_not_lost(self):
        async with self.client(self.project.writer) as client:
            seen = "2026-01-01T00:00:00Z"
            first = await self.done(client, "crm_change", id=1, status="accepted", if_updated=seen)
            now = first["data"]["record"]["changed"]
            self.assertGreater(now, seen)
            self.assertEqual(
                await self.fields(client, "crm_change", id=1, status="rejected", if_updated=seen),
                {"if_updated": "conflict"},
            )
            await self.done(client, "crm_change", id=1, status="rejected", if_updated=now)

    async def test_a_repeated_call_with_a_key_is_one_write(self):
        async with self.client(self.project.writer) as client:
            first = await self.done(client, "crm_hire", **ANN, idempotency_key="k1")
            again = await self.done(client, "crm_hire", **ANN, idempotency_key="k1")
            self.assertEqual(again["data"]["id"], first["data"]["id"])
            self.assertEqual((first["meta"]["replayed"], again["meta"]["replayed"]), (False, True))
            self.assertEqual(self.project.sql("SELECT count(*) FROM people WHERE name = 'Eve'"), [(1,)])
            self.assertEqual(
                await self.fields(client, "crm_hire", **ANN | {"age": 20}, idempotency_key="k1"),
                {"idempotency_key": "conflict"},
            )
            # A capability without idempotency accepts no key.
            self.assertEqual(
                await self.fields(client, "crm_change", id=1, status="accepted", idempotency_key="k"),
                {"idempotency_key": "unknown"},
            )

    async def test_a_narrow_grant_writes_and_tells_nothing_beyond_itself(self):
        async with self.client(self.project.narrow) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            self.assertEqual(tools, READING | {"crm_change"})
            told = await self.done(client, "crm_change", id=1, status="accepted")
            self.assertNotIn("secret", told["data"]["record"])
            # Hidden and missing records get the same answer.
            hidden = await self.fails(client, "crm_change", INVALID_PARAMS, id=2, status="rejected")
            missing = await self.fails(client, "crm_change", INVALID_PARAMS, id=3, status="rejected")
            self.assertEqual(hidden.message.replace("2", "3"), missing.message)
            # The grant cannot move a record out of its rows.
            error = await self.fails(client, "crm_change", POLICY, id=1, region="us")
            self.assertEqual(error.data["reason"], "outside_grant")
            # A badge of a hidden person and an unused one are refused alike.
            for badge in ["B-0002", "B-7777"]:
                error = await self.fails(client, "crm_change", POLICY, id=1, badge=badge)
                self.assertEqual(error.data["reason"], "hidden_conflict")

    async def test_a_source_that_cannot_be_written_is_an_internal_error_with_a_trace_id(self):
        self.project.file.chmod(0o644)
        self.project.file.rename(self.project.path / "away.db")
        try:
            async with self.client(self.project.writer) as client:
                with self.assertRaises(MCPError) as caught:
                    await client.call_tool("crm_hire", ANN)
                error = caught.exception.error
                self.assertEqual(error.code, INTERNAL)
                self.assertRegex(error.data["trace_id"], r"^[0-9a-f]{32}$")
                self.assertNotIn(str(self.project.path), json.dumps(error.data) + error.message)
        finally:
            (self.project.path / "away.db").rename(self.project.file)

    async def test_subscribers_hear_of_our_own_writes_at_once(self):
        heard = asyncio.Event()
        uri = "wayleave://kg/Person"

        async def on_message(message: object) -> None:
            if isinstance(message, types.ResourceUpdatedNotification) and str(message.params.uri) == uri:
                heard.set()

        # The server polls only once a minute.
        if self.mode == "legacy":
            async with self.client(self.project.writer, on_message) as client:
                await client.session.subscribe_resource(uri)
                await self.done(client, "crm_hire", **ANN)
                async with asyncio.timeout(PATIENCE / 2):
                    await heard.wait()
        else:
            async with self.client(self.project.writer) as client:
                async with client.listen(resource_subscriptions=[uri]) as listening:
                    await self.done(client, "crm_hire", **ANN)
                    async with asyncio.timeout(PATIENCE / 2):
                        async for event in listening:
                            if getattr(event, "uri", None) and str(event.uri) == uri:
                                break

    async def test_indexes_hear_of_our_own_writes_at_once(self):
        async with self.client(self.project.writer) as client:

            async def found(words: str) -> list[str]:
                """The titles that a search finds, once the stream is indexed."""
                while True:
                    result = await client.call_tool("search", {"q": words, "streams": ["people"]})
                    if not result.is_error:
                        return [hit["title"] for hit in result.structured_content["data"]["results"]]

            async with asyncio.timeout(PATIENCE):
                self.assertEqual(await found("Ann"), ["Ann"])
                self.assertEqual(await found("Zephyrine"), [])
                await self.done(client, "crm_hire", **ANN | {"name": "Zephyrine"})
                while await found("Zephyrine") != ["Zephyrine"]:
                    pass

    async def test_schema_tells_of_the_writes_that_a_caller_has_and_of_no_other(self):
        for token, tools in [
            (self.project.writer, ["crm_hire", "crm_change", "crm_forget"]),
            (self.project.narrow, ["crm_change"]),
            (self.project.reader, []),
        ]:
            async with self.client(token) as client:
                told = await client.call_tool("schema", {"stream": "people", "detail": "full"})
                [source] = told.structured_content["data"]["sources"]
                self.assertEqual(source.get("writes", []), tools)
                told = await client.call_tool("schema", {"stream": "people"})
                lines = [line for line in text_of(told).splitlines() if line.startswith("writes:")]
                self.assertEqual(lines, [f"writes: {' '.join(tools)}"] if tools else [])
                everything = text_of(told) + text_of(await client.call_tool("schema", {}))
                for hidden in WRITING - set(tools) - {"crm_open"}:
                    self.assertNotIn(hidden, everything)

    async def test_a_dry_run_tells_what_the_write_then_does(self):
        async with self.client(self.project.writer) as client:
            for tool, given in [
                ("crm_hire", ANN | {"pay": "12.50", "org_id": "wayleave://kg/Org/crm%2Forgs:2"}),
                ("crm_change", {"id": 1, "status": "accepted", "badge": None}),
                ("crm_forget", {"id": 1}),
            ]:
                before = self.project.dump()
                tried = (await self.done(client, tool, **given, dry_run=True))["data"]
                self.assertEqual(self.project.dump(), before)
                made = (await self.done(client, tool, **given))["data"]
                for told in (tried, made):
                    # The time of the write differs.
                    told.get("record", {}).pop("changed", None)
                    told.get("changed", {}).pop("changed", None)
                self.assertEqual(tried, made)

    async def test_a_change_of_a_row_that_is_hidden_meanwhile_names_nothing(self):
        async with self.client(self.project.narrow) as client:
            self.project.sql("UPDATE people SET region = 'us', secret = 'hush' WHERE id = 1")
            error = await self.fails(client, "crm_change", INVALID_PARAMS, id=1, status="accepted")
            self.assertEqual([it["code"] for it in error.data["fields"]], ["not_found"])
            self.assertNotIn("hush", json.dumps(error.data) + error.message)

    async def test_injected_text_is_text(self):
        payloads = ["'; DROP TABLE people; --", '" OR 1=1 --', "Robert\\'); --", "%_*?[a]", "\u202e\u0007x", "{{7*7}}"]
        async with self.client(self.project.writer) as client:
            for payload in payloads:
                made = await self.done(client, "crm_hire", **ANN | {"name": payload})
                self.assertEqual(made["data"]["record"]["name"], payload)
            told = await self.fields(client, "crm_hire", **ANN | {"name": "a\0b", "x'; --": 1})
            self.assertEqual(told, {"name": "datatype", "x'; --": "unknown"})
            stored = {name for (name,) in self.project.sql("SELECT name FROM people")}
            self.assertLessEqual(set(payloads), stored)


class OverStdio(Rules):
    def begin(self) -> None: ...

    async def server(self, token: str, _):
        return self.project.over_stdio(token)


class OverHttp(Rules):
    def begin(self) -> None:
        self.http = self.project.over_http()
        self.addCleanup(self.http.stop)

    async def server(self, token: str, stack):
        return await serving.with_token(self.http.url, token, stack)


serving.define_every_way(globals(), OverStdio, OverHttp)


class Hurried(unittest.IsolatedAsyncioTestCase):
    """A token with a minimal budget."""

    def setUp(self) -> None:
        self.project = Project()
        self.addCleanup(self.project.close)
        settings = self.project.path / "wayleave.toml"
        settings.write_text(settings.read_text() + "\n[limits]\ncalls_per_minute = 1\nburst = 10\n")

    async def spent(self, server) -> None:
        async with unwrapped() as stack:
            client = await stack.enter_async_context(
                Client(server, mode=MODERN, read_timeout_seconds=PATIENCE)
            )
            with self.assertRaises(MCPError) as caught:
                for _ in range(40):
                    await client.call_tool("crm_hire", ANN | {"dry_run": True})
            error = caught.exception.error
            self.assertEqual(error.code, BUDGET)
            self.assertGreater(error.data["retry_after_ms"], 0)

    async def test_a_write_beyond_its_budget_is_the_error_32003_over_stdio(self) -> None:
        await self.spent(self.project.over_stdio(self.project.writer))

    async def test_a_write_beyond_its_budget_is_the_error_32003_over_http(self) -> None:
        http = self.project.over_http()
        self.addCleanup(http.stop)
        headers = {"Authorization": f"Bearer {self.project.writer}"}
        async with create_mcp_http_client(headers=headers) as client:
            await self.spent(streamable_http_client(http.url, http_client=client))


class Checked(unittest.TestCase):
    """The findings that a person sees before any write is possible."""

    def setUp(self) -> None:
        self.project = Project()
        self.addCleanup(self.project.close)

    def test_t5_a_tool_name_that_two_capabilities_claim_is_refused_at_check(self) -> None:
        self.project.add_source("other", self.project.file)
        other = MAPPING.replace('name = "crm"', 'name = "crm-hire"').replace('id = "crm"', 'id = "other"')
        other = re.sub(r"\[capabilities\.(\w+)\]", r"[capabilities.\1_x]", other)
        self.project.draft("crm-hire").write_text(other)
        self.project.run("check")
        taken = MAPPING.replace("[capabilities.open]", "[capabilities.hire_open_x]")
        self.project.draft("crm").write_text(taken)
        self.assertIn("crm_hire_open_x", self.project.run("check", "--json", fails=True))

    def test_a_capability_is_told_in_words_before_it_is_ratified(self) -> None:
        more = MAPPING + '\n[capabilities.pay]\nstream = "people"\naction = "update"\nfields = ["pay"]\nsource = "crm_rw"\n'
        self.project.draft("crm").write_text(more)
        told = self.project.run("check")
        self.assertIn("lets agents set `pay` of `people`", told)
        told = self.project.run("diff", "crm")
        self.assertIn("lets agents set `pay` of `people`", told)
        self.assertIn("a grant may let agents write this", told)

    def test_a_capability_is_in_the_ledger_with_its_mapping_and_its_grants(self) -> None:
        entries = json.loads(self.project.run("audit", "--json"))["entries"]
        kinds = [entry["kind"] for entry in entries]
        self.assertIn("source_added", kinds)
        granted = [entry["body"] for entry in entries if "grant" in entry["kind"]]
        named = [json.dumps(body) for body in granted if "hire" in json.dumps(body)]
        self.assertEqual(len(named), 1, granted)
        self.assertIn("ratified crm", self.project.run("audit"))
        self.assertNotIn("lets agents", self.project.run("diff", "crm"))

    def test_a_source_that_is_read_from_cannot_be_written_to(self) -> None:
        self.project.draft("crm").write_text(MAPPING.replace('source = "crm_rw"', 'source = "crm"'))
        self.assertIn("shared_source", self.project.run("check", "--json", fails=True))

    def test_a_grant_names_its_capabilities_and_has_none_by_default(self) -> None:
        file = self.project.path / "grant.toml"
        file.write_text("dataset = 'crm'\ncapabilities = ['hire']\n[streams.people]\nfields = ['name']\n[streams.orgs]\n")
        self.project.run("grant", "create", "--file", str(file), fails=True)
        shown = self.project.run("grant", "list")
        self.assertIn("capabilit", shown)


if __name__ == "__main__":
    unittest.main()
