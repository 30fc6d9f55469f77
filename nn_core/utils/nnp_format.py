"""The version of the format of network files."""

__all__ = ["nnp_version"]


def nnp_version() -> str:
    """Tell the version that archives of networks (.nnp) name in their file ``nnp_version.txt``.

    Example:
        >>> nnp_version()
        '0.1'
    """
    return "0.1"
