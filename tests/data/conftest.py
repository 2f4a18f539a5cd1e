from support.file_server import serving  # noqa: F401
