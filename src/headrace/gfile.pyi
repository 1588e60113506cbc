# Written by tools/make_stubs.py from dir(headrace.gfile); do not edit.
from headrace.api.gfile import Copy as Copy
from headrace.api.gfile import DeleteRecursively as DeleteRecursively
from headrace.api.gfile import Exists as Exists
from headrace.api.gfile import FastGFile as FastGFile
from headrace.api.gfile import GFile as GFile
from headrace.api.gfile import Glob as Glob
from headrace.api.gfile import IsDirectory as IsDirectory
from headrace.api.gfile import ListDirectory as ListDirectory
from headrace.api.gfile import MakeDirs as MakeDirs
from headrace.api.gfile import MkDir as MkDir
from headrace.api.gfile import Open as Open
from headrace.api.gfile import Remove as Remove
from headrace.api.gfile import Rename as Rename
from headrace.api.gfile import Stat as Stat
from headrace.api.gfile import Walk as Walk
