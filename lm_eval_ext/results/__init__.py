"""Reading and showing what lm-eval wrote: scores with signatures, and logged samples."""
