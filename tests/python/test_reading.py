"""Reading, as the official Python client sees it: the program, over stdio and over HTTP.

The project is created with the command line, as by a person: two SQLite files behind one
mapping, ratified and connected. Every rule holds for each way a client may connect: over stdio and
over HTTP, with the handshake of the older revisions (`legacy`) and with the newest one.

Run it with a Python that has `mcp` 2.x:  python tests/python/test_reading.py [-v] [NAME ...]
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import unittest
from contextlib import asynccontextmanager

import serving
from mcp import Client, StdioServerParameters
from serving import MODERN, PATIENCE, READING, ROOT, Calls, handle, rows_of, text_of, unwrapped

FIXTURES = ROOT / "crates/wayleave-surface/tests/it/reading/fixtures"
HOSTILE = [
    "' OR '1'='1",
    "'; DROP TABLE personnel; --",
    '"; DELETE FROM orgs; --',
    "1 UNION SELECT secret_rating FROM orgs",
    "PRAGMA query_only = OFF",
    "a\x00b",
    "\u202e\u2028",
    "../../etc/passwd",
]


class Project(serving.Project):
    """A project with one live dataset over two files."""

    def __init__(self) -> None:
        super().__init__('[serve]\nanonymous = true\nhttp = "127.0.0.1:0"\n')
        self.files = [self.path / "eu.db", self.path / "us.db"]
        sql = (FIXTURES / "crm.sql").read_text()
        for file, name in zip(self.files, ["Worker", "Citizen"]):
            with sqlite3.connect(file) as connection:
                connection.executescript(sql.replace("'Worker '", f"'{name} '"))
            connection.close()
        for source, file in zip(["crm_eu", "crm_us"], self.files):
            self.add_source(source, file)
        self.draft("crm").write_text((FIXTURES / "crm.toml").read_text())
        self.run("ratify", "crm", "--note", "for the tests", "--who", "tester")
        self.run("connect", "crm")

    def digest(self) -> str:
        """The digest of all data in the stores."""
        whole = hashlib.sha256()
        for file in self.files:
            whole.update(file.read_bytes())
        return whole.hexdigest()


class Rules(Calls):
    """Rules for every connection, in any mode and over any transport."""

    mode: str

    @asynccontextmanager
    async def client(self):
        async with unwrapped() as stack:
            client = Client(self.server(), mode=self.mode, read_timeout_seconds=PATIENCE)
            yield await stack.enter_async_context(client)

    async def test_exactly_the_read_tools_are_listed_within_their_budget(self) -> None:
        async with self.client() as client:
            tools = (await client.list_tools()).tools
            self.assertEqual({tool.name for tool in tools}, READING)
            dumped = [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools]
            size = len(json.dumps(dumped, separators=(",", ":")).encode())
            self.assertLessEqual(size, 5_632)
            for tool in dumped:
                self.assertEqual(tool["_meta"], {"io.wayleave/tool": {"kind": "runtime"}})
                self.assertIs(tool["inputSchema"]["additionalProperties"], False)
                self.assertEqual(
                    tool["annotations"],
                    {
                        "readOnlyHint": True,
                        "destructiveHint": False,
                        "idempotentHint": True,
                        "openWorldHint": False,
                    },
                )

    async def test_a_reader_of_text_alone_gets_from_the_index_to_a_record(self) -> None:
        async with self.client() as client:
            index = text_of(await self.good(client, "schema"))
            for word in ["crm-eu", "crm-us", "- people key id; ", "- tickets key id; "]:
                self.assertIn(word, index)
            described = text_of(
                await self.good(client, "schema", stream="people", connection_id="crm-eu")
            )
            example = re.search(r"^example: (\w+) (\{.*\})$", described, re.MULTILINE)
            page = text_of(await self.good(client, example[1], **json.loads(example[2])))
            pattern = re.search(r"fetch id (\S+)", page)[1]
            key = rows_of(page)[0][0]
            record = pattern.replace("{id}", key)
            document = await self.good(client, "fetch", id=record)
            self.assertEqual(json.loads(text_of(document)), document.structured_content)
            self.assertEqual(
                list(document.structured_content), ["id", "title", "text", "url", "metadata"]
            )
            self.assertEqual(document.structured_content["id"], record)

    async def test_a_walk_by_the_cursors_of_the_text_sees_every_record_once(self) -> None:
        async with self.client() as client:
            call = dict(stream="people", connection_id="crm-us", fields=["full_name"], limit=60)
            seen, cursor = [], None
            while True:
                more = {"cursor": cursor} if cursor else {}
                result = await self.good(client, "query_records", count="exact", **call, **more)
                text = text_of(result)
                self.assertIn("count=195 exact", text)
                self.assertLessEqual(len(text.encode()), 16 * 1024)
                seen += [row[0] for row in rows_of(text)]
                cursor = handle(text, "next_cursor")
                self.assertEqual(cursor, result.structured_content["meta"].get("next_cursor"))
                if not cursor:
                    break
            self.assertEqual((len(seen), len(set(seen))), (195, 195))

    async def test_a_cursor_of_another_call_is_refused(self) -> None:
        async with self.client() as client:
            call = dict(stream="people", connection_id="crm-eu", limit=5)
            page = await self.good(client, "query_records", **call)
            cursor = handle(text_of(page), "next_cursor")
            for changed in [
                dict(call, connection_id="crm-us", cursor=cursor),
                dict(call, filter={"status": "accepted"}, cursor=cursor),
                dict(call, sort=["id"], cursor=cursor),
                dict(call, cursor=cursor[:-2] + ("AA" if cursor[-2:] != "AA" else "BB")),
            ]:
                error = await self.refused(client, "query_records", **changed)
                self.assertEqual(error["code"], "invalid_cursor")

    async def test_changes_are_followed_by_the_bookmark_of_the_text(self) -> None:
        async with self.client() as client:
            call = dict(stream="people", connection_id="crm-eu", fields=["full_name"], limit=100)
            page = text_of(
                await self.good(client, "query_records", changes_since="beginning", **call)
            )
            cursor = handle(page, "next_cursor")
            last = text_of(
                await self.good(
                    client, "query_records", changes_since="beginning", cursor=cursor, **call
                )
            )
            deleted = [row for row in rows_of(page) + rows_of(last) if row[-1] == "true"]
            self.assertEqual(len(deleted), 5)
            bookmark = handle(last, "next_changes_since")
            later = await self.good(client, "query_records", changes_since=bookmark, **call)
            self.assertEqual(later.structured_content["data"]["rows"], [])

    async def test_groups_and_measures_are_exact(self) -> None:
        async with self.client() as client:
            result = await self.good(
                client,
                "aggregate",
                stream="people",
                connection_id="crm-eu",
                metrics=[{"op": "count"}, {"op": "avg", "field": "salary"}],
                group_by=["status"],
            )
            self.assertEqual(
                result.structured_content["data"],
                {
                    "fields": ["status", "count", "avg_salary"],
                    "rows": [
                        ["accepted", 65, "1098.214286"],
                        ["proposed", 65, "1098.285714"],
                        ["rejected", 65, "1098.25"],
                    ],
                },
            )

    async def test_relations_come_beside_their_record(self) -> None:
        async with self.client() as client:
            result = await self.good(
                client,
                "query_records",
                stream="people",
                connection_id="crm-eu",
                fields=["full_name", "employer.name"],
                expand=["employer"],
                sort=["id"],
                limit=1,
            )
            data = result.structured_content["data"]
            self.assertEqual(data["rows"], [[1, "Worker 1", [2, "Bolt"]]])
            self.assertNotIn("secret_rating", text_of(result))

    async def test_ambiguity_and_slips_are_told_with_a_call_that_works(self) -> None:
        async with self.client() as client:
            error = await self.refused(client, "query_records", stream="orgs")
            self.assertEqual(error["code"], "ambiguous_connection")
            self.assertEqual(error["retry_with"], "connection_id")
            listed = [each["connection_id"] for each in error["available_connections"]]
            self.assertEqual(listed, ["crm-eu", "crm-us"])
            await self.good(client, error["next"]["tool"], **error["next"]["arguments"])
            error = await self.refused(client, "query_records", stream="poeple")
            self.assertEqual((error["code"], error["did_you_mean"]), ("unknown_stream", "people"))
            error = await self.refused(client, "schema", detail="full")
            self.assertEqual((error["param"], error["retry_with"]), ("detail", "stream"))
            error = await self.refused(client, "fetch", id="crm-eu/people:1", feilds=["id"])
            self.assertEqual((error["param"], error["did_you_mean"]), ("feilds", "fields"))
            error = await self.refused(client, "query_records", stream="orgs", limit=500)
            self.assertEqual(error["param"], "limit")

    async def test_hostile_texts_change_nothing(self) -> None:
        before = self.project.digest()
        async with self.client() as client:
            for text in HOSTILE:
                for tool, arguments in [
                    ("schema", {"stream": text}),
                    ("query_records", {"stream": text}),
                    ("query_records", {"stream": "people", "connection_id": text}),
                    ("query_records", {"stream": "people", "connection_id": "crm-eu", "sort": [text]}),
                    ("query_records", {"stream": "people", "connection_id": "crm-eu", "cursor": text}),
                    ("query_records", {"stream": "people", "connection_id": "crm-eu", "filter": {text: 1}}),
                    ("query_records", {"stream": "people", "connection_id": "crm-eu", "filter": {"salary": text}}),
                    ("fetch", {"id": text}),
                    ("fetch", {"id": f"crm-eu/people:{text}"}),
                ]:
                    error = await self.refused(client, tool, **arguments)
                    self.assertIn("code", error)
                found = await self.good(
                    client,
                    "query_records",
                    stream="people",
                    connection_id="crm-eu",
                    filter={"full_name": {"contains": text.replace("\x00", "")}},
                )
                self.assertEqual(found.structured_content["data"]["rows"], [])
        self.assertEqual(self.project.digest(), before)

    async def test_no_answer_tells_where_the_data_is(self) -> None:
        async with self.client() as client:
            answers = [
                await client.call_tool(tool, arguments)
                for tool, arguments in [
                    ("schema", {}),
                    ("schema", {"stream": "people", "connection_id": "crm-eu", "detail": "full"}),
                    ("query_records", {"stream": "people", "connection_id": "crm-eu", "limit": 1}),
                    ("fetch", {"id": "crm-eu/people:1"}),
                    ("fetch", {"id": "crm-eu/people:0"}),
                ]
            ]
        for answer in answers:
            told = answer.model_dump_json()
            for hidden in ["personnel", "crm_eu", ".db", str(self.project.path)]:
                self.assertNotIn(hidden, told)


class OneProject(unittest.IsolatedAsyncioTestCase):
    """The tests of a class share a project, because they only read."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.project = Project()
        cls.addClassCleanup(cls.project.close)


