"""Starts the command line as `python -m agentcore`."""

from agentcore.cli import main

if __name__ == "__main__":
    main()
