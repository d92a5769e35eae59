"""A worker process that ends with the one that started it, however that ended.

A driver that was killed cannot tell its workers; they would finish their work for nobody, or wait for ever.
"""

from __future__ import annotations

import os
import threading
import time


def end_with(parent: int) -> None:
    """Leave this process within about a second after the process `parent` is gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
