"""``tf.contrib.staging``: values that one step leaves for another."""

from headrace.ops.staging_api import StagingArea

__all__ = ["StagingArea"]
