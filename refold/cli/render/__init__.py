"""How results are shown: plain lines for pipes, tables and panels at a terminal, and progress in between."""
