"""Names of the files and collections of a SavedModel."""

from typing import Final

ASSETS_DIRECTORY: Final = "assets"
ASSETS_KEY: Final = "saved_model_assets"
LEGACY_INIT_OP_KEY: Final = "legacy_init_op"
MAIN_OP_KEY: Final = "saved_model_main_op"
SAVED_MODEL_FILENAME_PB: Final = "saved_model.pb"
SAVED_MODEL_FILENAME_PBTXT: Final = "saved_model.pbtxt"
SAVED_MODEL_SCHEMA_VERSION: Final = 1
VARIABLES_DIRECTORY: Final = "variables"
VARIABLES_FILENAME: Final = "variables"
