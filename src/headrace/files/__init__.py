"""Files: paths local and remote, their errors as errors of this library, and record files."""
