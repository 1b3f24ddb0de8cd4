"""Rules about `search`."""

from __future__ import annotations

import json
import re

from portable.asking import Asking, size
from serving import handle, rows_of, text_of


class Searching(Asking):
    """One ranked list over all connections."""

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
