"""How much memory `texplainer verify` takes at most, on a file and on a folder of shards.

python benchmarks/trust_memory.py         writes its table into docs/results/trust.md
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from conditions import measured_on

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "trust.md"
ROWS = (20_000, 200_000)
CHILD = """
import resource, sys
from texplainer.cli import main
try:
    main(sys.argv[1:])
except SystemExit as left:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, left.code or 0)
"""


def peak(*words: str) -> int:
    """The greatest resident memory of one command, in MB."""
    done = subprocess.run([sys.executable, "-c", CHILD, *words], capture_output=True, text=True, check=True)
    megabytes, code = done.stdout.split()[-2:]
    if code != "0":
        raise SystemExit(done.stdout + done.stderr)
    return int(megabytes)


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "helpers"))
    import hostile_page
    import model_shelf

    lines = ["| rows | verify, one file | verify, folder of shards |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model_shelf.skops(folder)
        model = str(folder / "model.skops")
        for rows in ROWS:
            data, file, many = (str(folder / f"{kind}{rows}") for kind in ("data", "file", "folder"))
            data, file = data + ".csv", file + ".parquet"
            which = np.random.default_rng(0).integers(0, 120, rows)
            model_shelf.table().iloc[which].to_csv(data, index=False)
            peak("explain", model, data, "-o", file)
            peak("explain", model, data, "-o", many, "--on", "serial")
            found = [peak("verify", place, "--model", model, "--data", data) for place in (file, many)]
            lines.append(f"| {rows:,} | {found[0]} MB | {found[1]} MB |")
    lines += ["", measured_on("pyarrow", "pandas", "skops")]
    page = hostile_page.between(PAGE.read_text(encoding="utf-8"), "memory", lines)
    PAGE.write_text(page, encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
