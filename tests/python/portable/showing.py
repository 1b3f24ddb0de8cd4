"""Rules about presentation: documents, and text for callers who see nothing else."""

from __future__ import annotations

import json
import os

from portable.asking import Asking, size
from portable.projects import FAT, SECRET, project
from serving import handle, rows_of, text_of


class Documents(Asking):
    """One record as a document."""

    async def test_24_an_id_and_a_connection_that_disagree_are_refused(self) -> None:
        async with self.client("wide") as client:
            # `box07` has no store, so neither side can have been read.
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


class Texts(Asking):
    """The text has everything that the next call needs, and nothing about the location of the data."""

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
            made = project(name)
            variables = [variable for variable in made.env if variable not in os.environ]
            self.assertIn(str(made.store(connection)), [made.env[variable] for variable in variables])
            hidden = ["hidden-store", made.path.name, *variables, "SELECT"]
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
                    told = (await client.call_tool(tool, arguments)).model_dump_json()
                    answers.append((told, hidden))
        for told, hidden in answers:
            for needle in hidden:
                self.assertNotIn(needle, told)
