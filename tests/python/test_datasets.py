"""Datasets that come and go while agents work, as the official Python client sees it.

The project is made with the command line, as a person would make it: three ratified datasets, one
of them live. Every rule holds for each way a client may connect: over stdio, where each client has
a server of its own, and over HTTP, where they share one, with the handshake of the older revisions
(`legacy`) and with the newest one.

Run it with a Python that has `mcp` 2.x:  python tests/python/test_datasets.py [-v] [NAME ...]
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
import unittest
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import mcp_types as types
import serving
from mcp import Client, MCPError
from serving import (
    INVALID_PARAMS,
    PATIENCE,
    READING,
    Calls,
    listening,
    text_of,
    unwrapped,
)

NOT_FOUND = {INVALID_PARAMS, -32002}
UNAUTHENTICATED, SCOPE_DENIED = -32001, -32004
BUILDING = {
    "list_datasets", "connect_dataset", "disconnect_dataset", "workup", "check_citations",
    "wayleave_meta_ping", "wayleave_meta_source_list", "wayleave_meta_source_introspect",
    "wayleave_meta_gen_mapping", "wayleave_meta_gen_shape", "wayleave_meta_mapping_read",
    "wayleave_meta_mapping_check", "wayleave_meta_mapping_diff", "wayleave_meta_mapping_propose",
    "wayleave_meta_mapping_status", "wayleave_meta_drift_report",
}


def mapping(name: str, stream: str, type_name: str, note: str = "") -> str:
    return f"""
[dataset]
name = "{name}"
title = "The {name}"
kind = "sqlite"
iri = "https://example.org/{name}#"

[[connections]]
id = "{name}"
source = "{name.replace("-", "_")}"

[streams.{stream}]
type = "{type_name}"
key = ["id"]
title = "name"
search = ["name"]
description = "{note or f"Every {type_name}."}"

[streams.{stream}.fields.id]
datatype = "integer"

[streams.{stream}.fields.name]
datatype = "string"

