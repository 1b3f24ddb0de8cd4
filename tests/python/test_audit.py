"""Every call leaves a record, as the official Python client and the command line see it.

Every rule holds over stdio and over HTTP, with the handshake of the older revisions (`legacy`) and
with the newest one. `prov` and PyLD, independent implementations, read the provenance.

Run it with a Python that has `mcp` 2.x, PyLD and prov:  python tests/python/test_audit.py [-v] [NAME ...]
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import unittest
import uuid
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import rdflib
import serving
from mcp import Client, MCPError
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from prov.model import ProvDocument
from pyld import jsonld
from serving import MODERN, PATIENCE, Calls, unwrapped

PROV = "http://www.w3.org/ns/prov#"
ACTIVITY = "io.wayleave/activity"
# Values that no file of the record may hold in the open, wherever a call puts them.
CANARY = "canary-5f1e"
MAPPING = """
[dataset]
name = "crm"
kind = "sqlite"

[[connections]]
id = "crm"
source = "crm"

[streams.people]
type = "Person"
key = ["id"]
title = "name"
search = ["name"]
[streams.people.fields]
id = { datatype = "integer", required = true }
name = { datatype = "string" }
"""


class Project(serving.Project):
    def __init__(self, settings: str = "") -> None:
        super().__init__(
            '[serve]\nhttp = "127.0.0.1:0"\nscopes = ["runtime", "builder"]\n'
            "[limits]\ncalls_per_minute = 100000\nburst = 10000\n" + settings
        )
        file = self.path / "crm.db"
        with sqlite3.connect(file) as connection:
            connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
            rows = [(n, f"{CANARY} {n}") for n in range(1, 301)]
            connection.executemany("INSERT INTO people VALUES (?, ?)", rows)
        connection.close()
        self.add_source("crm", file)
        self.draft("crm").write_text(MAPPING)
        self.run("ratify", "crm", "--yes")
        self.run("connect", "crm")
        self.token_id, self.token = self.issue()
        _, self.other = self.issue()
        _, self.builder = self.issue("--scope", "builder")

    def issue(self, *words: str) -> tuple[str, str]:
        made = json.loads(self.run("token", "create", "--all-of", "crm", *words, "--json"))
        return made["token"]["id"], made["secret"]

    def audit(self, *words: str, fails: bool = False):
        return json.loads(self.run("audit", *words, "--json", fails=fails))

    def list(self, *words: str) -> list[dict]:
        return self.audit("list", "--limit", "100000", *words)["activities"]

    def export(self, form: str, *words: str) -> str:
        return self.run("audit", "export", "--format", form, *words)


def activity(result) -> str:
    return (result.meta or {})[ACTIVITY]


def bare(urn: str) -> str:
    return str(uuid.UUID(urn))


class Rules(Calls):
    mode: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.project = Project()
        cls.addClassCleanup(cls.project.close)
        cls.begin()

    @asynccontextmanager
    async def client(self, token: str | None = None):
        async with unwrapped() as stack:
            server = await self.server(token or self.project.token, stack)
            yield await stack.enter_async_context(
                Client(server, mode=self.mode, read_timeout_seconds=PATIENCE)
            )

    async def test_every_result_names_an_activity_that_can_be_read(self) -> None:
        async with self.client() as client:
            person = await self.good(client, "fetch", id="crm/people:7")
            page = await self.good(client, "query_records", stream="people", limit=100)
            listed = await client.list_tools()
            template = await client.list_resource_templates()
            record = await client.read_resource("wayleave://kg/Person/crm%2Fpeople%3A7")
            ids = [bare(activity(it)) for it in (person, page, listed, template, record)]
            self.assertEqual(len(set(ids)), 5)
            for given in (person, page):
                read = await client.read_resource(f"wayleave://prov/{activity(given)}")
                [content] = read.contents
                self.assertEqual(content.mime_type, "application/ld+json")
                [found] = [
                    node
                    for node in jsonld.expand(json.loads(content.text))
                    if f"{PROV}Activity" in node.get("@type", [])
                ]
                self.assertEqual(found["@id"], activity(given))
                self.assertNotIn(CANARY, content.text)
            latest = await client.read_resource("wayleave://prov/latest")
            self.assertIn(activity(record), latest.contents[0].text)
        for given in ids:
            shown = self.project.audit("show", given)
            self.assertEqual(shown["outcome"]["kind"], "completed")
            self.assertEqual(shown["agent"]["token"], self.project.token_id)
            self.assertTrue(shown["agent"]["client"])
        shown = self.project.audit("show", ids[0])
        self.assertEqual(shown["used"]["ids"], ["crm/people:7"])
        self.assertEqual(shown["target"], "fetch")
        self.assertEqual(shown["rows"], 1)
        [grant] = shown["grants"]
        self.assertEqual(grant["dataset"], "crm")
        self.assertEqual(self.project.audit("show", ids[1])["used"]["total"], 100)

    async def test_a_caller_reads_its_own_activities_alone(self) -> None:
        async with self.client() as client:
            own = await self.good(client, "fetch", id="crm/people:8")
        async with self.client(self.project.other) as client:
            for id in (activity(own), str(uuid.uuid4()), "nothing"):
                with self.assertRaises(MCPError):
                    await client.read_resource(f"wayleave://prov/{id}")

    async def test_whatever_becomes_of_a_call_is_its_outcome(self) -> None:
        async with self.client() as client:
            wrong = await client.call_tool("query_records", {"stream": "nothing"})
            self.assertTrue(wrong.is_error)
            shown = self.project.audit("show", bare(activity(wrong)))
            self.assertEqual(shown["outcome"], {"kind": "tool_error", "code": "unknown_stream"})
            before = len(self.project.list("--outcome", "failed"))
            denied = len(self.project.list("--target", "list_datasets"))
            with self.assertRaises(MCPError):
                await client.call_tool("no_such_tool", {})
            with self.assertRaises(MCPError):
                await client.call_tool("list_datasets", {})
        self.assertGreaterEqual(len(self.project.list("--outcome", "failed")), before + 1)
        [latest, *_] = self.project.list("--target", "list_datasets")
        self.assertEqual(len(self.project.list("--target", "list_datasets")), denied + 1)
        self.assertIn(latest["outcome"]["kind"], ("failed", "refused"))

    async def test_n_calls_are_n_activities(self) -> None:
        async with self.client() as client:
            calls = [
                client.call_tool("fetch", {"id": f"crm/people:{n}"}) for n in range(1, 101)
            ]
            results = await asyncio.gather(*calls)
        ids = [bare(activity(result)) for result in results]
        self.assertEqual(len(set(ids)), 100)
        recorded = [it["id"] for it in self.project.list("--target", "fetch")]
        self.assertEqual(len(recorded), len(set(recorded)))
        self.assertLessEqual(set(ids), set(recorded))
        self.assertTrue(self.project.audit("verify")["ok"])

    async def test_arguments_are_for_the_operator_and_can_be_destroyed(self) -> None:
        secret = f"needle-{uuid.uuid4().hex}"
        async with self.client() as client:
            found = await self.good(client, "query_records", stream="people", filter={"name": secret})
            other = await self.good(client, "fetch", id="crm/people:1")
        id = bare(activity(found))
        shown = self.project.audit("show", id)
        self.assertEqual(shown["arguments"]["shape"], "{stream:s,filter:{name:s}}")
        self.assertNotIn(secret, json.dumps(shown))
        opened = self.project.audit("show", id, "--arguments")
        self.assertEqual(opened["arguments"]["given"]["filter"], {"name": secret})
        self.assertTrue(self.project.audit("replay", id)["same"])
        self.assertTrue(self.project.audit("replay", bare(activity(other)))["same"])
        self.assertEqual(leaks(self.project.path, secret), [])

    async def test_the_export_is_provenance_that_others_read(self) -> None:
        async with self.client() as client:
            call = await self.good(client, "query_records", stream="people", limit=3)
        document = json.loads(self.project.export("prov", "--target", "query_records"))
        quads = jsonld.to_rdf(document, {"format": "application/n-quads"})
        self.assertIn(f"<{activity(call)}> <{PROV}used> <urn:wayleave:record:crm/people:1>", quads)
        graph = rdflib.Dataset(default_union=True)
        graph.parse(data=json.dumps(document), format="json-ld")
        # The library takes only names with a prefix.
        for prefix, namespace in document["@context"].items():
            graph.bind(prefix, namespace)
        trig = graph.serialize(format="trig")
        read = ProvDocument.deserialize(content=trig, format="rdf", rdf_format="trig")
        bundles = [read, *read.bundles]
        records = [record for bundle in bundles for record in bundle.get_records()]
        kinds = {type(record).__name__ for record in records}
        self.assertLessEqual({"ProvActivity", "ProvAgent", "ProvEntity", "ProvUsage"}, kinds)
        for line in self.project.export("jsonl").splitlines():
            self.assertNotIn(CANARY, line)
            json.loads(line)

    async def test_a_workup_cites_its_activity(self) -> None:
        async with self.client(self.project.builder) as client:
            made = await self.good(client, "workup_crm", entity="crm/people:5")
        cited = {one["activity"] for one in made.structured_content["evidence"]}
        self.assertEqual(cited, {activity(made)})
        used = self.project.audit("show", bare(activity(made)))["used"]["ids"]
        self.assertIn("crm/people:5", used)

    async def test_no_call_is_served_while_none_can_be_recorded(self) -> None:
        project = Project()
        self.addCleanup(project.close)
        log = project.path / ".wayleave/activity"
        async with AsyncExitStack() as stack:
            server = await self.serve(project, stack)
            client = await stack.enter_async_context(
                Client(server, mode=self.mode, read_timeout_seconds=PATIENCE)
            )
            await self.good(client, "fetch", id="crm/people:1")
            [writer] = [it for it in log.iterdir() if (it / "head").stat().st_size]
            [segment] = writer.glob("*.log")
            # Whoever may do anything is stopped only by the file system itself.
            lock_file(segment)
            try:
                with self.assertRaises(Exception) as refused:
                    await client.call_tool("fetch", {"id": "crm/people:2"})
                if isinstance(refused.exception, MCPError):
                    self.assertEqual(refused.exception.error.code, -32603)
            finally:
                unlock_file(segment)
            again = await self.good(client, "fetch", id="crm/people:3")
            self.assertEqual(project.audit("show", bare(activity(again)))["rows"], 1)
        self.assertTrue(project.audit("verify")["ok"])


def lock_file(file: Path) -> None:
    """Fills the segment's place with a folder that cannot be appended to, if it cannot be made immutable."""
    done = subprocess.run(["chattr", "+i", str(file)], capture_output=True)
    if done.returncode:
        raise unittest.SkipTest("this file system knows no immutable files")


