from server import serving  # noqa: F401
