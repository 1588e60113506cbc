"""Names of Pillow, and the image functions of `scipy.misc`, which later releases dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["CHANGES", "REPLACED"]


def _complete_image(image: Any) -> None:
    for old, new in (("ANTIALIAS", "LANCZOS"), ("CUBIC", "BICUBIC"), ("LINEAR", "BILINEAR")):
        if not hasattr(image, old):
            setattr(image, old, getattr(image.Resampling, new))


def _complete_font(module: Any) -> None:
    def getsize(self: Any, text: Any, *args: Any, **kwargs: Any) -> tuple[int, int]:
        _, _, right, bottom = self.getbbox(text, *args, **kwargs)
        return int(right), int(bottom)

    for font in (module.FreeTypeFont, module.ImageFont):
        if not hasattr(font, "getsize"):
            font.getsize = getsize


def _complete_draw(module: Any) -> None:
    def textsize(self: Any, text: Any, *args: Any, **kwargs: Any) -> tuple[int, int]:
        _, _, right, bottom = self.textbbox((0, 0), text, *args, **kwargs)
        return int(right), int(bottom)

    if not hasattr(module.ImageDraw, "textsize"):
        module.ImageDraw.textsize = textsize


CHANGES: dict[str, Callable[[Any], None]] = {
    "PIL.Image": _complete_image,
    "PIL.ImageFont": _complete_font,
    "PIL.ImageDraw": _complete_draw,
}
#: Modules of which nothing is left, and where their functions are.
REPLACED = {"scipy.misc": "headrace.compat.scipy_misc"}
