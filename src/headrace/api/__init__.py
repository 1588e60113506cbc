"""The public namespaces that are lists of names, imported as ``headrace.nn`` and so on.

``headrace`` finds its modules here too; ``headrace.api.nn`` is never imported under this name."""
