"""``python -m headrace.native``: build the library into the folder of ``HEADRACE_NATIVE``."""

import sys

from headrace.files.private import named_folder
from headrace.native.build import build
from headrace.settings import USERS_NATIVE_FOLDER, flags

if __name__ == "__main__":
    try:
        made = build(named_folder(flags.native or USERS_NATIVE_FOLDER))
    except (OSError, RuntimeError) as error:
        sys.exit(f"The native library was not built: {error}")
    print(f"Built {made}")
