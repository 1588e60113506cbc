# Written by tools/make_stubs.py from dir(headrace.io.gfile); do not edit.
from headrace.api.io.gfile import GFile as GFile
from headrace.api.io.gfile import copy as copy
from headrace.api.io.gfile import exists as exists
from headrace.api.io.gfile import glob as glob
from headrace.api.io.gfile import isdir as isdir
from headrace.api.io.gfile import join as join
from headrace.api.io.gfile import listdir as listdir
from headrace.api.io.gfile import makedirs as makedirs
from headrace.api.io.gfile import mkdir as mkdir
from headrace.api.io.gfile import remove as remove
from headrace.api.io.gfile import rename as rename
from headrace.api.io.gfile import rmtree as rmtree
from headrace.api.io.gfile import stat as stat
from headrace.api.io.gfile import walk as walk
