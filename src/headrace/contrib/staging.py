"""``tf.contrib.staging``: values that one step leaves for another."""

from headrace.ops.io.staging_api import MapStagingArea, StagingArea

__all__ = ["MapStagingArea", "StagingArea"]
