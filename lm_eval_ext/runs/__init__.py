"""Many models: one YAML file each, evaluated one after the other, what is missing only."""
