"""The process of one model: it loads the folder and answers frames."""
