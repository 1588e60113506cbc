"""Names of Pillow, and the image functions of `scipy.misc`, which later releases dropped.

Nothing is imported before the program does: a finder waits for the modules' names.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["restore"]


def restore() -> None:
    """Wait for the modules whose names are to be restored."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds the modules of `_CHANGES` where they are, and completes them when they are loaded."""

    def __init__(self) -> None:
        self._searching: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "scipy.misc":  # nothing is left of it
            return importlib.util.spec_from_file_location(
                fullname, Path(__file__).with_name("scipy_misc.py")
            )
        if fullname not in _CHANGES or fullname in self._searching:
            return None
        self._searching.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searching.discard(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Completing(spec.loader, _CHANGES[fullname])
        return spec


class _Completing(Loader):
    """A module's own loader, and what is to be done afterwards."""

    def __init__(self, loader: Loader, change: Callable[[Any], None]) -> None:
        self._loader = loader
        self._change = change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._change(module)


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


_CHANGES: dict[str, Callable[[Any], None]] = {
    "PIL.Image": _complete_image,
    "PIL.ImageFont": _complete_font,
    "PIL.ImageDraw": _complete_draw,
}
