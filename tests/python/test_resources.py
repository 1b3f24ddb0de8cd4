"""Typed records as resources, as the official Python client reads them.

Every rule holds over stdio and over HTTP, with the handshake of the older revisions (`legacy`) and
with the newest one. PyLD, an independent processor, reads the JSON-LD.

Run it with a Python that has `mcp` 2.x and PyLD:  python tests/python/test_resources.py [-v] [NAME ...]
"""

from __future__ import annotations

import json
import sqlite3
import unittest
from contextlib import AsyncExitStack, asynccontextmanager

import mcp_types as types
import serving
from mcp import Client, MCPError
from pyld import jsonld
from serving import INVALID_PARAMS, PATIENCE, Calls, unwrapped

BASE = "https://example.org/work#"
XSD = "http://www.w3.org/2001/XMLSchema#"
MAPPING = f"""
[dataset]
name = "work"
kind = "sqlite"
iri = "{BASE}"

[[connections]]
id = "work"
source = "work"

[streams.requirements]
type = "Requirement"
key = ["id"]
title = "name"
[streams.requirements.fields]
id = {{ datatype = "integer", required = true }}
name = {{ datatype = "string" }}
status = {{ datatype = "string", one_of = ["proposed", "accepted"] }}
priority = {{ datatype = "integer" }}
cost = {{ datatype = "decimal" }}
due = {{ datatype = "date" }}
about = {{ datatype = "iri" }}
owner_id = {{ datatype = "integer" }}
[streams.requirements.relations.owner]
to = "people"
on = {{ owner_id = "id" }}
type = "OWNED_BY"

[streams.people]
type = "Person"
key = ["id"]
title = "name"
[streams.people.fields]
id = {{ datatype = "integer", required = true }}
name = {{ datatype = "string" }}
"""
REQUIREMENTS = 10_000


