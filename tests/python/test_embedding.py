"""A program that embeds Wayleave, as the official Python client sees it.

Run it with a Python that has `mcp` 2.x:  python tests/python/test_embedding.py [-v] [NAME ...]
"""

from __future__ import annotations

import unittest

import serving
from mcp import Client, MCPError, StdioServerParameters
from serving import INVALID_PARAMS, PATIENCE, READING, text_of, unwrapped


def embedding() -> str:
    """The path of the example `embedding` of `wayleave`."""
    return serving.built("WAYLEAVE_EMBEDDING", "embedding", "--package", "wayleave", "--example", "embedding")


class Embedded(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.project = serving.Project("")
        self.addCleanup(self.project.close)

    async def test_an_operation_is_listed_validated_and_called_beside_the_read_tools(self) -> None:
        server = StdioServerParameters(command=embedding(), args=[str(self.project.path)], env=self.project.env)
        async with unwrapped() as stack:
            client = await stack.enter_async_context(Client(server, read_timeout_seconds=PATIENCE))
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            self.assertEqual(set(tools), READING | {"remind"})
            schema = tools["remind"].input_schema
            self.assertEqual(schema["properties"]["to"]["maxLength"], 80)
            self.assertEqual(schema["properties"]["days"]["maximum"], 30)
            self.assertEqual((schema["required"], schema["additionalProperties"]), (["to", "days"], False))
            hints = tools["remind"].annotations
            self.assertEqual((hints.read_only_hint, hints.destructive_hint), (False, False))
            done = await client.call_tool("remind", {"to": "Ann", "days": 3})
            self.assertFalse(done.is_error, text_of(done))
            self.assertEqual(done.structured_content["data"], {"to": "Ann", "in_days": 3, "by": "local"})
            for arguments, fields in [
                ({"to": "", "days": 99}, {"to": "min_length", "days": "max_value"}),
                ({}, {"to": "required", "days": "required"}),
                ({"to": " Ann", "days": 3}, {"to": "check"}),
                ({"to": "Ann", "days": 3, "x": 1}, {"x": "unknown"}),
            ]:
                with self.assertRaises(MCPError) as caught:
                    await client.call_tool("remind", arguments)
                error = caught.exception.error
                self.assertEqual(error.code, INVALID_PARAMS)
                told = {entry["field"]: entry["code"] for entry in error.data["fields"]}
                self.assertEqual(told, fields)


if __name__ == "__main__":
    unittest.main()
