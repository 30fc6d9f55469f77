"""PyInstaller runs this file for every program that imports nn_core."""

from PyInstaller.utils.hooks import collect_data_files, collect_dynamic_libs, collect_submodules, copy_metadata

from nn_core.pyinstaller import distributions, packages

hiddenimports = [module for package in packages() for module in collect_submodules(package)]
datas = [entry for package in packages() for entry in collect_data_files(package)]
datas += [entry for name in distributions() for entry in copy_metadata(name)]
binaries = [entry for package in packages() for entry in collect_dynamic_libs(package)]
