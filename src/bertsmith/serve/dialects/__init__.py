"""Routes by the dialect they speak: forms, answers and what they ask of a model."""
