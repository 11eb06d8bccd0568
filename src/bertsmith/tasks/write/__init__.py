"""Writing as a task: source and target as ids, arranged for each kind of model."""
