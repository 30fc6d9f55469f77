"""The parts of a release: wheels, frozen files, locked versions, types, and the smoke test of a machine."""