[streams.{stream}.fields.since]
datatype = "date"
"""


class Project(serving.Project):
    """A project: `fleet` is live; `crew-list` and `cargoes` are ratified; `wrecks` is a draft."""

    DATASETS = [("fleet", "ships", "Ship"), ("crew-list", "sailors", "Sailor"), ("cargoes", "loads", "Load")]

    def __init__(self) -> None:
        super().__init__('[serve]\nhttp = "127.0.0.1:0"\nscopes = ["runtime", "builder"]\n')
        for name, stream, type_name in self.DATASETS:
            source = name.replace("-", "_")
            self.fill(source, stream)
            self.add_source(source, self.path / f"{source}.db")
            self.draft(name).write_text(mapping(name, stream, type_name))
            self.run("ratify", name)
        self.run("connect", "fleet")
        self.draft("wrecks").write_text(mapping("wrecks", "hulls", "Hull"))
        every = [word for name, _, _ in self.DATASETS for word in ("--all-of", name)]
        self.builder = self.token(*every, "--scope", "builder")
        self.runtime = self.token(*every)
        self.outsider = self.token("--all-of", "fleet", "--scope", "builder")

    def fill(self, source: str, stream: str) -> None:
        with sqlite3.connect(self.path / f"{source}.db") as connection:
            connection.execute(f"CREATE TABLE {stream} (id INTEGER PRIMARY KEY, name TEXT, since TEXT)")
            rows = [(n, f"{stream} {n}", f"2024-01-{n % 28 + 1:02}") for n in range(1, 151)]
            connection.executemany(f"INSERT INTO {stream} VALUES (?, ?, ?)", rows)
        connection.close()

    def token(self, *words: str) -> str:
        return json.loads(self.run("token", "create", *words, "--json"))["secret"]

    def frozen(self, name: str) -> Path:
        """The path of the currently ratified frozen mapping."""
        listed = json.loads(self.run("datasets", "--json"))["datasets"]
        digest = next(line["digest"] for line in listed if line["name"] == name)
        return next((self.path / ".wayleave/mappings").glob(f"*{digest.split(':')[-1]}*"))

    def entries(self) -> int:
        """Number of recorded acts."""
        return len(json.loads(self.run("audit", "--json"))["entries"])


async def tools(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


# Resources that exist whatever is connected: about all datasets, and the record of calls.
STANDING = (
    "wayleave://schema",
    "wayleave://kg/types",
    "wayleave://stats",
    "wayleave://doctor",
    "wayleave://prov/",
)


async def resources(client: Client) -> set[str]:
    """The resources that come and go with datasets."""
    listed = {str(each.uri) for each in (await client.list_resources()).resources}
    return {uri for uri in listed if not uri.startswith(STANDING)}


async def templates(client: Client) -> set[str]:
    """The templates that come and go with datasets."""
    listed = await client.list_resource_templates()
    uris = {each.uri_template for each in listed.resource_templates}
    return {uri for uri in uris if not uri.startswith(STANDING)}


async def prompts(client: Client) -> set[str]:
    return {prompt.name for prompt in (await client.list_prompts()).prompts}


class Rules(Calls):
    """Rules for every connection, in any mode and over any transport."""

    mode: str

    def setUp(self) -> None:
        self.project = Project()
        self.addCleanup(self.project.close)
        self.begin()

    @asynccontextmanager
    async def clients(self, *tokens: str):
        """Clients that listen to all list changes from the start, each with its notices."""
        async with unwrapped() as stack:
            opened = [
                await listening(await self.server(token, stack), self.mode, stack)
                for token in tokens
            ]
            yield opened if len(opened) > 1 else opened[0]

    async def error_of(self, call) -> MCPError:
        with self.assertRaises(MCPError) as caught:
            await call
        return caught.exception

    async def found(self, client: Client, phrase: str, patience: float = PATIENCE) -> list[str]:
        """The ids that a search finds, once its indexes are built."""
        began = time.monotonic()
        while True:
            result = await client.call_tool("search", {"q": f'"{phrase}"'})
            if result.is_error:
                error = result.structured_content["error"]
                self.assertEqual(error.get("reason"), "indexing", error)
                ids = []
            else:
                ids = [hit["id"] for hit in result.structured_content["data"]["results"]]
            if ids or time.monotonic() - began >= patience:
                return ids
            # Without a pause the calls would spend the caller's budget while an index is built.
            await asyncio.sleep(0.05)

    async def test_a_dataset_appears_for_everyone_and_vanishes_for_everyone(self) -> None:
        async with self.clients(self.project.builder, self.project.builder) as both:
            (first, _), _ = both
            for client, _ in both:
                self.assertEqual(await tools(client), READING | BUILDING | {"workup_fleet"})
                self.assertEqual(await resources(client), {"wayleave://kg/Ship"})
            connected = await self.good(first, "connect_dataset", name="crew-list")
            data = connected.structured_content["data"]
            self.assertEqual((data["tool"], data["revision"]), ("workup_crew_list", 1))
            for client, notices in both:
                await notices.until(tools=1, resources=1)
                self.assertIn("workup_crew_list", await tools(client))
                self.assertEqual(
                    await resources(client), {"wayleave://kg/Ship", "wayleave://kg/Sailor"}
                )
                self.assertIn("wayleave://kg/Sailor/{id}", await templates(client))
                worked = await self.good(client, "workup_crew_list", entity="sailors 7")
                self.assertIn("[g1]", text_of(worked))
            await self.good(first, "disconnect_dataset", name="crew-list")
            for client, notices in both:
                await notices.until(tools=2, resources=2)
                self.assertEqual(await tools(client), READING | BUILDING | {"workup_fleet"})
                self.assertEqual(await resources(client), {"wayleave://kg/Ship"})
                self.assertNotIn("wayleave://kg/Sailor/{id}", await templates(client))
                gone = await self.error_of(client.call_tool("workup_crew_list", {"entity": "x"}))
                self.assertEqual(gone.error.code, INVALID_PARAMS)
                self.assertIn("workup_crew_list", gone.error.message)
                # One notice per kind for each of the two acts; the prompts did not change.
                self.assertEqual(notices.heard, Counter(tools=2, resources=2))

    async def test_what_the_command_line_does_is_seen_within_a_second(self) -> None:
        async with self.clients(self.project.builder, self.project.builder) as both:
            took = []
            for act in range(1, 7):
                word = "connect" if act % 2 else "disconnect"
                await asyncio.to_thread(self.project.run, word, "cargoes")
                began = time.monotonic()
                for client, notices in both:
                    await notices.until(tools=act, resources=act)
                took.append(time.monotonic() - began)
                for client, notices in both:
                    self.assertEqual("workup_cargoes" in await tools(client), word == "connect")
                    self.assertEqual(notices.heard, Counter(tools=act, resources=act))
            # The median, because a machine may be slow once.
            self.assertLess(sorted(took)[len(took) // 2], 1.0, took)

    async def test_what_is_connected_is_there_after_a_restart(self) -> None:
        async with self.clients(self.project.builder) as (client, _):
            await self.good(client, "connect_dataset", name="crew-list")
        self.restart()
        async with self.clients(self.project.builder) as (client, notices):
            self.assertIn("workup_crew_list", await tools(client))
            listed = (await self.good(client, "list_datasets")).structured_content
            states = {row[0]: row[1] for row in listed["data"]["rows"]}
            self.assertEqual(
                states,
                {"cargoes": "ratified", "crew-list": "active", "fleet": "active", "wrecks": "draft"},
            )
            self.assertEqual(notices.heard, Counter())

    async def test_the_last_dataset_takes_the_prompts_with_it(self) -> None:
        async with self.clients(self.project.builder) as (client, notices):
            self.assertEqual(await prompts(client), {"explore-dataset", "workup-entity"})
            await self.good(client, "disconnect_dataset", name="fleet")
            await notices.until(tools=1, resources=1, prompts=1)
            self.assertEqual(await prompts(client), set())
            self.assertEqual(await resources(client) | await templates(client), set())
            await self.good(client, "connect_dataset", name="fleet")
            await notices.until(tools=2, resources=2, prompts=2)
            self.assertEqual(await prompts(client), {"explore-dataset", "workup-entity"})

    async def test_what_cannot_be_connected_is_told_and_nobody_hears_of_it(self) -> None:
        project = self.project
        frozen = project.frozen("crew-list")
        bytes_before = frozen.read_bytes()
        async with self.clients(project.builder, project.builder) as both:
            (client, _), _ = both
            before = project.entries()
            unknown = await self.refused(client, "connect_dataset", name="crew-lits")
            self.assertEqual(unknown["code"], "unknown_dataset")
            self.assertEqual(unknown["allowed"], ["cargoes", "crew-list", "fleet"])
            self.assertEqual(unknown["did_you_mean"], "crew-list")
            for dsn in ["postgres://u:hunter2@h/db", "mysql://root:hunter2@db/crm"]:
                result = await client.call_tool("connect_dataset", {"name": dsn})
                self.assertEqual(result.structured_content["error"]["code"], "unknown_dataset")
                self.assertNotIn("hunter2", result.model_dump_json())
            draft = await self.refused(client, "connect_dataset", name="wrecks")
            self.assertEqual((draft["code"], draft["reason"]), ("not_ratified", "draft"))

            frozen.unlink()
            frozen.write_bytes(bytes([bytes_before[0] ^ 1]) + bytes_before[1:])
            tampered = await self.refused(client, "connect_dataset", name="crew-list")
            self.assertEqual((tampered["code"], tampered["reason"]), ("mapping_refused", "altered"))
            listed = (await self.good(client, "list_datasets")).structured_content
            reasons = {row[0]: row[7] for row in listed["data"]["rows"]}
            self.assertIn("not what was ratified", reasons["crew-list"])
            frozen.unlink()
            frozen.write_bytes(bytes_before)

            (project.path / "cargoes.db").rename(project.path / "away.db")
            dead = await self.refused(client, "connect_dataset", name="cargoes")
            self.assertEqual((dead["code"], dead["reason"]), ("source_unavailable", "unreachable"))
            self.assertNotIn(str(project.path), json.dumps(dead))
            (project.path / "away.db").rename(project.path / "cargoes.db")

            again = await self.good(client, "connect_dataset", name="fleet")
            self.assertTrue(again.structured_content["data"]["was_active"])
            idle = await self.good(client, "disconnect_dataset", name="cargoes")
            self.assertFalse(idle.structured_content["data"]["was_active"])
            self.assertEqual(project.entries(), before)
            # Other datasets are unaffected, and the next real change gives the first notice.
            await self.good(client, "workup_fleet", entity="ships 3")
            await self.good(client, "connect_dataset", name="crew-list")
            for _, notices in both:
                await notices.until(tools=1, resources=1)
                self.assertEqual(notices.heard, Counter(tools=1, resources=1))

    async def test_a_reader_sees_five_tools_before_and_after_and_the_new_streams(self) -> None:
        async with self.clients(self.project.runtime, self.project.builder) as both:
            (reader, heard), (builder, _) = both
            self.assertEqual(await tools(reader), READING)
            self.assertNotIn("sailors", text_of(await self.good(reader, "schema")))
            await self.good(builder, "connect_dataset", name="crew-list")
            await heard.until(resources=1)
            self.assertEqual(await tools(reader), READING)
            self.assertIn("sailors", text_of(await self.good(reader, "schema")))
            self.assertIn("wayleave://kg/Sailor", await resources(reader))
            self.assertEqual(heard.heard, Counter(resources=1))
            for tool in ["connect_dataset", "workup_crew_list", "list_datasets"]:
                denied = await self.error_of(reader.call_tool(tool, {"name": "x", "entity": "x"}))
                self.assertEqual(denied.error.code, SCOPE_DENIED)
                self.assertEqual(denied.error.data["required_scope"], "builder")

    async def test_whoever_is_granted_nothing_of_a_dataset_learns_nothing_of_it(self) -> None:
        async with self.clients(self.project.outsider, self.project.builder) as both:
            (outsider, heard), (builder, _) = both
            await self.good(builder, "connect_dataset", name="crew-list")
            self.assertEqual(await tools(outsider), READING | BUILDING | {"workup_fleet"})
            self.assertEqual(await resources(outsider), {"wayleave://kg/Ship"})
            self.assertNotIn("wayleave://kg/Sailor/{id}", await templates(outsider))
            hidden = await self.error_of(outsider.call_tool("workup_crew_list", {"entity": "x"}))
            missing = await self.error_of(outsider.call_tool("workup_crew_lisp", {"entity": "x"}))
            self.assertEqual(hidden.error.code, missing.error.code)
            self.assertEqual(
                hidden.error.message.replace("crew_list", "crew_lisp"), missing.error.message
            )
            for uri in ["wayleave://kg/Sailor", "wayleave://kg/Sailor?limit=2", "wayleave://kg/Sailor/crew-list%2Fsailors:1"]:
                error = await self.error_of(outsider.read_resource(uri))
                other = await self.error_of(outsider.read_resource(uri.replace("Sailor", "Tailor")))
                self.assertIn(error.error.code, NOT_FOUND)
                self.assertEqual(error.error.message.replace("Sailor", "Tailor"), other.error.message)
            refused = await self.error_of(
                outsider.get_prompt("explore-dataset", {"dataset": "crew-list"})
            )
            self.assertEqual(refused.error.code, INVALID_PARAMS)
            self.assertEqual(heard.heard, Counter())

    async def test_records_are_read_as_resources(self) -> None:
        async with self.clients(self.project.runtime) as (client, _):
            async def page(uri: str) -> tuple[list, dict]:
                contents = (await client.read_resource(uri)).contents[0]
                self.assertEqual(contents.mime_type, "application/json")
                return json.loads(contents.text), contents.meta["io.wayleave/page"]

            first, facts = await page("wayleave://kg/Ship")
            self.assertEqual((len(first), facts["more"]), (100, True))
            rest, facts = await page("wayleave://kg/Ship?limit=1000&offset=100")
            self.assertEqual((len(rest), facts["more"]), (50, False))
            every = [record["iri"] for record in first + rest]
            self.assertEqual(len(set(every)), 150)
            self.assertEqual(first[0]["label"], "ships 1")
            record = (await client.read_resource(every[0])).contents[0]
            self.assertEqual(record.mime_type, "application/ld+json")
            self.assertEqual(
                json.loads(record.text),
                {
                    "@id": every[0],
                    "@type": "https://example.org/fleet#Ship",
                    "https://example.org/fleet#id": 1,
                    "https://example.org/fleet#name": "ships 1",
                    "https://example.org/fleet#since": {
                        "@type": "http://www.w3.org/2001/XMLSchema#date",
                        "@value": "2024-01-02",
                    },
                },
            )
            for uri in ["wayleave://kg/Ship?limit=0", "wayleave://kg/Ship?limit=1001", "wayleave://kg/Ship?offset=x"]:
                error = await self.error_of(client.read_resource(uri))
                self.assertEqual(error.error.code, INVALID_PARAMS)
            for uri in ["wayleave://kg/Ship/fleet%2Fships:9999", "wayleave://kg/Ship/nonsense"]:
                error = await self.error_of(client.read_resource(uri))
                self.assertIn(error.error.code, NOT_FOUND)

    async def test_names_types_and_ids_are_completed(self) -> None:
        async with self.clients(self.project.builder) as (client, _):
            async def values(ref, name: str, value: str, **context: str) -> list[str]:
                done = await client.complete(ref, {"name": name, "value": value}, context or None)
                return done.completion.values

            prompt = types.PromptReference(type="ref/prompt", name="workup-entity")
            self.assertEqual(await values(prompt, "dataset", ""), ["fleet"])
            titles = await values(prompt, "entity", "ships 14", dataset="fleet")
            self.assertEqual(titles[0], "ships 14")
            self.assertEqual(len(titles), 11)
            page = types.ResourceTemplateReference(
                type="ref/resource", uri="wayleave://kg/{type}{?where,limit,offset}"
            )
            self.assertEqual(await values(page, "type", "S"), ["Ship"])
            record = types.ResourceTemplateReference(
                type="ref/resource", uri="wayleave://kg/Ship/{id}"
            )
            self.assertEqual(len(await values(record, "id", "fleet/ships:")), 100)
            self.assertEqual(await values(record, "id", "fleet/ships:150"), ["fleet/ships:150"])
            await self.good(client, "connect_dataset", name="crew-list")
            self.assertEqual(await values(prompt, "dataset", ""), ["crew-list", "fleet"])
            self.assertEqual(await values(page, "type", "S"), ["Sailor", "Ship"])

    async def test_a_new_ratification_is_served_once_it_is_connected(self) -> None:
        project = self.project
        async with self.clients(project.builder) as (client, notices):
            call = dict(stream="ships", limit=5)
            page = await self.good(client, "query_records", **call)
            cursor = page.structured_content["meta"]["next_cursor"]
            project.draft("fleet").write_text(mapping("fleet", "ships", "Vessel", "Renamed."))
            await asyncio.to_thread(project.run, "ratify", "fleet")
            listed = (await self.good(client, "list_datasets")).structured_content
            reasons = {row[0]: row[7] for row in listed["data"]["rows"]}
            self.assertIn("was ratified since", reasons["fleet"])
            self.assertEqual(await resources(client), {"wayleave://kg/Ship"})
            await self.good(client, "query_records", **call, cursor=cursor)
            await self.good(client, "connect_dataset", name="fleet")
            self.assertEqual(await resources(client), {"wayleave://kg/Vessel"})
            stale = await self.refused(client, "query_records", **call, cursor=cursor)
            self.assertEqual(stale["code"], "invalid_cursor")
            await notices.until(resources=1)
            # Its tool did not change, so there is no notice about tools.
            self.assertEqual(notices.heard, Counter(resources=1))

    async def test_what_is_connected_is_found_by_search_without_a_restart(self) -> None:
        async with self.clients(self.project.builder) as (client, _):
            await self.good(client, "connect_dataset", name="crew-list")
            self.assertIn("crew-list/sailors:77", await self.found(client, "sailors 77"))
            await self.good(client, "disconnect_dataset", name="crew-list")
            self.assertEqual(await self.found(client, "ships 77"), ["fleet/ships:77"])
            self.assertEqual(await self.found(client, "sailors 77", patience=0), [])

    async def test_a_retired_dataset_is_gone_and_cannot_be_connected(self) -> None:
        # The token's grants are all of another dataset: retiring ends the grants too.
        builder = self.project.token("--all-of", "cargoes", "--scope", "builder")
        async with self.clients(builder, self.project.runtime) as both:
            (client, _), (reader, _) = both
            self.assertIn("ships", text_of(await self.good(reader, "schema")))
            await asyncio.to_thread(self.project.run, "retire", "fleet")
            refused = await self.refused(client, "connect_dataset", name="fleet")
            self.assertEqual((refused["code"], refused["reason"]), ("not_ratified", "retired"))
        async with self.clients(self.project.runtime) as (reader, _):
            self.assertNotIn("ships", text_of(await self.good(reader, "schema")))
            self.assertEqual(await resources(reader), set())


class Stdio(Rules):
    def begin(self) -> None:
        pass

    def restart(self) -> None:
        pass

    async def server(self, token: str, stack: AsyncExitStack):
        return self.project.over_stdio(token)

    async def test_without_a_token_a_local_client_reads_and_does_no_more(self) -> None:
        async with self.clients("") as (client, notices):
            self.assertEqual(await tools(client), READING)
            self.assertEqual(await prompts(client), {"explore-dataset"})
            for tool in ["list_datasets", "connect_dataset", "workup_fleet"]:
                denied = await self.error_of(client.call_tool(tool, {"name": "x", "entity": "x"}))
                self.assertEqual(denied.error.code, UNAUTHENTICATED)
            await asyncio.to_thread(self.project.run, "connect", "crew-list")
            await notices.until(resources=1)
            self.assertEqual(await tools(client), READING)
            self.assertIn("sailors", text_of(await self.good(client, "schema")))
            self.assertEqual(notices.heard, Counter(resources=1))


class Http(Rules):
    def begin(self) -> None:
        self.http = self.project.over_http()
        self.addCleanup(lambda: self.http.stop())

    def restart(self) -> None:
        self.http.stop()
        self.http = self.project.over_http()

    async def server(self, token: str, stack: AsyncExitStack):
        return await serving.with_token(self.http.url, token, stack)


serving.define_every_way(globals(), Stdio, Http)


if __name__ == "__main__":
    unittest.main()
