"""`python -m tilework`: the command line."""

from __future__ import annotations

from tilework.cli.main import main

if __name__ == "__main__":
    main()
