# Written by tools/make_stubs.py from dir(headrace.resource_loader); do not edit.
from headrace.api.resource_loader import get_data_files_path as get_data_files_path
from headrace.api.resource_loader import get_path_to_datafile as get_path_to_datafile
from headrace.api.resource_loader import get_root_dir_with_all_resources as get_root_dir_with_all_resources
from headrace.api.resource_loader import load_resource as load_resource
from headrace.api.resource_loader import readahead_file_path as readahead_file_path
