"""What a person gives to a command: values, modules, traces by name, and answers at the keyboard."""
