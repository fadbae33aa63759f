"""How the world calls us: MCP tools, settings, Lambda entries, command line."""
