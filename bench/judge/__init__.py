"""How well MAGNIFICo's databases judge; the package must not import this folder."""
