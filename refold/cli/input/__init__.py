"""A person's input: values, modules, names of traces, typed answers."""
