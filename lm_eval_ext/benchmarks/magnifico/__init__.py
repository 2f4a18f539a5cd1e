"""MAGNIFICo: novel interpretations of words in text-to-SQL (Patel et al. 2023)."""
