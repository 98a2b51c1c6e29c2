"""Import LeakBoard from this checkout, with the plugins in ``_plugins`` as if they were its own.

As a script it is LeakBoard's command line. Its own plugins share worker processes; plugins given by ``--plugin`` do
not, and starting a process for each task would be timed too. Worker processes import this file first.
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(1, str(FOLDER.parent))

import leakboard  # noqa: E402

leakboard.__path__.append(str(FOLDER / "_plugins"))

if __name__ == "__main__":
    from leakboard.cli.commands import main

    main()
