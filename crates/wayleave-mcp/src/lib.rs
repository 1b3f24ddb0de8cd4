//! Dynamic MCP primitives.
