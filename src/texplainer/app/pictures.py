"""The explorer of images: the report of their explanations, behind the explorer's guard.

Pixels cannot be edited: the page only shows explanations.
"""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from texplainer import report
from texplainer.app import server
from texplainer.images.image_explainer import ImageExplainer


def picture_application(explainer: ImageExplainer, images: Any, title: str, token: str) -> Starlette:
    """The web application of some images, explained at once."""
    html = report.page(explainer(images), title=title)

    async def page(request: Request) -> Response:
        return server.answer_page(html)

    return server.guarded([Route("/", page)], token)
