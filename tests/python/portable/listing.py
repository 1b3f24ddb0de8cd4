"""Rules about lists, and about arguments."""

from __future__ import annotations

import json

from portable.asking import Asking
from serving import READING


class Listing(Asking):
    """The lists of tools and resources."""

    async def test_01_02_03_the_five_tools_are_listed_small_and_read_only(self) -> None:
        async with self.client() as client:
            tools = await self.tools(client)
        self.assertEqual(set(tools), READING)
        listed = json.dumps(list(tools.values()), separators=(",", ":"))
        self.assertLessEqual(len(listed.encode()), 5_632)
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


class Arguments(Asking):
    """Arguments that are accepted, and arguments that are refused by name."""

    async def test_05_a_filter_is_an_object_and_nothing_that_looks_like_one(self) -> None:
        async with self.client("wide") as client:
            for name, tool in (await self.tools(client)).items():
                if asked := tool["inputSchema"]["properties"].get("filter"):
                    self.assertEqual(asked["type"], "object", name)
            # `box07` has no store, so a refusal after reading it would differ.
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
            groups = dict(notes, metrics=["count"], group_by=["id"], limit=1)
            first = await self.good(client, "aggregate", **groups)
            calls = {
                "schema": [
                    dict(notes, detail="compact"),
                    dict(notes, detail="full"),
                    dict(streams=["notes"], connection_id="left"),
                ],
                "query_records": [
                    dict(notes, limit=1, cursor=page.structured_content["meta"]["next_cursor"]),
                    dict(notes, filter={"id": 1}, sort=["-id"], fields=["heading"], expand=["pages"]),
                    dict(notes, changes_since="beginning"),
                    *[dict(notes, count=each) for each in ["none", "estimated", "exact"]],
                ],
                "aggregate": [
                    dict(groups, cursor=first.structured_content["meta"]["next_cursor"]),
                    dict(groups, having={"count": {"gte": 1}}, totals=True),
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
                    dict(id="left/notes:1", connection_id="left", fields=["body"], expand=["pages"]),
                    dict(id="left/notes:1", offset=1),
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