class Project(serving.Project):
    def __init__(self) -> None:
        super().__init__('[serve]\nhttp = "127.0.0.1:0"\nscopes = ["runtime", "builder"]\n')
        file = self.path / "work.db"
        with sqlite3.connect(file) as connection:
            connection.execute(
                "CREATE TABLE requirements (id INTEGER PRIMARY KEY, name TEXT, status TEXT, "
                "priority INTEGER, cost TEXT, due TEXT, about TEXT, owner_id INTEGER)"
            )
            connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
            connection.execute("INSERT INTO people VALUES (1, 'Ada'), (2, 'Grace')")
            rows = [
                (n, f"Requirement {n}", "proposed" if n % 100 == 0 else "accepted", n % 5,
                 f"{n}.50" if n % 2 else None, "2026-01-31", f"https://example.org/doc/{n}", n % 3)
                for n in range(1, REQUIREMENTS + 1)
            ]
            connection.executemany("INSERT INTO requirements VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        connection.close()
        self.add_source("work", file)
        self.draft("work").write_text(MAPPING)
        self.run("ratify", "work")
        self.run("connect", "work")
        self.reader = self.token()
        self.builder = self.token("--scope", "builder")

    def token(self, *words: str) -> str:
        made = self.run("token", "create", "--all-of", "work", *words, "--json")
        return json.loads(made)["secret"]


class Rules(Calls):
    mode: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.project = Project()
        cls.addClassCleanup(cls.project.close)
        cls.begin()

    @asynccontextmanager
    async def client(self, token: str = ""):
        async with unwrapped() as stack:
            server = await self.server(token or self.project.reader, stack)
            client = Client(server, mode=self.mode, read_timeout_seconds=PATIENCE)
            yield await stack.enter_async_context(client)

    async def body(self, client: Client, uri: str):
        contents = (await client.read_resource(uri)).contents[0]
        return json.loads(contents.text)

    async def refusal(self, client: Client, uri: str) -> dict:
        with self.assertRaises(MCPError) as caught:
            await client.read_resource(uri)
        self.assertEqual(caught.exception.error.code, INVALID_PARAMS)
        return caught.exception.error.data

    async def test_t10_a_type_lists_100_and_at_most_1000(self) -> None:
        async with self.client() as client:
            page = await self.body(client, "wayleave://kg/Requirement")
            self.assertEqual(len(page), 100)
            self.assertEqual({tuple(sorted(it)) for it in page}, {("iri", "label")})
            most = await self.body(client, "wayleave://kg/Requirement?limit=1000")
            self.assertEqual(len(most), 1000)
            data = await self.refusal(client, "wayleave://kg/Requirement?limit=5000")
            self.assertEqual((data["reason"], data["maximum"]), ("out_of_range", 1000))
            data = await self.refusal(client, "wayleave://kg/Requirement?offset=10001")
            self.assertEqual((data["field"], data["reason"]), ("offset", "out_of_range"))
            self.assertEqual(data["next"]["tool"], "query_records")
            await self.good(client, data["next"]["tool"], **data["next"]["arguments"])

    async def test_t11_a_clause_lists_what_a_filter_finds(self) -> None:
        async with self.client() as client:
            page = await self.body(client, "wayleave://kg/Requirement?where=status=proposed")
            found = await self.good(
                client, "query_records", stream="requirements", filter={"status": "proposed"},
                fields=["name"], limit=100,
            )
            rows = found.structured_content["data"]["rows"]
            self.assertEqual(len(page), 100)
            self.assertEqual({it["label"] for it in page}, {row[1] for row in rows})

    async def test_t12_a_value_of_another_type_is_refused_and_so_are_quotes(self) -> None:
        async with self.client() as client:
            data = await self.refusal(client, "wayleave://kg/Requirement?where=priority=abc")
            expected = {"field": "priority", "reason": "type_mismatch", "expected_datatype": "integer"}
            data.pop("_meta")  # names the record of the call
            self.assertEqual(data, expected)
            for quoted in ["%22a%22", "'a'", "a%5C", "a%0A"]:
                uri = f"wayleave://kg/Requirement?where=name={quoted}"
                self.assertEqual((await self.refusal(client, uri))["reason"], "forbidden_character")

    async def test_t13_ten_thousand_records_are_one_entry(self) -> None:
        async with self.client() as client:
            listed = (await client.list_resources()).resources
            uris = [str(it.uri) for it in listed]
            self.assertEqual(uris.count("wayleave://kg/Requirement"), 1)
            self.assertEqual(sum("kg/Requirement" in uri for uri in uris), 1)
            templates = (await client.list_resource_templates()).resource_templates
            templates = {it.uri_template for it in templates}
            self.assertIn("wayleave://kg/Requirement{?where,limit,offset}", templates)

    async def test_json_ld_is_read_by_another_processor(self) -> None:
        async with self.client() as client:
            document = await self.body(client, "wayleave://kg/Requirement/work%2Frequirements:1")
            [node] = jsonld.expand(document)
            self.assertEqual(node["@type"], [f"{BASE}Requirement"])
            self.assertEqual(node[f"{BASE}OWNED_BY"], [{"@id": "wayleave://kg/Person/work%2Fpeople:1"}])
            self.assertEqual(node[f"{BASE}about"], [{"@id": "https://example.org/doc/1"}])
            self.assertEqual(node[f"{BASE}cost"], [{"@type": f"{XSD}decimal", "@value": "1.5"}])
            self.assertEqual(node[f"{BASE}due"], [{"@type": f"{XSD}date", "@value": "2026-01-31"}])
            triples = jsonld.to_rdf(document)["@default"]
            # Eight fields, one relation, one type.
            self.assertEqual(len(triples), 10)
            document = await self.body(client, "wayleave://kg/Requirement/work%2Frequirements:6")
            self.assertIsNone(document[f"{BASE}cost"])
            self.assertIsNone(document[f"{BASE}OWNED_BY"])
            [node] = jsonld.expand(document)
            self.assertNotIn(f"{BASE}cost", node)
            self.assertNotIn(f"{BASE}OWNED_BY", node)

    async def test_what_there_is_to_read_is_a_resource(self) -> None:
        async with self.client() as client:
            types_ = {it["type"]: it for it in await self.body(client, "wayleave://kg/types")}
            self.assertEqual(types_["Requirement"]["count"], {"value": REQUIREMENTS, "kind": "exact"})
            stats = await self.body(client, "wayleave://stats")
            self.assertEqual((stats["types"], stats["fields"]), (2, 10))
            schema = await self.body(client, "wayleave://schema")
            self.assertEqual([it["stream"] for it in schema["streams"]], ["requirements", "people"])
            with self.assertRaises(MCPError):
                await client.read_resource("wayleave://doctor")
        async with self.client(self.project.builder) as client:
            doctor = await self.body(client, "wayleave://doctor")
            self.assertEqual(doctor["connections"][0]["connection_id"], "work")
            self.assertTrue(doctor["ok"])

    async def test_clauses_are_completed(self) -> None:
        async with self.client() as client:
            template = types.ResourceTemplateReference(
                type="ref/resource", uri="wayleave://kg/Requirement{?where,limit,offset}"
            )
            for typed, expected in [
                ("st", ["status="]),
                ("status=", ["status=accepted", "status=proposed"]),
            ]:
                done = await client.complete(template, {"name": "where", "value": typed}, None)
                self.assertEqual(done.completion.values, expected)


class Stdio(Rules):
    @classmethod
    def begin(cls) -> None:
        pass

    async def server(self, token: str, stack: AsyncExitStack):
        return self.project.over_stdio(token)


class Http(Rules):
    @classmethod
    def begin(cls) -> None:
        cls.http = cls.project.over_http()
        cls.addClassCleanup(cls.http.stop)

    async def server(self, token: str, stack: AsyncExitStack):
        return await serving.with_token(self.http.url, token, stack)


serving.define_every_way(globals(), Stdio, Http)


if __name__ == "__main__":
    unittest.main()
