"""End a worker process when its parent process ends.

A parent that was killed cannot stop its workers; they would run on, or wait forever.
"""

from __future__ import annotations

import os
import threading
import time


def end_with(parent: int) -> None:
    """Exit this process within about a second after the process `parent` has ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
