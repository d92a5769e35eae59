"""An Explanation as an Excel workbook; openpyxl, an extra, is imported here only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from texplainer.errors import InputError
from texplainer.files.paths import as_path

if TYPE_CHECKING:
    from texplainer.explanation.explanation import Explanation

MOST_LINES = 1_048_576  # of a sheet, its head included


def write_workbook(explanation: Explanation, path: Any) -> Path:
    """Write the sheets "values" (`to_frame`) and "importance"; text is never read as a formula."""
    try:
        from openpyxl import Workbook
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE, WriteOnlyCell
    except ModuleNotFoundError as error:
        raise ImportError(
            "to_excel needs openpyxl, which is not installed. Install it with: pip install 'texplainer[excel]'"
        ) from error
    target = as_path(path)
    if target.suffix.lower() != ".xlsx":
        raise InputError(f"{target.name!r} is not an Excel file; expected a name that ends in .xlsx.")
    book = Workbook(write_only=True)
    for name, frame in (("values", explanation.to_frame()), ("importance", explanation.importance())):
        if len(frame) >= MOST_LINES:
            raise InputError(
                f"the sheet {name!r} would have {len(frame):,} lines; Excel holds {MOST_LINES:,}. "
                "Write fewer rows, such as explanation[:1000], or save a .parquet or .csv file."
            )
        sheet = book.create_sheet(name)

        def cell(value: Any, sheet: Any = sheet) -> Any:
            if isinstance(value, str):
                made = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("", value))
                made.data_type = "s"  # a text that begins with "=" would become a formula
                return made
            return None if value is None or value != value else getattr(value, "item", lambda: value)()

        sheet.append([cell(head) for head in ("label", *frame.columns)])
        for line in frame.itertuples():
            sheet.append([cell(value) for value in line])
    target.parent.mkdir(parents=True, exist_ok=True)
    book.save(target)
    return target.resolve()
