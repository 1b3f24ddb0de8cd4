"""Rules about `schema`, and about the choice of a connection."""

from __future__ import annotations

import json

from portable.asking import Asking, keys_within, size
from serving import text_of


class Schemas(Asking):
    """The description of readable data."""

    async def test_10_11_the_index_is_whole_and_bounded_for_any_number_of_streams(self) -> None:
        for name, count, most in [("pair", 4, 8_000), ("many", 80, 18_000), ("vast", 1_000, 65_536)]:
            async with self.client(name) as client:
                result = await self.good(client, "schema")
            text, data = text_of(result), result.structured_content["data"]
            self.assertLessEqual(size(result), most)
            self.assertEqual(data["detail"], "compact")
            self.assertEqual(data["totals"]["streams"], count)
            if name == "vast":
                self.assertNotIn("field_detail", text + json.dumps(data))
                self.assertNotIn("fields", keys_within(data["connectors"]))
            if name != "pair":
                for n in range(count):
                    self.assertIn(f"kind_{n:04}", text)
            else:
                # Grouped by connector: the lines after a connector's line belong to it.
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


class Connections(Asking):
    """The connection that answers a call."""

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
            # 24 of them have no store, so an answer that reads one would differ.
            error = await self.refused(client, "query_records", stream="notes")
        self.assertEqual(error["code"], "ambiguous_connection")
        listed = [each["connection_id"] for each in error["available_connections"]]
        # At most twelve, and no more than fit into an error, whose size `refused` checks.
        self.assertIn(len(listed), range(6, 13))
        self.assertEqual(listed, [f"box{n:02}" for n in range(len(listed))])
        self.assertEqual((error["total"], error["truncated"]), (25, True))
        self.assertRegex(error["message"], r"`schema\b.*` lists")
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
