"""Screenshots of a report, in docs/images: `python docs/screenshots.py RUN`, with chromium.

Light and dark, at the width of a desktop and of a phone.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.browser import browser  # noqa: E402

VIEWS = {"desk": (900, 1400), "phone": (390, 1400)}


def main(report: Path) -> None:
    (HERE / "images").mkdir(exist_ok=True)
    with browser() as page:
        for view, (width, height) in VIEWS.items():
            for scheme in ("light", "dark"):
                page.look(width=width, height=height, scheme=scheme)
                page.open(report)
                page.picture(HERE / "images" / f"report-{view}-{scheme}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) / "report.html")
