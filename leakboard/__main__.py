"""LeakBoard's command line: ``python -m leakboard --help``."""

from leakboard.cli.commands import main

if __name__ == "__main__":
    main()
