"""`headrace run` puts this folder on PYTHONPATH, so that the processes which a program starts
import Headrace under the name ``tensorflow`` too."""

from headrace.compat.aliases import install
from headrace.compat.older import restore

restore()
install()
