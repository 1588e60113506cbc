"""Running a step: units, lowering to XLA, interpretation, resources."""
