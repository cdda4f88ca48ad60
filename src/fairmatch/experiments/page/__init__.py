"""The page of results: tables, figures and files."""
