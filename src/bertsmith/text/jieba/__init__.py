"""Chinese words as jieba finds them: its dictionary, sums and rules, on whole texts at once."""