class OverStdio(OneProject):
    def server(self) -> StdioServerParameters:
        return self.project.over_stdio()


class OverHttp(OneProject):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.http = cls.project.over_http()

    @classmethod
    def tearDownClass(cls) -> None:
        code = cls.http.stop()
        if code != 0:
            raise AssertionError(f"the server ended with {code} after Ctrl-C")

    def server(self) -> str:
        return self.http.url


class LegacyOverStdio(Rules, OverStdio):
    mode = "legacy"


class ModernOverStdio(Rules, OverStdio):
    mode = MODERN


class LegacyOverHttp(Rules, OverHttp):
    mode = "legacy"


class ModernOverHttp(Rules, OverHttp):
    mode = MODERN


class CommandLine(unittest.TestCase):
    """The command line gives people the same answers as agents."""

    def test_the_commands_print_tables_and_documents(self) -> None:
        project = Project()
        self.addCleanup(project.close)
        page = project.run(
            "query", "people", "--connection", "crm-eu", "--sort", "-salary", "--limit", "1",
            "--fields", "full_name,salary", "--filter", '{"status": "accepted"}',
        )
        self.assertIn("id   full_name   salary\n193  Worker 193  1193.25", page)
        self.assertIn("next_cursor=", page)
        document = json.loads(
            project.run("aggregate", "tickets", "--connection", "crm-us", "--metric", "sum:amount", "--json")
        )
        self.assertEqual(document["data"]["fields"], ["sum_amount"])
        self.assertIn("full_name: Worker 3", project.run("fetch", "crm-eu/people:3"))
        self.assertIn("fields:", project.run("schema", "tickets", "--connection", "crm-eu"))
        with self.assertRaisesRegex(RuntimeError, "ended with 2: error: 2 connections hold"):
            project.run("query", "people")


if __name__ == "__main__":
    unittest.main()
