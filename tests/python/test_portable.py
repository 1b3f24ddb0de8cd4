"""What any server of records owes any client, asked of the program by the official Python client.

The rules know nothing of how the program is made: they read what a client can read, over stdio and
over HTTP. Four projects are made with the command line: `pair` (connections that share a stream, and
a stream of one connection), `wide` (25 connections, of which 24 have no store, so that an answer that
touched one of them would be a failure), `many` (80 streams) and `vast` (1,000 streams). The number
in a name is the rule's; `x1` to `x5` are the five that came later.

Left out: the parts of rule 30 about tokens and the exit codes for lack of them, which are no part of
reading without a token; and of rule 29 the warning of a candidate window, because search has none.

Run it with a Python that has `mcp` 2.x:  python tests/python/test_portable.py [-v] [NAME ...]
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import re
import sqlite3
import subprocess
import tempfile
import time
import unittest
from contextlib import asynccontextmanager
from pathlib import Path

import mcp_types as types
import test_reading as reading
from mcp import Client, StdioServerParameters
from test_reading import PATIENCE, TOOLS, handle, program, rows_of, text_of

SECRET = "kept-out-of-sight"
FAT = "wide words " * 400

MAIL = """
[dataset]
name = "mail"
title = "Mail"
kind = "sqlite"
{connections}
[streams.notes]
type = "Note"
key = ["id"]
title = "heading"
event_time = "sent_at"
updated = "updated_at"
deleted = "gone"
search = ["heading", "body"]
[streams.notes.fields]
id = {{ datatype = "integer", required = true }}
heading = {{ datatype = "string" }}
body = {{ datatype = "string" }}
secret = {{ datatype = "string" }}
sent_at = {{ datatype = "datetime" }}
updated_at = {{ datatype = "datetime" }}
gone = {{ datatype = "boolean" }}
[streams.notes.relations.pages]
to = "letters"
on = {{ id = "note_id" }}
[streams.letters]
type = "Letter"
key = ["id"]
[streams.letters.fields]
id = {{ datatype = "integer", required = true }}
note_id = {{ datatype = "integer" }}
fat = {{ datatype = "string" }}
"""

DESK = """
[dataset]
name = "desk"
title = "Desk"
kind = "sqlite"
[[connections]]
id = "desk"
label = "The desk"
source = "desk"
[streams.notes]
type = "Memo"
key = ["id"]
[streams.notes.fields]
id = { datatype = "integer", required = true }
memo = { datatype = "string" }
[streams.alone]
type = "Hermit"
key = ["id"]
[streams.alone.fields]
id = { datatype = "integer", required = true }
"""

MAIL_TABLES = """
CREATE TABLE notes (id INTEGER PRIMARY KEY, heading TEXT, body TEXT, secret TEXT, sent_at TEXT,
    updated_at TEXT, gone BOOLEAN DEFAULT 0);
