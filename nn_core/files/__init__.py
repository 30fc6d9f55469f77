"""Files that hold named arrays: HDF5, NPZ and safetensors, written atomically and checked when read. No pickle is run.

This package knows arrays only. What they mean (parameters, states of a solver) is decided by its callers.
"""

from nn_core.files.atomic import atomic_writer as atomic_writer
from nn_core.files.atomic import open_to_read as open_to_read
from nn_core.files.atomic import read_file as read_file
from nn_core.files.atomic import remove_leftovers as remove_leftovers
from nn_core.files.atomic import require_regular as require_regular
from nn_core.files.budgets import Budget as Budget
from nn_core.files.budgets import budget as budget
from nn_core.files.budgets import reading_budget as reading_budget
from nn_core.files.entries import Entries as Entries
from nn_core.files.entries import Entry as Entry
from nn_core.files.entries import PathOrFile as PathOrFile
from nn_core.files.formats import FORMATS as FORMATS
from nn_core.files.formats import extension_of as extension_of
from nn_core.files.formats import read_entries as read_entries
from nn_core.files.formats import write_entries as write_entries
from nn_core.files.formats import written_extension as written_extension
from nn_core.files.naming import naming_file as naming_file
from nn_core.files.writers import wait_for_writers as wait_for_writers
from nn_core.files.writers import writing_into as writing_into
