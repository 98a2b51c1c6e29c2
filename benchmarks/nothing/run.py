"""LeakBoard's command line with plugins that do nothing beside its own, and share processes as its own do."""

from pathlib import Path

import leakboard

leakboard.__path__.append(str(Path(__file__).parent))

from leakboard.cli.commands import main  # noqa: E402 (workers read this file first, too)

if __name__ == "__main__":
    main()