CREATE TABLE letters (id INTEGER PRIMARY KEY, note_id INTEGER, fat TEXT);
"""


def connections(*ids: str) -> str:
    return "".join(
        f'[[connections]]\nid = "{id}"\nlabel = "Box {id}"\nsource = "{id}"\n' for id in ids
    )


def streams(count: int) -> str:
    """A mapping of this many streams; all of them read one table."""
    head = '[dataset]\nname = "many"\nkind = "sqlite"\n' + connections("main")
    return head + "".join(
        f'[streams.kind_{n:04}]\ntype = "Kind{n:04}"\ntable = "things"\nkey = ["id"]\n'
        f"[streams.kind_{n:04}.fields]\n"
        'id = { datatype = "integer", required = true }\nfield_detail = { datatype = "string" }\n'
        for n in range(count)
    )


def mailbox(file: Path, name: str, weak: int) -> None:
    """Two notes about quartz, some in which it is a word among many, one without a heading."""
    with sqlite3.connect(file) as db:
        db.executescript(MAIL_TABLES)
        note = "INSERT INTO notes VALUES (?, ?, ?, ?, '2026-01-02T08:00:00Z', '2026-02-01T00:00:00Z', 0)"
        db.execute(note, (1, f"Granite {name}", "pebble", SECRET))
        db.execute(note, (2, f"Marble {name}", "pebble", SECRET))
        db.execute(note, (3, None, "untitled obsidian", SECRET))
        for n in range(weak):
            db.execute(note, (10 + n, f"Filler {n}", "quartz " + "among many other words " * 9, SECRET))
        if not weak:
            db.execute(note, (10, "Quartz", "quartz quartz", SECRET))
        for n in range(1, 31):
            db.execute("INSERT INTO letters VALUES (?, ?, ?)", (n, n, FAT))
    db.close()


class Project:
    """A project with live datasets, made with the command line."""

    def __init__(self, mappings: dict[str, str], sources: list[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="wayleave-portable-")
        unittest.addModuleCleanup(self._folder.cleanup)
        self.path = Path(self._folder.name)
        self.env = dict(os.environ)
        self.run("init")
        for source in sources:
            variable = f"PORTABLE_{source.upper()}"
            self.env[variable] = str(self.store(source))
            self.run("source", "add", source, "--kind", "sqlite", "--env", variable)
        for name, mapping in mappings.items():
            (self.path / f"mappings/{name}.toml").write_text(mapping)
            self.run("ratify", name, "--yes", "--offline", "--note", "for the tests", "--who", "tester")
            self.run("connect", name, "--offline")
        settings = self.path / "wayleave.toml"
        settings.write_text('[serve]\nanonymous = true\nhttp = "127.0.0.1:0"\n')

    def store(self, source: str) -> Path:
        return self.path / f"{source}.hidden-store"

    run = reading.Project.run


@functools.cache
def project(name: str) -> Project:
    return {"pair": pair, "wide": wide, "many": many, "vast": vast}[name]()


def pair() -> Project:
    mail = MAIL.format(connections=connections("left", "right"))
    made = Project({"mail": mail, "desk": DESK}, ["left", "right", "desk"])
    mailbox(made.store("left"), "left", weak=40)
    mailbox(made.store("right"), "right", weak=0)
    with sqlite3.connect(made.store("desk")) as db:
        db.executescript(
            "CREATE TABLE notes (id INTEGER PRIMARY KEY, memo TEXT); INSERT INTO notes VALUES (1, 'm');"
            "CREATE TABLE alone (id INTEGER PRIMARY KEY); INSERT INTO alone VALUES (1), (2);"
        )
    db.close()
    return made


def wide() -> Project:
    boxes = [f"box{n:02}" for n in range(25)]
    made = Project({"mail": MAIL.format(connections=connections(*boxes))}, boxes)
    mailbox(made.store("box00"), "zero", weak=0)
    return made


def thousands(count: int) -> Project:
    made = Project({"many": streams(count)}, ["main"])
    with sqlite3.connect(made.store("main")) as db:
        db.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, field_detail TEXT)")
    db.close()
    return made


many = functools.partial(thousands, 80)
vast = functools.partial(thousands, 1_000)


def size(result: types.CallToolResult) -> int:
    """Of the whole result, as it goes over the wire."""
    return len(result.model_dump_json(by_alias=True, exclude_none=True).encode())


def keys_within(value) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(keys_within, value.values()))
    if isinstance(value, list):
        return set().union(*map(keys_within, value))
    return set()


class Rules:
    """What holds over either transport."""

    good = reading.Rules.good
    refused = reading.Rules.refused

    @asynccontextmanager
    async def client(self, name: str = "pair"):
        failure = None
        async with Client(self.server(name), mode="legacy", read_timeout_seconds=PATIENCE) as client:
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

    # --- what is listed ---------------------------------------------------------------------------

    async def test_01_02_03_the_five_tools_are_listed_small_and_read_only(self) -> None:
        async with self.client() as client:
            tools = await self.tools(client)
        self.assertEqual(set(tools), TOOLS)
        listed = json.dumps(list(tools.values()), separators=(",", ":"))
        self.assertLessEqual(len(listed.encode()), 6_144)
        for tool in tools.values():
            self.assertEqual(
                tool["annotations"],
                {
                    "readOnlyHint": True,
                    "destructiveHint": False,
                    "idempotentHint": True,
                    "openWorldHint": False,
                },
            )

    async def test_04_a_connection_is_optional_and_has_one_name(self) -> None:
        async with self.client() as client:
            tools = await self.tools(client)
            for name, tool in tools.items():
                schema = tool["inputSchema"]
                self.assertIn("connection_id", schema["properties"])
                self.assertNotIn("connection_id", schema.get("required", []))
                self.assertNotIn("connector_instance_id", json.dumps(tool))
                error = await self.refused(client, name, connector_instance_id="left")
                self.assertEqual(
                    (error["code"], error["param"]), ("invalid_request", "connector_instance_id")
                )

    async def test_08_the_instructions_begin_with_what_matters(self) -> None:
        async with self.client() as client:
            begin = client.instructions[:512].lower()
        for word in ["schema", "connection_id", "filter", "cursor"]:
            self.assertIn(word, begin)

    async def test_09_the_list_tells_nothing_of_the_data(self) -> None:
        lists = []
        for name in ["pair", "wide", "many", "vast"]:
            async with self.client(name) as client:
                lists.append((await self.tools(client), client.instructions))
        for other in lists[1:]:
            self.assertEqual(other, lists[0])
        told = json.dumps(lists[0])
        for name in ["notes", "letters", "alone", "kind_0", "left", "desk"]:
            self.assertNotRegex(told, rf"\b{name}\b")

    # --- arguments --------------------------------------------------------------------------------

    async def test_05_a_filter_is_an_object_and_nothing_that_looks_like_one(self) -> None:
        async with self.client("wide") as client:
            for name, tool in (await self.tools(client)).items():
                if asked := tool["inputSchema"]["properties"].get("filter"):
                    self.assertEqual(asked["type"], "object", name)
            # `box07` has no store: a refusal that came after asking it would be another.
            for wrong in ["", "id", '{"id": 1}', "filter[id]=1", [], 1]:
                for tool, more in [
                    ("query_records", {"stream": "notes"}),
                    ("aggregate", {"stream": "notes", "metrics": [{"op": "count"}]}),
                    ("search", {"q": "pebble"}),
                ]:
                    error = await self.refused(
                        client, tool, connection_id="box07", filter=wrong, **more
                    )
                    self.assertEqual(error["code"], "invalid_filter")

    async def test_06_empty_and_bracketed_filters_are_refused_and_ne_is_not(self) -> None:
        async with self.client() as client:
            call = dict(stream="notes", connection_id="right", fields=["id"])
            for wrong in [{}, {"id[gte]": 1}, {"[id]": 1}, {"id": {"like": 1}}, {"id": {}}]:
                error = await self.refused(client, "query_records", filter=wrong, **call)
                self.assertEqual(error["code"], "invalid_filter", wrong)
            page = await self.good(
                client, "query_records", filter={"id": {"ne": 2}}, sort=["id"], **call
            )
            self.assertEqual(page.structured_content["data"]["rows"], [[1], [3], [10]])

    async def test_07_a_limit_is_up_to_100_and_100_itself_is_fine(self) -> None:
        async with self.client() as client:
            for tool, call in [
                ("query_records", dict(stream="notes", connection_id="left")),
                ("search", dict(q="pebble")),
            ]:
                asked = (await self.tools(client))[tool]["inputSchema"]["properties"]["limit"]
                self.assertEqual((asked["minimum"], asked["maximum"]), (1, 100))
                if tool == "search":
                    await self.indexed(client, "left")
                await self.good(client, tool, limit=100, **call)
                for wrong in [0, -1, 101, 500, "ten", 1.5]:
                    error = await self.refused(client, tool, limit=wrong, **call)
                    self.assertEqual((error["code"], error["param"]), ("invalid_request", "limit"))

    async def test_x5_what_is_advertised_is_accepted_and_nothing_else(self) -> None:
        notes = dict(stream="notes", connection_id="left")
        async with self.client() as client:
            await self.indexed(client, "left", "right")
            page = await self.good(client, "query_records", limit=1, **notes)
            hits = await self.good(client, "search", q="pebble", limit=1)
            calls = {
                "schema": [dict(notes, detail="compact"), dict(notes, detail="full")],
                "query_records": [
                    dict(notes, limit=1, cursor=page.structured_content["meta"]["next_cursor"]),
                    dict(notes, filter={"id": 1}, sort=["-id"], fields=["heading"], expand=["pages"]),
                    dict(notes, changes_since="beginning"),
                    *[dict(notes, count=each) for each in ["none", "estimated", "exact"]],
                ],
                "aggregate": [
                    dict(
                        notes,
                        metrics=[{"op": "count"}],
                        group_by=["heading"],
                        filter={"id": 1},
                        sort=["-count"],
                        limit=1,
                    ),
                    *[
                        dict(notes, metrics=[{"op": each, "field": "id"}])
                        for each in ["count", "count_distinct", "sum", "avg", "min", "max"]
                    ],
                    *[
                        dict(
                            notes,
                            metrics=[{"op": "count"}],
                            group_by_time=dict(field="sent_at", granularity=each, time_zone="UTC"),
                        )
                        for each in ["minute", "hour", "day", "week", "month", "quarter", "year"]
                    ],
                ],
                "search": [
                    dict(q="pebble", limit=1, cursor=hits.structured_content["meta"]["next_cursor"]),
                    dict(
                        q="pebble",
                        connection_id="left",
                        streams=["notes"],
                        filter={"id": 1},
                        fields=["body"],
                    ),
                ],
                "fetch": [
                    dict(id="left/notes:1", connection_id="left", fields=["body"], expand=["pages"])
                ],
            }
            for name, tool in (await self.tools(client)).items():
                advertised = tool["inputSchema"]["properties"]
                self.assertIs(tool["inputSchema"]["additionalProperties"], False)
                self.assertEqual(set().union(*calls[name]), set(advertised), name)
                for argument, asked in advertised.items():
                    if "enum" in asked:
                        used = {call[argument] for call in calls[name] if argument in call}
                        self.assertEqual(used, set(asked["enum"]))
                for call in calls[name]:
                    await self.good(client, name, **call)
                error = await self.refused(client, name, **calls[name][0], unheard_of=1)
                self.assertEqual(error["param"], "unheard_of")
                self.assertEqual(set(error["allowed"]), set(advertised))

    # --- schema -----------------------------------------------------------------------------------

    async def test_10_11_the_index_is_whole_and_bounded_for_any_number_of_streams(self) -> None:
        for name, count, most in [("pair", 4, 8_000), ("many", 80, 18_000), ("vast", 1_000, 65_536)]:
            async with self.client(name) as client:
                result = await self.good(client, "schema")
            text, data = text_of(result), result.structured_content["data"]
            self.assertLessEqual(size(result), most)
            self.assertEqual(data["detail"], "compact")
            self.assertEqual(data["totals"]["streams"], count)
            self.assertNotIn("field_detail", text + json.dumps(data))
            self.assertNotIn("fields", keys_within(data))
            if name != "pair":
                for n in range(count):
                    self.assertIn(f"kind_{n:04}", text)
            else:
                # By connector: what follows a connector's line is its own.
                self.assertRegex(text, r"(?s)\nmail\b.*\n- notes\b.*\n- letters\b")
                self.assertRegex(text, r"(?s)\ndesk\b.*\n- notes\b.*\n- alone\b")

    async def test_12_a_shared_name_is_described_once_for_each_kind_of_source(self) -> None:
        async with self.client() as client:
            result = await self.good(client, "schema", stream="notes")
        data = result.structured_content["data"]
        described = {
            source["connector_key"]: (
                [each["connection_id"] for each in source["connections"]],
                [each["name"] for each in source["fields"]],
            )
            for source in data["sources"]
        }
        mail = ["id", "heading", "body", "secret", "sent_at", "updated_at", "gone"]
        self.assertEqual(
            described, {"mail": (["left", "right"], mail), "desk": (["desk"], ["id", "memo"])}
        )
        self.assertEqual(len(data["sources"]), 2)
        self.assertTrue(data["legend"])
        for word in ["legend:", "left", "right", "desk", "- heading string", "- memo string"]:
            self.assertIn(word, text_of(result))

    async def test_13_one_stream_of_one_connection_is_short(self) -> None:
        async with self.client() as client:
            result = await self.good(client, "schema", stream="notes", connection_id="right")
        (source,) = result.structured_content["data"]["sources"]
        self.assertEqual([each["connection_id"] for each in source["connections"]], ["right"])
        self.assertLessEqual(size(result), 6_000)
        self.assertNotIn("left", text_of(result))

    async def test_14_15_full_detail_is_about_one_stream_of_one_connection(self) -> None:
        async with self.client() as client:
            error = await self.refused(client, "schema", detail="full")
            self.assertEqual(
                (error["code"], error["param"], error["retry_with"]),
                ("invalid_request", "detail", "stream"),
            )
            await self.good(client, error["next"]["tool"], **error["next"]["arguments"])
            for stream, holders in [("notes", ["desk", "left", "right"]), ("letters", ["left", "right"])]:
                error = await self.refused(client, "schema", stream=stream, detail="full")
                self.assertEqual(error["code"], "ambiguous_connection")
                self.assertEqual(error["retry_with"], "connection_id")
                listed = [each["connection_id"] for each in error["available_connections"]]
                self.assertEqual(sorted(listed), holders)
                await self.good(client, error["next"]["tool"], **error["next"]["arguments"])

    async def test_16_full_detail_has_json_schema_and_says_nothing_twice(self) -> None:
        async with self.client() as client:
            result = await self.good(
                client, "schema", stream="notes", connection_id="left", detail="full"
            )
        self.assertEqual(set(result.structured_content) - {"meta"}, {"data"})
        data = result.structured_content["data"]
        self.assertEqual(data["detail"], "full")
        self.assertFalse({"data", "streams"} & set(data))
        (source,) = data["sources"]
        schemas = {each["name"]: each["schema"] for each in source["fields"]}
        self.assertEqual(schemas["id"], {"type": "integer"})
        self.assertEqual(schemas["gone"], {"type": ["boolean", "null"]})

    # --- connections ------------------------------------------------------------------------------

    async def test_17_an_ambiguous_stream_is_told_with_its_holders_and_no_store_is_asked(self) -> None:
        async with self.client() as client:
            for tool, more in [("query_records", {}), ("aggregate", {"metrics": [{"op": "count"}]})]:
                error = await self.refused(client, tool, stream="letters", **more)
                self.assertEqual(error["code"], "ambiguous_connection")
                self.assertEqual((error["total"], error["truncated"]), (2, False))
                for each in error["available_connections"]:
                    self.assertLessEqual({"grant_id", "connector_key", "connection_id"}, set(each))
                await self.good(client, error["next"]["tool"], **error["next"]["arguments"])

    async def test_18_of_25_connections_the_first_are_listed_and_all_are_counted(self) -> None:
        async with self.client("wide") as client:
            # 24 of them have no store; an answer that asked one would not be this one.
            error = await self.refused(client, "query_records", stream="notes")
        self.assertEqual(error["code"], "ambiguous_connection")
        listed = [each["connection_id"] for each in error["available_connections"]]
        # At most twelve, and no more than fit into an error, whose bound `refused` holds.
        self.assertIn(len(listed), range(2, 13))
        self.assertEqual(listed, [f"box{n:02}" for n in range(len(listed))])
        self.assertEqual((error["total"], error["truncated"]), (25, True))
        self.assertIn("`schema` lists them all", error["message"])
        async with self.client("wide") as client:
            index = text_of(await self.good(client, "schema"))
        for n in range(25):
            self.assertIn(f"box{n:02}", index)

    async def test_19_an_unknown_connection_is_not_found_and_none_stands_in(self) -> None:
        async with self.client() as client:
            for tool, more in [
                ("schema", {"stream": "notes"}),
                ("query_records", {"stream": "alone"}),
                ("aggregate", {"stream": "alone", "metrics": [{"op": "count"}]}),
                ("search", {"q": "pebble"}),
                ("fetch", {"id": "nowhere/notes:1"}),
            ]:
                more = more if tool == "fetch" else dict(more, connection_id="nowhere")
                error = await self.refused(client, tool, **more)
                self.assertEqual(error["code"], "not_found", tool)

    async def test_20_only_the_named_connection_is_asked_and_its_failure_is_its_own(self) -> None:
        async with self.client("wide") as client:
            call = dict(stream="notes", fields=["id"], sort=["id"])
            page = await self.good(client, "query_records", connection_id="box00", **call)
            self.assertEqual(page.structured_content["data"]["rows"], [[1], [2], [3], [10]])
            error = await self.refused(client, "query_records", connection_id="box07", **call)
            self.assertEqual(error["code"], "source_unavailable")
            error = await self.refused(client, "fetch", id="box07/notes:1")
            self.assertEqual(error["code"], "source_unavailable")

    async def test_x3_a_stream_that_one_connection_holds_is_never_ambiguous(self) -> None:
        async with self.client() as client:
            page = await self.good(client, "query_records", stream="alone", sort=["id"])
            self.assertEqual(page.structured_content["data"]["rows"], [[1], [2]])
            self.assertEqual(page.structured_content["meta"]["connection_id"], "desk")
            await self.good(client, "schema", stream="alone", detail="full")
            await self.good(client, "aggregate", stream="alone", metrics=[{"op": "count"}])

    async def test_x4_a_connector_has_one_key_everywhere(self) -> None:
        async with self.client() as client:
            await self.indexed(client, "left", "right")
            index = await self.good(client, "schema")
            described = await self.good(client, "schema", stream="notes", connection_id="left")
            page = await self.good(client, "query_records", stream="notes", connection_id="left")
            counted = await self.good(
                client, "aggregate", stream="notes", connection_id="left", metrics=[{"op": "count"}]
            )
            found = await self.good(client, "search", q="granite", connection_id="left")
            document = await self.good(client, "fetch", id="left/notes:1")
            error = await self.refused(client, "query_records", stream="letters")
        by_connection = {
            connection["connection_id"]: connector["connector_key"]
            for connector in index.structured_content["data"]["connectors"]
            for connection in connector["connections"]
        }
        self.assertEqual(by_connection, {"left": "mail", "right": "mail", "desk": "desk"})
        for told in [
            described.structured_content["data"]["sources"][0],
            page.structured_content["meta"],
            counted.structured_content["meta"],
            found.structured_content["data"]["results"][0],
            document.structured_content["metadata"],
            *error["available_connections"],
        ]:
            self.assertEqual(told["connector_key"], "mail")

    # --- search -----------------------------------------------------------------------------------

    async def test_21_22_a_search_over_all_has_one_limit_and_tells_its_mix_first(self) -> None:
        async with self.client() as client:
            await self.indexed(client, "left", "right")
            result = await self.good(client, "search", q="pebble", limit=3)
            meta, text = result.structured_content["meta"], text_of(result)
            results = result.structured_content["data"]["results"]
            self.assertEqual(len(results), 3)
            mix = {}
            for hit in results:
                mix[hit["connection_id"]] = mix.get(hit["connection_id"], 0) + 1
            self.assertEqual(meta["source_mix"], mix)
            self.assertEqual(set(mix), {"left", "right"})
            self.assertTrue(meta["next_cursor"])
            first, second = text.splitlines()[:2]
            self.assertEqual(first, f"first_fetch_id={results[0]['id']}")
            self.assertTrue(second.startswith("source_mix="), second)
            nothing = await self.good(client, "search", q="zyzzyva")
            self.assertNotIn("first_fetch_id=", text_of(nothing))
            self.assertNotIn("source_mix=", text_of(nothing))
            self.assertEqual(nothing.structured_content["data"]["results"], [])

    async def test_23_a_reader_of_text_gets_from_a_search_to_its_document(self) -> None:
        async with self.client() as client:
            await self.indexed(client, "left", "right")
            found = text_of(await self.good(client, "search", q="marble", connection_id="right"))
            id = handle(found, "first_fetch_id")
            self.assertEqual(id, "right/notes:2")
            document = await self.good(client, "fetch", id=id)
            self.assertEqual(json.loads(text_of(document))["id"], id)
            self.assertIn("Marble right", document.structured_content["text"])

    async def test_28_a_title_is_never_the_snippet(self) -> None:
        async with self.client() as client:
            await self.indexed(client, "left", "right")
            found = await self.good(client, "search", q="obsidian granite quartz", limit=100)
            titles = {}
            for hit in found.structured_content["data"]["results"]:
                plain = re.sub(r"</?mark>", "", hit["snippet"])
                self.assertNotIn(hit["title"], {hit["snippet"], plain})
                self.assertEqual(hit["snippet"].count("<mark>"), hit["snippet"].count("</mark>"))
                titles[hit["id"]] = hit["title"]
        self.assertEqual(titles["left/notes:1"], "Granite left")
        for word in ["Box left", "notes", "2026-01-02"]:
            self.assertIn(word, titles["left/notes:3"])

    async def test_x1_a_busy_connection_does_not_crowd_out_a_better_hit(self) -> None:
        async with self.client() as client:
            await self.indexed(client, "left", "right")
            found = await self.good(client, "search", q="quartz", limit=5)
            hits = found.structured_content["data"]["results"]
            self.assertEqual(hits[0]["id"], "right/notes:10")
            self.assertEqual({hit["connection_id"] for hit in hits[1:]}, {"left"})
            order = [(-hit["score"], hit["id"]) for hit in hits]
            self.assertEqual(order, sorted(order))

    async def test_x2_pages_of_a_search_walk_the_whole_union_once(self) -> None:
        async with self.client() as client:
            await self.indexed(client, "left", "right")
            whole = await self.good(client, "search", q="quartz pebble", limit=100)
            expected = [hit["id"] for hit in whole.structured_content["data"]["results"]]
            self.assertEqual(len(expected), 45)
            self.assertIsNone(whole.structured_content["meta"].get("next_cursor"))
            seen, cursor = [], None
            while True:
                more = {"cursor": cursor} if cursor else {}
                text = text_of(await self.good(client, "search", q="quartz pebble", limit=7, **more))
                seen += [row[0] for row in rows_of(text)]
                cursor = handle(text, "next_cursor")
                if not cursor:
                    break
            self.assertEqual(seen, expected)

    async def test_a_source_that_cannot_be_searched_is_named(self) -> None:
        async with self.client("wide") as client:
            await self.indexed(client, "box00")
            found = await self.good(client, "search", q="pebble")
            self.assertEqual(found.structured_content["meta"]["source_mix"], {"box00": 2})
            self.assertEqual(found.structured_content["meta"]["sources_total"], 25)
            self.assertIn("missing", text_of(found))
            self.assertLessEqual(size(found), 8_000)

    # --- fetch ------------------------------------------------------------------------------------

    async def test_24_an_id_and_a_connection_that_disagree_are_refused(self) -> None:
        async with self.client("wide") as client:
            # `box07` has no store: neither side was asked.
            for id, other in [("box07/notes:1", "box00"), ("box00/notes:1", "box07")]:
                error = await self.refused(client, "fetch", id=id, connection_id=other)
                self.assertEqual(
                    (error["code"], error["param"]), ("invalid_request", "connection_id")
                )
                self.assertIn("conflicting", error["message"])

    async def test_25_what_is_no_id_is_refused(self) -> None:
        async with self.client() as client:
            for id in [
                "../x/notes:1", "left/", "/notes:1", "left/notes", "left/x/notes:1",
                "left/../right/notes:1", "left/notes:../1", "left/notes:", "", ":", "left%2Fnotes:1",
            ]:
                error = await self.refused(client, "fetch", id=id)
                self.assertIn(error["code"], {"invalid_request", "not_found", "unknown_stream"}, id)

    async def test_26_a_document_has_five_keys_and_its_text_mirrors_it(self) -> None:
        async with self.client() as client:
            document = await self.good(client, "fetch", id="left/letters:7")
        self.assertEqual(
            list(document.structured_content), ["id", "title", "text", "url", "metadata"]
        )
        self.assertEqual(json.loads(text_of(document)), document.structured_content)
        self.assertIn(FAT.strip(), document.structured_content["text"])

    async def test_27_what_was_not_asked_for_is_nowhere(self) -> None:
        async with self.client() as client:
            document = await self.good(client, "fetch", id="left/notes:1", fields=["id"])
            fat = await self.good(client, "fetch", id="left/letters:7", fields=["id"])
            page = await self.good(
                client, "query_records", stream="notes", connection_id="left", fields=["id"]
            )
        metadata = document.structured_content["metadata"]
        self.assertEqual((metadata["stream"], metadata["connection_id"]), ("notes", "left"))
        for result in [document, fat, page]:
            told = result.model_dump_json()
            self.assertLess(size(result), 2_500)
            for hidden in [SECRET, "Granite", "pebble", "heading", "wide words", "2026-0"]:
                self.assertNotIn(hidden, told)

    # --- text alone -------------------------------------------------------------------------------

    async def test_29_text_has_all_that_the_next_call_needs(self) -> None:
        async with self.client() as client:
            call = dict(stream="notes", connection_id="left", fields=["id"])
            page = await self.good(client, "query_records", limit=2, count="exact", **call)
            text, meta = text_of(page), page.structured_content["meta"]
            self.assertEqual(handle(text, "next_cursor"), meta["next_cursor"])
            self.assertIn("count=43 exact", text)
            self.assertEqual(meta["count"], {"value": 43, "kind": "exact"})
            page = await self.good(
                client, "query_records", limit=100, changes_since="beginning", **call
            )
            text, meta = text_of(page), page.structured_content["meta"]
            self.assertEqual(handle(text, "next_changes_since"), meta["next_changes_since"])

    async def test_fat_fields_end_a_page_early_and_the_walk_is_whole(self) -> None:
        async with self.client() as client:
            call = dict(stream="letters", connection_id="left", sort=["id"], limit=100)
            seen, pages, cursor = [], 0, None
            while True:
                more = {"cursor": cursor} if cursor else {}
                result = await self.good(client, "query_records", **call, **more)
                text = text_of(result)
                self.assertLessEqual(len(text.encode()), 16 * 1024)
                rows = result.structured_content["data"]["rows"]
                self.assertEqual([row[0] for row in rows_of(text)], [str(row[0]) for row in rows])
                seen += [row[0] for row in rows]
                pages += 1
                cursor = handle(text, "next_cursor")
                if not cursor:
                    break
        self.assertEqual(seen, list(range(1, 31)))
        self.assertGreater(pages, 1)

    async def test_30_nothing_tells_where_the_data_is(self) -> None:
        answers = []
        for name, connection in [("pair", "left"), ("wide", "box07")]:
            async with self.client(name) as client:
                for tool, arguments in [
                    ("schema", {}),
                    ("schema", {"stream": "notes", "connection_id": connection, "detail": "full"}),
                    ("query_records", {"stream": "notes"}),
                    ("query_records", {"stream": "notes", "connection_id": connection}),
                    ("search", {"q": "pebble"}),
                    ("fetch", {"id": f"{connection}/notes:1"}),
                    ("fetch", {"id": f"{connection}/notes:999"}),
                ]:
                    answers.append((await client.call_tool(tool, arguments)).model_dump_json())
        for told in answers:
            for hidden in ["hidden-store", "wayleave-portable", "PORTABLE_", "SELECT"]:
                self.assertNotIn(hidden, told)


class OverStdio(Rules, unittest.IsolatedAsyncioTestCase):
    def server(self, name: str) -> StdioServerParameters:
        return StdioServerParameters(
            command=program(),
            args=["serve", "--stdio", "--project", str(project(name).path)],
            env=project(name).env,
        )

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
        answered = []
        process.stdin.write("\n".join(lines) + "\n")
        process.stdin.flush()
        while 3 not in answered:
            message = json.loads(process.stdout.readline())
            self.assertEqual(message["jsonrpc"], "2.0")
            answered.append(message.get("id"))
        process.stdin.close()
        for line in process.stdout:
            self.assertEqual(json.loads(line)["jsonrpc"], "2.0")
        self.assertEqual(process.wait(timeout=PATIENCE), 0)
        self.assertLessEqual({1, 2, 3}, set(answered))


class OverHttp(Rules, unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.servers = {}

    @classmethod
    def tearDownClass(cls) -> None:
        codes = {name: server.stop() for name, server in cls.servers.items()}
        if any(codes.values()):
            raise AssertionError(f"servers ended with {codes} after Ctrl-C")

    def server(self, name: str) -> str:
        if name not in self.servers:
            self.servers[name] = reading.HttpServer(project(name))
        return self.servers[name].url


if __name__ == "__main__":
    unittest.main()
