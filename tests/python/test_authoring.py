"""The authoring operations over MCP: who may call them, their descriptions, and that none of them reads a
row, a DSN or a token, or changes the served datasets.

Run it with a Python that has `mcp` 2.x: python tests/python/test_authoring.py [-v] [NAME ...]
"""

from __future__ import annotations

import itertools
import json
import random
import unittest

from console_case import CANARY, OPERATIONS, SCOPE_DENIED, ConsoleCase, Shop
from mcp import MCPError
from serving import FULL, MODERN, text_of, unwrapped

SCOPES = ("runtime", "builder", "dev")
SETTINGS = """[project]
name = "record-shop"
env = "{env}"

[serve]
http = "127.0.0.1:0"
tokens = true
scopes = [{scopes}]

[limits]
calls_per_minute = 1000000
"""


def subsets(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    sizes = range(len(names) + 1)
    return [chosen for size in sizes for chosen in itertools.combinations(names, size)]


class Authoring(ConsoleCase, unittest.IsolatedAsyncioTestCase):
    """The operations as tools."""

    def setUp(self) -> None:
        self.project = Shop()
        self.addCleanup(self.project.close)

    def serve(self, env: str = "development", scopes: tuple[str, ...] = SCOPES):
        named = ", ".join(f'"{scope}"' for scope in scopes)
        (self.project.path / "wayleave.toml").write_text(SETTINGS.format(env=env, scopes=named))
        self.server = self.project.over_http()
        self.addCleanup(self.stop)

    def stop(self) -> None:
        if self.server.process.poll() is None:
            self.server.stop()

    async def connected(self) -> str:
        """Ratifies and connects the shop; returns a token that reads all of it."""
        self.serve()
        async with unwrapped() as stack:
            builder, _ = await self.client(self.project.builder, MODERN, stack)
            await self.propose(builder)
        self.stop()
        self.project.run("inbox", "ratify", "1", "--yes", "--note", "to read")
        self.project.run("connect", "shop")
        return self.project.token("--all-of", "shop", "--label", "reads")

    # --- visibility and descriptions ----------------------------------------------------------------

    async def test_t1_a_runtime_caller_is_listed_no_authoring_tool(self) -> None:
        self.serve()
        for mode in (MODERN, "legacy"):
            async with unwrapped() as stack:
                reader, _ = await self.client(self.project.runtime, mode, stack)
                self.assertFalse({tool.name for tool in (await reader.list_tools()).tools} & OPERATIONS)

    async def test_t2_calling_one_by_name_is_denied_with_the_scopes_and_not_run(self) -> None:
        self.serve()
        for mode in (MODERN, "legacy"):
            async with unwrapped() as stack:
                reader, _ = await self.client(self.project.runtime, mode, stack)
                for tool in OPERATIONS:
                    with self.assertRaises(MCPError) as caught:
                        await reader.call_tool(tool, {"dataset": "shop", "text": "x", "reason": "x"})
                    error = caught.exception.error
                    self.assertEqual(error.code, SCOPE_DENIED)
                    error.data.pop("_meta")  # names the record of the call
                    self.assertEqual(
                        error.data,
                        {"tool": tool, "required_scope": "builder", "caller_scopes": ["runtime"]},
                    )
        self.assertEqual(json.loads(self.project.run("inbox", "list", "--json"))["proposals"], [])

    async def test_t5_every_name_of_a_tool_maps_back_to_one_operation(self) -> None:
        self.serve()
        async with unwrapped() as stack:
            builder, _ = await self.client(self.project.builder, MODERN, stack)
            names = {tool.name for tool in (await builder.list_tools()).tools} & OPERATIONS
        self.assertEqual(names, OPERATIONS)
        told = set()
        for name in names:
            parts = name.removeprefix("wayleave_meta_").split("_")
            self.assertLessEqual(len(parts), 2)
            told.add("wayleave.meta." + ".".join(parts))
        listed = json.loads(self.project.run("meta", "--json"))["operations"]
        self.assertEqual(told, {it["id"] for it in listed})

    async def test_t6_each_tool_tells_its_kind_scope_namespace_operation_and_idempotence(self) -> None:
        self.serve()
        for mode in (MODERN, "legacy"):
            async with unwrapped() as stack:
                builder, _ = await self.client(self.project.builder, mode, stack)
                for tool in (await builder.list_tools()).tools:
                    mark = tool.meta["io.wayleave/tool"]
                    if tool.name not in OPERATIONS:
                        self.assertEqual(mark, {"kind": "runtime"})
                        continue
                    self.assertEqual((mark["kind"], mark["scope"]), ("meta", "builder"))
                    self.assertIs(mark["idempotent"], True)
                    parts = [part for part in (mark["namespace"], mark["op"]) if part]
                    self.assertEqual("wayleave_meta_" + "_".join(parts), tool.name)

    async def test_criterion_1_a_caller_is_listed_what_its_scopes_permit_each_with_its_kind(self) -> None:
        self.serve()
        for scopes in subsets(SCOPES[1:]):
            words = [word for scope in scopes for word in ("--scope", scope)]
            token = self.project.token(*words)
            async with unwrapped() as stack:
                client, _ = await self.client(token, MODERN, stack)
                tools = {tool.name: tool.meta["io.wayleave/tool"] for tool in (await client.list_tools()).tools}
            self.assertLessEqual({"schema", "query_records", "fetch"}, set(tools))
            meta = {name for name, mark in tools.items() if mark["kind"] == "meta"}
            self.assertEqual(meta, OPERATIONS if "builder" in scopes else set())
            self.assertTrue(all(mark["kind"] in ("meta", "runtime") for mark in tools.values()))

    async def test_criterion_2_gen_shape_gives_the_bytes_that_the_command_line_gives(self) -> None:
        self.serve()
        count = 200 if FULL else 20
        changes, refused = Changes(seed=20), 0
        async with unwrapped() as stack:
            builder, _ = await self.client(self.project.builder, MODERN, stack)
            made = (await self.good(builder, "wayleave_meta_gen_mapping", source="shop")).structured_content
            for n in range(count):
                change = {"dataset": "shop", "unified": made["diff"]["unified"], **changes.next()}
                over_mcp = await builder.call_tool("wayleave_meta_gen_shape", change)
                command = self.command("meta", "gen", "shape", "--json", "--input", json.dumps(change))
                if over_mcp.is_error:
                    refused += 1
                    self.assertEqual(command["error"]["code"], over_mcp.structured_content["error"]["code"])
                    continue
                self.assertEqual(command["diff"], over_mcp.structured_content["diff"], (n, change))
                self.assertEqual(command, over_mcp.structured_content, (n, change))
        self.assertLess(refused, count // 2, "most changes can be made")

    # --- what they cannot do -----------------------------------------------------------------------

    def inputs(self, tool: str, unified: str) -> list[dict]:
        """Inputs that an operation accepts, and some that it refuses."""
        about = {"dataset": "shop", "unified": unified}
        good = {
            "wayleave_meta_source_introspect": {"source": "shop"},
            "wayleave_meta_gen_mapping": {"source": "shop"},
            "wayleave_meta_gen_shape": {**about, "stream": "customer", "set": {"title": "email"}},
            "wayleave_meta_mapping_propose": {**about, "reason": "to look"},
            "wayleave_meta_mapping_read": {"dataset": "shop"},
            "wayleave_meta_mapping_check": about,
            "wayleave_meta_mapping_diff": about,
        }.get(tool, {})
        path = str(self.project.path / "shop.db")
        return [good, {"source": path, "dataset": path}, {"source": "shop", "dataset": "shop", "proposal": 1}]

    def served(self) -> dict:
        """The complete recorded state of the served datasets, and the operator's drafts."""
        told = {
            words: json.loads(self.project.run(*words.split(), "--json"))
            for words in ("datasets", "grant list --all", "token list --all", "source list")
        }
        told["ledger"] = json.loads(self.project.run("audit", "--json"))["total"]
        drafts = sorted((self.project.path / "mappings").iterdir())
        told["drafts"] = {it.name: it.read_bytes() for it in drafts}
        return told

    async def test_no_operation_of_any_scope_reads_a_row_a_dsn_or_a_token_or_changes_what_is_served(self) -> None:
        """Every operation, with every set of scopes that a token and a deployment may have."""
        reads = await self.connected()
        tokens = {}
        for scopes in subsets(SCOPES[1:]):
            words = [word for scope in scopes for word in ("--scope", scope)]
            tokens[scopes] = self.project.token(*words)
        secrets = [CANARY, "ann@example.org", "Oslo", str(self.project.path), "TEST_SHOP", "wlc_", *tokens.values()]
        before, answered, denied, effective = self.served(), 0, 0, set()
        for env, ceiling in itertools.product(("development", "production"), subsets(SCOPES)):
            self.serve(env, ceiling)
            async with unwrapped() as stack:
                watcher, notices = (
                    await self.client(reads, MODERN, stack) if "runtime" in ceiling else (None, None)
                )
                listed = watcher and [tool.name for tool in (await watcher.list_tools()).tools]
                for scopes, token in tokens.items():
                    can = set(ceiling) & {"runtime", *scopes} - ({"dev"} if env == "production" else set())
                    effective.add(tuple(sorted(can)))
                    client, _ = await self.client(token, MODERN, stack)
                    unified = "" if "builder" not in can else (
                        await self.good(
                            client, "wayleave_meta_gen_shape", dataset="shop", stream="customer",
                            set={"description": "Everyone who buys, ever."},
                        )
                    ).structured_content["diff"]["unified"]
                    for tool in sorted(OPERATIONS):
                        for given in self.inputs(tool, unified):
                            if "builder" not in can:
                                with self.assertRaises(MCPError) as caught:
                                    await client.call_tool(tool, given)
                                self.assertEqual(caught.exception.error.code, SCOPE_DENIED)
                                denied += 1
                                continue
                            result = await client.call_tool(tool, given)
                            told = text_of(result) + json.dumps(result.structured_content)
                            # Only texts that the caller itself sent may come back.
                            for secret in secrets:
                                if secret not in json.dumps(given):
                                    self.assertNotIn(secret, told, tool)
                            answered += not result.is_error
                if watcher:
                    self.assertEqual([tool.name for tool in (await watcher.list_tools()).tools], listed)
                    read = await self.good(watcher, "query_records", stream="customer", fields=["name"])
                    self.assertIn(CANARY, text_of(read))
                    self.assertEqual(sum(notices.heard.values()), 0)
            self.stop()
            self.assertEqual(self.served(), before, (env, ceiling))
        every = {tuple(sorted(chosen)) for chosen in subsets(SCOPES)}
        self.assertEqual(effective, every, "every set of scopes was tried")
        self.assertGreater(min(answered, denied), 100)

    async def test_no_operation_depends_on_rows_which_are_destroyed_under_it(self) -> None:
        """The pages of the tables are overwritten: whoever reads a row fails, and no operation does."""
        reads = await self.connected()
        token = self.project.token("--scope", "builder", "--scope", "dev", "--label", "twin")

        async def everything(is_whole: bool) -> dict:
            self.serve()
            told = {}
            async with unwrapped() as stack:
                client, _ = await self.client(token, MODERN, stack)
                reader, _ = await self.client(reads, MODERN, stack)
                read = await reader.call_tool("query_records", {"stream": "customer", "limit": 7})
                self.assertEqual(read.is_error, not is_whole, text_of(read))
                unified = (
                    await self.good(
                        client, "wayleave_meta_gen_shape", dataset="shop", stream="customer",
                        set={"description": "Everyone who buys, ever."},
                    )
                ).structured_content["diff"]["unified"]
                for tool in sorted(OPERATIONS - {"wayleave_meta_mapping_status"}):
                    for n, given in enumerate(self.inputs(tool, unified)):
                        result = await client.call_tool(tool, given)
                        answer = dict(result.structured_content)
                        # Only the time of the proposal may differ.
                        answer.pop("proposal", None)
                        told[tool, n] = (result.is_error, answer)
            self.stop()
            return told

        whole = await everything(is_whole=True)
        database = self.project.path / "shop.db"
        bytes_ = bytearray(database.read_bytes())
        self.assertGreater(len(bytes_), 4096 * 2)
        # The first page contains the catalogue.
        bytes_[4096:] = b"\xa5" * (len(bytes_) - 4096)
        database.write_bytes(bytes_)
        self.assertEqual(await everything(is_whole=False), whole)


class Changes:
    """Generated changes of a mapping: streams, keys, fields, computed fields, relations, measures."""

    COLUMNS = {"customer": ["id", "name", "email", "city"], "invoice": ["id", "customer_id", "total", "at"]}
    KINDS = ["string", "integer", "decimal", "number", "boolean", "date", "datetime"]
    TEXTS = ["ä \u00e9 ß", 'a "quoted" word', "two\nlines", "back\\slash", "x" * 300, "", "# not a comment", "'", "[x]"]

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.number = 0

    def next(self) -> dict:
        self.number += 1
        choose, chance = self.random.choice, self.random.random
        table = choose(["customer", "invoice"])
        stream = choose([table, table, f"{table}s", f"part_{self.number}"])
        columns, wanted = self.COLUMNS[table], {}
        if stream != table:
            wanted = {"table": table, "type": f"T{self.number}", "key": ["id"]}
        elif chance() < 0.2:
            wanted["key"] = [choose(columns)]
        if chance() < 0.6:
            wanted["description"] = choose(self.TEXTS)
        if chance() < 0.3:
            wanted["title"] = choose(columns + ["nam"])
        if chance() < 0.3:
            wanted["search"] = self.random.sample(columns, self.random.randint(0, 3))
        fields = {}
        for _ in range(self.random.randint(0, 3)):
            field = {"column": choose(columns), "datatype": choose(self.KINDS)}
            if chance() < 0.5:
                field["description"] = choose(self.TEXTS)
            fields[choose(columns + [f"f{self.random.randint(0, 9)}"])] = field
        if chance() < 0.4:
            fields["made"] = {"compute": choose(["id + 1", f"id * {self.number}", "id +"]), "datatype": "integer"}
        if fields:
            wanted["fields"] = fields
        if chance() < 0.3:
            wanted["relations"] = {f"r{self.number % 4}": {"to": "customer", "on": {"id": "id"}}}
        if chance() < 0.3:
            wanted["measures"] = {f"m{self.number}": choose(["count()", "max(id)", "nothing("])}
        change = {"stream": stream, "set": wanted}
        if chance() < 0.3:
            change["remove"] = [choose(["fields.email", "fields.at", "title", "search", "relations.none"])]
        return change


if __name__ == "__main__":
    unittest.main()
