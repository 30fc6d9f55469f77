"""The subcommands of ``nn-core`` for networks in files."""
