"""The paper's experiments: what to run, its records, and the tables and figures made of them."""
