"""Tables keep state and run on the host: their tests and goldens cover them."""

from __future__ import annotations

COVERED = dict.fromkeys(
    (
        *("HashTableV2", "MutableHashTableV2", "MutableHashTableOfTensorsV2"),
        *("MutableDenseHashTableV2", "LookupTableFindV2", "LookupTableSizeV2"),
        *("LookupTableExportV2", "LookupTableInsertV2", "LookupTableImportV2"),
        *("LookupTableRemoveV2", "InitializeTableV2", "InitializeTableFromTextFileV2"),
    ),
    "tests/ops/io/test_tables.py",
)
