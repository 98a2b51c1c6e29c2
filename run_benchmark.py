"""LeakBoard's command line: ``python run_benchmark.py --help``."""

from leakboard.cli.commands import main

if __name__ == "__main__":
    main()
