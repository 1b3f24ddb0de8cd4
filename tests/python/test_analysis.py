"""Questions of an analyst, which the official Python client asks the demo's server.

Each question crosses relations and takes one call: a path, groups along a path with conditions and
totals, a walk of groups by their cursor, and an error whose `next` is the corrected call. The answers
are compared with SQL over the demo's own file.

Run it with a Python that has `mcp` 2.x:  python tests/python/test_analysis.py [-v] [NAME ...]
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import unittest
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path

from mcp import Client
from serving import MODERN, PATIENCE, Calls, HttpServer, handle, program, rows_of, text_of, unwrapped

TONNES_OF_VESSELS = """
    SELECT v.id, sum(CAST(round(c.tonnes * 1000) AS INTEGER))
    FROM cargo c JOIN port_calls p ON p.id = c.call_id JOIN vessels v ON v.id = p.vessel_id
    GROUP BY v.id
"""


class Rules(Calls):
    """Rules for either mode."""

    mode: str

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory(prefix="wayleave-python-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name) / "demo"
        command = [program(), "demo", "--http", "127.0.0.1:0", "--project", str(cls.folder)]
        cls.http = HttpServer(*command)
        cls.addClassCleanup(cls.http.stop)

    def sql(self, statement: str) -> list[tuple]:
        connection = sqlite3.connect(f"file:{self.folder}/harbour.db?mode=ro", uri=True)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()

    @asynccontextmanager
    async def client(self):
        async with unwrapped() as stack:
            client = Client(self.http.url, mode=self.mode, read_timeout_seconds=PATIENCE)
            yield await stack.enter_async_context(client)

    async def test_a_path_shows_filters_and_sorts_by_related_fields(self) -> None:
        async with self.client() as client:
            result = await self.good(
                client,
                "query_records",
                stream="cargo",
                fields=["commodity", "call.vessel.name"],
                filter={"call.vessel.name": {"icontains": "HERON"}, "call.berth.crane": True},
                sort=["-call.arrived_at", "id"],
                limit=20,
            )
        data = result.structured_content["data"]
        self.assertEqual(data["fields"], ["id", "commodity", "call.vessel.name"])
        expected = self.sql(
            """SELECT c.id, c.commodity, v.name
               FROM cargo c JOIN port_calls p ON p.id = c.call_id JOIN vessels v ON v.id = p.vessel_id
               JOIN berths b ON b.id = p.berth_id
               WHERE v.name LIKE '%heron%' AND b.crane ORDER BY p.arrived_at DESC, c.id LIMIT 20"""
        )
        self.assertEqual([tuple(row) for row in data["rows"]], expected)
        self.assertGreater(len(expected), 0)

    async def test_groups_along_a_path_have_conditions_and_totals(self) -> None:
        by_kind: dict[str, Decimal] = {}
        kinds = dict(self.sql("SELECT id, kind FROM vessels"))
        for vessel, thousandths in self.sql(TONNES_OF_VESSELS):
            kind = kinds[vessel]
            by_kind[kind] = by_kind.get(kind, Decimal(0)) + Decimal(thousandths) / 1000
        least = sorted(by_kind.values())[1]
        async with self.client() as client:
            result = await self.good(
                client,
                "aggregate",
                stream="cargo",
                metrics=[
                    "sum:tonnes",
                    {"op": "count", "filter": {"hazardous": True}, "as": "hazardous"},
                ],
                group_by=["call.vessel.kind"],
                having={"sum_tonnes": {"gt": str(least)}},
                totals=True,
            )
        content = result.structured_content
        self.assertEqual(content["data"]["fields"], ["call.vessel.kind", "sum_tonnes", "hazardous"])
        told = {row[0]: Decimal(row[1]) for row in content["data"]["rows"]}
        self.assertEqual(told, {kind: sum for kind, sum in by_kind.items() if sum > least})
        totals = content["meta"]["totals"]
        self.assertEqual(Decimal(totals["sum_tonnes"]), sum(by_kind.values()))
        [(hazardous,)] = self.sql("SELECT count(*) FROM cargo WHERE hazardous")
        self.assertEqual(totals["hazardous"], hazardous)
        self.assertIn(f"total sum_tonnes={totals['sum_tonnes']}|hazardous={hazardous}", text_of(result))

    async def test_a_walk_by_the_cursors_of_groups_sees_every_group_once(self) -> None:
        expected = {vessel: Decimal(it) / 1000 for vessel, it in self.sql(TONNES_OF_VESSELS)}
        call = dict(stream="cargo", metrics=["sum:tonnes"], group_by=["call.vessel"], limit=7)
        seen: list[tuple[int, Decimal]] = []
        cursor = None
        async with self.client() as client:
            for _ in range(len(expected)):
                more = {"cursor": cursor} if cursor else {}
                result = await self.good(client, "aggregate", **call, **more)
                text = text_of(result)
                seen += [(int(row[0]), Decimal(row[2])) for row in rows_of(text)]
                cursor = handle(text, "next_cursor")
                self.assertEqual(cursor, result.structured_content["meta"].get("next_cursor"))
                if not cursor:
                    break
        self.assertEqual(len(seen), len(expected))
        self.assertEqual(dict(seen), expected)
        sums = [tonnes for _, tonnes in seen]
        self.assertEqual(sums, sorted(sums, reverse=True))

    async def test_the_next_of_an_error_is_the_repaired_call(self) -> None:
        calls = [
            # A missing hop, another case, and a word of SQL.
            ("query_records", dict(stream="cargo", fields=["vessel.name"], limit=2)),
            ("query_records", dict(stream="cargo", filter={"call.vessel.Kind": "tug"}, limit=3)),
            ("aggregate", dict(stream="cargo", metrics=["SUM(tonnes)"], group_by=["commodity"])),
        ]
        async with self.client() as client:
            for tool, arguments in calls:
                with self.subTest(arguments=json.dumps(arguments)):
                    error = await self.refused(client, tool, **arguments)
                    self.assertEqual(error["next"]["tool"], tool)
                    repaired = error["next"]["arguments"]
                    faulty = {key for key in arguments if arguments[key] != repaired.get(key)}
                    self.assertEqual(len(faulty), 1, repaired)
                    answer = await self.good(client, tool, **repaired)
                    self.assertGreater(len(answer.structured_content["data"]["rows"]), 0)

    async def test_the_prompt_teaches_one_call_across_relations(self) -> None:
        async with self.client() as client:
            prompt = await client.get_prompt("explore-dataset", {"dataset": "harbour"})
        [message] = prompt.messages
        text = message.content.text
        for words in ["in one call", "order.customer.name", "{relation: {some: filter}}", "- cargo ("]:
            self.assertIn(words, text)
        self.assertLessEqual(len(text.encode()), 1_536)

    async def test_one_measure_is_one_short_line(self) -> None:
        async with self.client() as client:
            result = await self.good(client, "aggregate", stream="cargo", metrics=["sum:tonnes"])
        self.assertLessEqual(len(text_of(result).encode()), 80)


class Legacy(Rules, unittest.IsolatedAsyncioTestCase):
    mode = "legacy"


class Modern(Rules, unittest.IsolatedAsyncioTestCase):
    mode = MODERN


if __name__ == "__main__":
    unittest.main()
