"""AgentCore Memory: a memory service for AI agents."""
