"""The pytest plugin: each trace in a folder is a test of today's code. Nothing of the engine is imported until one runs."""