def unlock_file(file: Path) -> None:
    subprocess.run(["chattr", "-i", str(file)], check=True)


def leaks(folder: Path, secret: str) -> list[Path]:
    """The files of a project, its source aside, that hold a text."""
    files = [it for it in folder.rglob("*") if it.is_file() and not it.name.startswith("crm.db")]
    return [it for it in files if secret.encode() in it.read_bytes()]


class Stdio(Rules):
    @classmethod
    def begin(cls) -> None:
        pass

    async def server(self, token: str, stack: AsyncExitStack):
        return self.project.over_stdio(token)

    async def serve(self, project: Project, stack: AsyncExitStack):
        return project.over_stdio(project.token)


def connected(url: str, token: str, stack: AsyncExitStack):
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
    return http, streamable_http_client(url, http_client=http)


class Http(Rules):
    @classmethod
    def begin(cls) -> None:
        cls.http = cls.project.over_http()
        cls.addClassCleanup(cls.http.stop)

    async def server(self, token: str, stack: AsyncExitStack):
        http, server = connected(self.http.url, token, stack)
        await stack.enter_async_context(http)
        return server

    async def serve(self, project: Project, stack: AsyncExitStack):
        serving = project.over_http()
        stack.callback(serving.stop)
        http, server = connected(serving.url, project.token, stack)
        await stack.enter_async_context(http)
        return server


class StdioLegacy(Stdio, unittest.IsolatedAsyncioTestCase):
    mode = "legacy"


class StdioModern(Stdio, unittest.IsolatedAsyncioTestCase):
    mode = MODERN


class HttpLegacy(Http, unittest.IsolatedAsyncioTestCase):
    mode = "legacy"


class HttpModern(Http, unittest.IsolatedAsyncioTestCase):
    mode = MODERN


if __name__ == "__main__":
    unittest.main()
