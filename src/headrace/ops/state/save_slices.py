"""Which part of a partitioned variable a variable holds, for checkpoints; scope prefixes."""

from __future__ import annotations

from typing import Any


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """``name`` inside ``import_scope``; colocation and control marks keep their place."""
    if not import_scope:
        return name
    for mark in ("loc:@", "^"):
        if name.startswith(mark):
            return f"{mark}{import_scope.rstrip('/')}/{name[len(mark) :]}"
    return f"{import_scope.rstrip('/')}/{name}"


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """``name`` as seen from inside ``export_scope``."""
    if not export_scope:
        return name
    prefix = export_scope.rstrip("/") + "/"
    for mark in ("loc:@", "^", ""):
        if name.startswith(mark + prefix):
            return mark + name[len(mark) + len(prefix) :]
    return name


class SaveSliceInfo:
    """The place of a slice: ``var_shape`` elements from ``var_offset`` on of ``full_name``."""

    def __init__(
        self,
        full_name: str | None = None,
        full_shape: Any = None,
        var_offset: Any = None,
        var_shape: Any = None,
        save_slice_info_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if save_slice_info_def is not None:
            full_name = prepend_name_scope(save_slice_info_def.full_name, import_scope)
            full_shape = save_slice_info_def.full_shape
            var_offset = save_slice_info_def.var_offset
            var_shape = save_slice_info_def.var_shape
        self.full_name = full_name
        self.full_shape = list(full_shape or ())
        self.var_offset = list(var_offset or ())
        self.var_shape = list(var_shape or ())

    @property
    def spec(self) -> str:
        """The slice as text: ``"<full shape> <offset>,<size>:..."``."""
        full = " ".join(str(d) for d in self.full_shape)
        pairs = zip(self.var_offset, self.var_shape, strict=True)
        return f"{full} " + ":".join(f"{offset},{size}" for offset, size in pairs)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """A SaveSliceInfoDef message; None when the slice is not inside ``export_scope``."""
        from headrace.graph.proto import SaveSliceInfoDef  # proto is imported on first use

        if export_scope is not None and not str(self.full_name).startswith(export_scope):
            return None
        return SaveSliceInfoDef(
            full_name=strip_name_scope(str(self.full_name), export_scope),
            full_shape=self.full_shape,
            var_offset=self.var_offset,
            var_shape=self.var_shape,
        )
